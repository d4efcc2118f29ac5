#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Takes results into bench/results/, where the documents' figures come from, and stamps them with what they depend on.

    tools/take.py FILE... --into MACHINE    files of bench_hgemm and its kin: h100, t4model, t4emu ...; texts that tests wrote
    tools/take.py REPORT.json               what hgemm.report() wrote on a T4: becomes bench/results/t4/bench_report.json
    tools/take.py --redo                    runs again what is stale and needs no GPU, with build/release; minutes
    tools/take.py --confirm                 asks build/release what is chosen today for files that are older than the choice of plans: where
                                            every row has the plan that it had, the choice is stamped anew; other rows are printed; seconds

A file must say which commit it was made with, and git must know that commit: the stamp is of its code, not of this tree. A report that
contradicts itself, is of another GPU or of the emulator, or has a wrong product is refused. One that says that it is made up
(`made_up`) is refused, too, unless --made-up: then every table says so, and tools/report.py --check fails while it is there. Then
run tools/report.py.
"""
import argparse
import json
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import results
from evidence import choices, images, inputs
from results import ROOT


class Refused(Exception):
    """Why a file is not taken."""


def commit_of(context):
    found = re.search(r"\bcommit ([0-9a-f]{7,40})(-dirty)?", context.get("hgemm", ""))
    if not found:
        raise Refused("does not say of which commit it is")
    if found[2]:
        raise Refused(f"is of {found[1]} with changes that were not committed: build from a commit")
    return found[1]


def kernels_without_images(result):
    """Of hgemm's rows, the kernels of those that name no image, in a file that does not say otherwise what it depends on."""
    ours = {images.kernel_of(symbol) for symbol in images.listed()} | {source for source, *_ in images.listed().values()}
    named = {row.get("kernel", "") for row in result["results"] if "images" not in row and "failure" not in row}
    return sorted(kernel for kernel in named if "depends" not in result["context"]
                  and (kernel.startswith("auto") or re.split(r"[ +]", kernel.removeprefix("plan "))[0] in ours))


def stamp(text, name):
    """The text of a file of that name with the hashes of what it depends on: first in its context, or a text's second line."""
    result = results.parsed(text, name)
    if "context" not in result:
        raise Refused("has no context")
    of = inputs.of_commit(commit_of(result["context"]))
    if of is None:
        raise Refused(f"is of commit {commit_of(result['context'])}, which git does not know here")
    silent = kernels_without_images(result)
    must(not silent, f"does not say which images its rows ran ({', '.join(silent)}): make it with a benchmark of today")
    kept = inputs.stamp(result, of)
    if not name.endswith(".json"):
        must(pathlib.Path(name).stem in inputs.TEXTS, "is no text of tools/evidence/inputs.py, which says what each depends on")
        must(result["context"]["gpu"], "has a first line that is not: hgemm VERSION, commit COMMIT; GPU, driver DRIVER; and what else it was of")
        head, *lines = text.split("\n")
        return "\n".join([head, f'"inputs": {json.dumps(kept)}', *(lines[1:] if lines and lines[0].startswith('"inputs": ') else lines)])
    return with_inputs(text, kept)


def with_inputs(text, kept):
    """A JSON file with those hashes, and no others."""
    text = re.sub(r'(\{\s*)"inputs": \{[^}]*\},\s*|,\s*"inputs": \{[^}]*\}', lambda found: found[1] or "", text, count=1)
    return re.sub(r'("context": \{)(\s*)', lambda found: f'{found[1]}{found[2]}"inputs": {json.dumps(kept)},{found[2] or " "}', text, count=1)


# ---- a T4's report -------------------------------------------------------------------------------

def must(condition, why):
    if not condition:
        raise Refused(why)


def from_report(report, may_be_made_up=False):
    """What hgemm.report() wrote, as a file of bench_hgemm."""
    made_up = report.get("made_up")
    must(report.get("what") == "hgemm report 1", "is no report of hgemm")
    must(not made_up or may_be_made_up, f"says that it is made up ({made_up}): it is no evidence")
    device, smi, bench = report["device"], report["gpu"], report["bench"]
    must(not device["emulated"] and device["is a T4"] and bench["context"]["witness"] == "measured", f"is not of a T4: {device['device']}")
    must(isinstance(smi, list) and smi and "T4" in smi[0]["name"], "nvidia-smi saw no T4 there")
    must(report["exact_products"] and all(check["wrong_elements"] == 0 for check in report["exact_products"]), "has wrong products")
    rows = []
    floats = report.get("bench_float32", {"rows": []})
    for of, row in [("", row) for row in bench["rows"]] + [(" of FP32", row) for row in floats["rows"]]:
        m, n, k = map(int, row["shape"].split("x"))
        where = f"{row['shape']} {row['kernel']}"
        must(row["us"] and row["samples_us"], f"{where}: was not timed")
        must(abs(statistics.median(row["samples_us"]) / row["us"] - 1) < 1e-6, f"{where}: {row['us']} us is not the median of its samples")
        must(abs(2e-6 * m * n * k / row["us"] / row["tflops"] - 1) < 1e-6, f"{where}: {row['tflops']} TFLOPS are not {row['us']} us")
        must(row["tflops"] < 70, f"{where}: {row['tflops']:.1f} TFLOPS are more than a T4's tensor cores have")
        must(row["relative_error"] < 0.02, f"{where}: relative error {row['relative_error']}")
        single = of or ("_f32" if row["accumulate"] == "float32" else "")
        rows.append({"problem": f"{row['shape']} nn row", "kernel": f"{'torch.mm' if row['kernel'] == 'torch' else row['kernel']}{single}",
                     "median_us": row["us"], "q1_us": row["q1_us"], "q3_us": row["q3_us"], "tflops": row["tflops"],
                     "relative_error": row["relative_error"], "us": row["samples_us"]})
    clock = bench["context"]["clock_mhz"]
    context = {"gpu": device["device"], "clocks": f"{clock:g} MHz while it was measured" if clock else "clock not known",
               "driver": smi[0]["driver_version"], "power": smi[0].get("power.limit", "unknown"),
               "torch": report["software"].get("torch", "none"), "hgemm": f"{report['hgemm']['version']}, commit {report['hgemm']['commit']}",
               "sha256": report["hgemm"]["sha256"], "date": report["date"], "witness": "made up" if made_up else "measured",
               "depends": "k5_tuned selection" + (" single" if floats["rows"] else ""), "mode": bench["context"]["timing"], "alpha": "1", "beta": "0",
               "repetitions": str(bench["context"]["repetitions"])}
    lines = ",\n".join(json.dumps(row) for row in rows)
    return f'{{\n"context": {json.dumps(context, indent=2)},\n"results": [\n{lines}\n]\n}}\n'


def take(path, machine, may_be_made_up=False):
    """Where a file now lies, stamped."""
    text, name = path.read_text(), path.name
    content = results.parsed(text, name)
    if content.get("what", "").startswith("hgemm report"):
        text, machine, name = from_report(content, may_be_made_up), "t4", "bench_report.json"
    target = path if path.resolve().is_relative_to(results.RESULTS) else None
    if target is None:
        must(machine, "--into says which machine's folder of bench/results it is for")
        target = results.RESULTS / machine / name
    text = stamp(text, name)
    target.parent.mkdir(exist_ok=True)
    target.write_text(text)
    return target


# ---- what needs no GPU ---------------------------------------------------------------------------

def redo():
    """Runs again what is stale and can be made here."""
    for name, command in results.REDONE.items():
        path = results.RESULTS / name
        gone = inputs.changed(results.read(path)) if path.exists() else {"it is not there"}
        if not gone:
            continue
        print(f"{name}: {', '.join(sorted(gone))}: {command}", file=sys.stderr)
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / path.name
            subprocess.run(command.replace("OUT", str(out)), shell=True, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)
            stamped = stamp(out.read_text(), path.name)
        path.write_text(stamped)


# ---- what was chosen as it is today --------------------------------------------------------------

BENCH = ROOT / "build" / "release" / "bench" / "bench_hgemm"
SHOWN = 8  # rows of a file whose plans moved


def is_of_this_choice(bench):
    """A Refused says why not."""
    must(bench.exists(), f"{bench} is not built")
    done = subprocess.run([bench, "--version"], check=True, capture_output=True, text=True)
    commit = commit_of({"hgemm": done.stdout})
    must((inputs.of_commit(commit) or {}).get("selection") == inputs.now()["selection"], f"{bench} is of {commit}, which chooses otherwise than this tree: build it")


def confirm(path, bench):
    """Why a file that is older than the choice of plans stays so; nothing where it is stamped anew, and None where it is not older."""
    text = path.read_text()
    result = results.parsed(text, path.name)
    if "selection" not in inputs.changed(result):
        return None
    why = choices.moved(result, bench)
    if not why:
        kept = result["context"]["inputs"] | {"selection": inputs.now()["selection"]}
        path.write_text(with_inputs(text, dict(sorted(kept.items()))))
    return why


def confirm_all(bench):
    is_of_this_choice(bench)
    for path in results.every_path():
        why = confirm(path, bench)
        if why is not None:
            print(f"{path.relative_to(results.RESULTS)}: {'stays stale' if why else 'every plan is what it was'}")
            print("".join(f"    {line}\n" for line in why[:SHOWN]) + (f"    and {len(why) - SHOWN} more\n" if len(why) > SHOWN else ""), end="")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    parser.add_argument("--into", metavar="MACHINE", help="the folder of bench/results")
    parser.add_argument("--made-up", action="store_true", help="take a report that says that it is made up")
    parser.add_argument("--redo", action="store_true", help="run again what is stale and needs no GPU")
    parser.add_argument("--confirm", action="store_true", help="stamp anew what is chosen today as it was")
    options = parser.parse_args()
    if not shutil.which("git") or not (options.files or options.redo or options.confirm):
        parser.error("which files?" if shutil.which("git") else "git is missing")
    try:
        if options.redo:
            redo()
        if options.confirm:
            confirm_all(BENCH)
        for path in options.files:
            try:
                print(f"{take(path, options.into, options.made_up)}: taken")
            except (KeyError, TypeError, ValueError) as error:
                raise Refused(f"is not laid out as a file of results: {error!r}") from error
            except Refused as why:
                raise Refused(f"{path}: {why}") from why
    except Refused as why:
        sys.exit(f"tools/take.py: {why}")


if __name__ == "__main__":
    main()
