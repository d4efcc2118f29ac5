#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the timing model with published times of kernels on a T4, and tries other constants of it.

    tools/calibrate.py TIMES.csv RUN.txt ... [--try NAME=VALUE,VALUE ...] [--event US,US ...] [--out FILE]

TIMES.csv has the columns kernel, N and published_us. RUN.txt is what `turing run` takes, with `time` or `time dry`, and is
named KERNEL_N.txt. What such a file prints last is the time of that kernel at N, or, if it has a line `# times F`, that of a part
of its blocks, of which the whole has F times as many. Times without a file are left out.

The times are of launches between a pair of events after a pause. The model's are the kernel's, with the most that fetching its
code on a GPU that has been idle adds, and with the constant `event`. Every combination of the values of --try is run, and of
--event, other values of that constant in microseconds. Constants are those of src/turing/time.def, within its ranges. The error of
a time is modelled over published less 1; the best combination has the least mean of their sizes. It is also chosen without one
kernel, or without one time, and judged on what was left out. --out writes what the model as it is says: bench/results/t4model/calibration.json.
"""
import argparse
import csv
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from statistics import fmean as mean

import results
from evidence import clock

TIME = re.compile(r"^  time +\d+ cycles, ([\d.]+) us\n  start-up, .* warm, ([\d.]+) us cold$", re.M)


def published(path):
    """{(kernel, N): us}"""
    with open(path, newline="") as file:
        rows = list(csv.DictReader(file))
    try:
        times = {(row["kernel"], int(row["N"])): float(row["published_us"]) for row in rows}
    except (KeyError, TypeError, ValueError) as error:
        sys.exit(f"{path}: wants kernel, N and published_us: {error!r}")
    if not all(0 < us < float("inf") for us in times.values()):
        sys.exit(f"{path}: a time that is not above 0")
    return times


def modelled(turing, path, chosen):
    """Microseconds by these constants, with the start on an idle GPU, without events."""
    lines = "".join(f"clock {name} {value!r}\n" for name, value in chosen)
    part = re.search(r"^# times ([\d.]+)\b", path.read_text(), re.M)
    with tempfile.TemporaryDirectory() as folder:
        job = pathlib.Path(folder) / path.name
        job.write_text(lines + path.read_text())
        run = subprocess.run([turing, "run", job], cwd=path.resolve().parent, capture_output=True, text=True)
    found = TIME.findall(run.stdout)
    if run.returncode or not found or float(found[-1][0]) <= 0:
        raise RuntimeError(f"{path}: {run.stderr.strip() or 'status %d' % run.returncode if run.returncode else 'no time'}")
    us, start = map(float, found[-1])
    return us * (float(part[1]) if part else 1) + start


def best(table, keys):
    """Of {combination: errors} the one that fits these times best; of equals the first."""
    return min(table, key=lambda combination: mean(abs(table[combination][key]) for key in keys))


def named(combination):
    return " ".join(f"{name}={value:g}" for name, value in (*combination[0], ("event", combination[1])))


def ranks(times, found):
    """Pairs of kernels within a size whose order is right, and all of them; equal times have no order."""
    pairs = [(a, b) for a, b in itertools.combinations(found, 2) if a[1] == b[1] and times[a] != times[b]]
    us = {key: times[key] * (1 + error) for key, error in found.items()}
    return sum((us[a] - us[b]) * (times[a] - times[b]) > 0 for a, b in pairs), len(pairs)


def summary(times, found):
    right, pairs = ranks(times, found)
    sizes = list(map(abs, found.values()))
    return (f"mean {mean(sizes):.2%}, most {max(sizes):.2%}, signed mean {mean(found.values()):+.2%}, "
            f"pairs ranked right {right} of {pairs}")


def leave_out(what, table, groups):
    """Prints each group by the constants that fit the other times best, and the mean of all errors so found."""
    print(f"without one {what}")
    held = {}  # errors of what was left out
    for name, out in groups.items():
        rest = [key for key in next(iter(table.values())) if key not in out]
        if not rest:
            return print("  nothing left to fit")
        choice = best(table, rest)
        held |= {key: table[choice][key] for key in out}
        print(f"  without {name:12} {named(choice)}: " + " ".join(f"{table[choice][key]:+.2%}" for key in out))
    print(f"  mean {mean(map(abs, held.values())):.2%}, signed mean {mean(held.values()):+.2%}")


def grid(texts):
    """[((name, value), ...), ...] of NAME=VALUE,VALUE; the model's own constants where there are none."""
    constants, axes = clock.constants(), []
    for text in texts:
        name, _, values = text.partition("=")
        if name not in constants:
            sys.exit(f"time.def has no constant {name}")
        axes.append([(name, float(value)) for value in values.split(",")])
        for _, value in axes[-1]:
            if not constants[name].low <= value <= constants[name].high:
                sys.exit(f"{name}={value:g} is outside of {constants[name].low:g} to {constants[name].high:g}")
    return list(itertools.product(*axes))


def written(times, found, files):
    """A file of results, for tools/take.py."""
    def git(*words):
        return subprocess.run(["git", "-C", results.ROOT, *words], check=True, capture_output=True, text=True).stdout.strip()

    dirty = "-dirty" if git("status", "--porcelain", "--", "src/turing") else ""
    version = ".".join(re.findall(r"^#define HGEMM_VERSION_[A-Z]+ (\d+)", (results.ROOT / "include" / "hgemm.h").read_text(), re.M))
    context = {"gpu": "Tesla T4 (timing model)", "clocks": f"{clock.MHZ} MHz", "witness": "modelled",
               "hgemm": f"{version}, commit {git('rev-parse', '--short=12', 'HEAD')}{dirty}"}
    rows = [{"kernel": kernel, "size": size, "part": "# times" in files[kernel, size].read_text(), "published_us": times[kernel, size],
             "events_us": round(times[kernel, size] * (1 + error), 2)} for (kernel, size), error in sorted(found.items())]
    lines = ",\n".join(json.dumps(row) for row in rows)
    return f'{{\n"context": {json.dumps(context, indent=2)},\n"results": [\n{lines}\n]\n}}\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("times", type=pathlib.Path, metavar="TIMES.csv")
    parser.add_argument("runs", type=pathlib.Path, metavar="RUN.txt", nargs="+")
    parser.add_argument("--try", dest="tried", action="append", default=[], metavar="NAME=VALUE,VALUE")
    event = clock.constants()["event"].value / clock.MHZ
    parser.add_argument("--event", default=f"{event:g}", metavar="US,US", help="default: %(default)s, as the model has it")
    parser.add_argument("--out", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--turing", default=results.ROOT / "build/release/turing", type=pathlib.Path)
    args = parser.parse_args()
    times, files = published(args.times), {}
    for path in args.runs:
        kernel, _, size = path.stem.rpartition("_")
        if not size.isdigit() or (kernel, int(size)) not in times:
            sys.exit(f"{path}: {args.times} has no time of it")
        files[kernel, int(size)] = path
    if args.out and (args.tried or args.event != f"{event:g}"):
        parser.error("--out is for the model as it is")
    choices, events = grid(args.tried), [float(us) for us in args.event.split(",")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        runs = {choice: {key: pool.submit(modelled, args.turing.resolve(), path, choice) for key, path in files.items()}
                for choice in choices}
        try:
            model = {choice: {key: run.result() for key, run in of.items()} for choice, of in runs.items()}
        except (OSError, RuntimeError) as error:
            pool.shutdown(cancel_futures=True)
            sys.exit(str(error))
    table = {(choice, event): {key: (us + event) / times[key] - 1 for key, us in model[choice].items()}
             for choice in choices for event in events}
    for combination in table if len(table) > 1 else ():
        print(f"{named(combination)}: {summary(times, table[combination])}")
    choice = best(table, files)
    print(f"{len(files)} of {len(times)} times, by {named(choice)}")
    for key, error in sorted(table[choice].items()):
        print(f"  {key[0]} {key[1]}: published {times[key]:.2f}, modelled {times[key] * (1 + error):.2f} us, {error:+.2%}")
    print("  " + summary(times, table[choice]))
    if args.out:
        args.out.write_text(written(times, table[choice], files))
    if len(table) > 1:
        kernels = sorted({key[0] for key in files})
        leave_out("kernel", table, {name: [key for key in files if key[0] == name] for name in kernels})
        leave_out("time", table, {f"{key[0]} {key[1]}": [key] for key in sorted(files)})


if __name__ == "__main__":
    main()
