#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compiles batches of kernels.py by nvcc and by gcc, and compares what the emulator and the host make of them.

    batches.py RUNNER [--seed S] [--kernels N] [--jobs J] [--batch B] [--seconds T] [--nvcc NVCC] [--forms FILE [--others IMAGE...]] [--keep FOLDER]

RUNNER is the program turing_random. Seeds are S (without it: the time), S + 1, ... for batches of B kernels, each with compiler's options of its own,
until N kernels are done or T seconds have passed. Exit status 1 where a result is wrong, a kernel is refused or a check
complains; the lines that say so begin with the seed, and `batches.py RUNNER --seed S --kernels B` does it again.

FILE is src/turing/forms.def: to the forms of instructions that it has those are added that were executed here in kernels with
right results (HOST), and of --others the forms that are in cubins and fatbins whose results other tests compare (OTHERS)."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import kernels  # noqa: E402

# What nvcc is given beside -fmad=false, by the seed; most kernels are of the default.
OPTIONS = [[], [], [], [], ["-Xptxas", "-O1"], [], ["-Xptxas", "-O0"], ["-ftz=true"], [], ["-maxrregcount=24"], ["-G"], ["-Xcicc", "-O1"], ["-Xptxas", "-O2"], ["-ftz=true"]]


HEAD = """/* SPDX-License-Identifier: MIT */
/*
 * forms.def - the forms of instructions (turing_form() of turing.h) that were executed in kernels whose results are right.
 * HOST: random kernels, beside the host's own arithmetic. OTHERS: kernels of this project, whose results other tests compare.
 * Written by test/turing/random/batches.py --forms.
 */
"""


def call(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    return done.returncode, done.stdout


def batch(arguments, seed, count):
    """Returns how many kernels were compared, lines of what is wrong, and the forms that were met."""
    options = OPTIONS[seed % len(OPTIONS)]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="turing_random_"))
    try:
        text = kernels.batch(seed, count)
        for name in ("batch.cu", "batch.c"):
            (folder / name).write_text(text)
        defines = ["-I%s" % HERE] + (["-DFTZ"] if "-ftz=true" in options else [])
        device = [arguments.nvcc, "-arch=sm_75", "-cubin", "-fmad=false", "-lineinfo", "-w", *options, *defines, "-o", str(folder / "batch.cubin"), str(folder / "batch.cu")]
        host = ["gcc", "-O1", "-shared", "-fPIC", "-fwrapv", "-fno-strict-aliasing", "-ffp-contract=off", "-frounding-math", "-w", *defines,
                "-o", str(folder / "batch.so"), str(folder / "batch.c"), "-lm"]
        for command in (device, host):
            status, output = call(command)
            if status:
                return 0, ["%s\n%s" % (" ".join(command), output)], set()
        status, output = call([arguments.runner, str(folder / "batch.cubin"), str(folder / "batch.so"), str(folder / "forms")])
        lines = output.splitlines()
        if status and not lines:
            lines = ["%s ended with status %d" % (arguments.runner, status)]
        forms = set((folder / "forms").read_text().splitlines()) if (folder / "forms").exists() else set()
        left_out = re.search(r" (\d+) left out$", output)
        return count - int(left_out[1] if left_out else 0), [line for line in lines if " 0 wrong, 0 refused" not in line], forms
    finally:
        if arguments.keep:
            shutil.copytree(folder, pathlib.Path(arguments.keep) / str(seed), dirs_exist_ok=True)
        shutil.rmtree(folder)


def add_forms(path, host, others):
    """Adds to the forms of a file of FORM(witness, "text"), in the order of the texts' bytes; the host's word counts more."""
    known = {text: witness for witness, text in re.findall(r'^FORM\((\w+), "(.*)"\)$', path.read_text() if path.exists() else "", re.M)}
    known.update({text: known.get(text, "OTHERS") for text in others})
    known.update({text: "HOST" for text in host})
    lines = ['FORM(%s, "%s")\n' % (known[text], text) for text in sorted(known, key=lambda text: text.encode())]
    path.write_text(HEAD + "".join(lines))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runner")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--kernels", type=int, default=200)
    parser.add_argument("--batch", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--nvcc", default="nvcc")
    parser.add_argument("--forms")
    parser.add_argument("--others", nargs="*", default=[])
    parser.add_argument("--keep")
    arguments = parser.parse_args()
    if not shutil.which(arguments.nvcc) or not shutil.which("gcc"):
        print("skipped: kernels are compiled here, and there is no %s" % (arguments.nvcc if shutil.which("gcc") else "gcc"))
        return 77
    forms = set()
    end = time.time() + arguments.seconds
    todo = [(arguments.seed + i, min(arguments.batch, arguments.kernels - i * arguments.batch)) for i in range(-(-arguments.kernels // arguments.batch))]
    done = faults = 0
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        running = {}
        while todo or running:
            while todo and len(running) < arguments.jobs:
                if time.time() > end and done + len(running):
                    todo = []
                    break
                seed, count = todo.pop(0)
                running[pool.submit(batch, arguments, seed, count)] = seed
            finished, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
            for future in finished:
                seed = running.pop(future)
                count, lines, met = future.result()
                done += count
                forms |= met
                faults += len(lines) > 0
                for line in lines:
                    print("seed %d: %s" % (seed, line), flush=True)
    if arguments.forms:
        others = call([arguments.runner, "--forms", *arguments.others])[1].splitlines() if arguments.others else []
        add_forms(pathlib.Path(arguments.forms), forms, others)
    print("%d kernels from seed %d on, %s" % (done, arguments.seed, "all right" if not faults else "%d batches with faults" % faults))
    return 1 if faults or not done else 0


if __name__ == "__main__":
    sys.exit(main())
