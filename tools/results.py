# SPDX-License-Identifier: MIT
"""What is committed under bench/results/, and the table of kernels: read here for report.py and the plots.

A folder of results is a machine. Every file says in its context who bears witness: `measured` on a GPU, `modelled` by
the timing model of a T4, `emulated` (counted), or `published` by others.
"""
import functools
import json
import math
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PARTS = re.compile(r"(bench_[a-z]+)[1-9]")  # files that are parts of one list
# How the names of lists begin that have other conditions, or not every contestant. python/hgemm/_measure.py has the same.
APART = ("bench_bf16", "bench_continuous", "bench_energy", "bench_experts", "bench_f32", "bench_invariant", "bench_parts", "bench_plans", "bench_weights")
# What needs no GPU and little time: tools/report.py --check fails where one is stale, tools/take.py --redo makes it again.
REDONE = {
    "t4emu/counted.json": "build/release/bench/bench_hgemm --device t4emu --accumulate f16,f32 512x512x1024 --format json --out OUT",
    "t4emu/bf16_errors.json": "build/release/bench/bf16_errors >OUT",
    "t4model/rungs.json": "build/release/bench/profile_rungs 2048 >OUT",
}


def read(path):
    return parsed(path.read_text(), path.name)


def parsed(text, name):
    """A file of results. A text, as a test printed it, has a context alone: its first line says by which hgemm and on what, the second
    has its inputs."""
    if name.endswith(".json"):
        return json.loads(text)
    head, stamp = (text.split("\n", 2) + ["", ""])[:2]
    hgemm, *on = head.removeprefix("hgemm ").split("; ")
    stamped = json.loads("{" + stamp + "}") if stamp.startswith('"inputs": ') else {}
    return {"context": {"hgemm": hgemm, "gpu": on[0] if on else "", "witness": "measured", "text": pathlib.Path(name).stem} | stamped, "results": []}


def every_path():
    """All files of results."""
    return sorted(path for path in RESULTS.glob("*/*") if path.suffix in (".json", ".txt"))


def lists(machine):
    """{name: result} of what bench_hgemm timed on a machine; parts of a list are joined."""
    return lists_in(RESULTS / machine)


@functools.cache
def lists_in(folder):
    found = {}
    for path in sorted(folder.glob("bench_*.json")):
        result = read(path)
        joined = PARTS.fullmatch(path.stem)
        name = joined.group(1) if joined else path.stem
        result["paths"] = [path]
        if name in found:
            before = found[name]
            if conditions(before) != conditions(result):
                sys.exit(f"{path}: not under the conditions of the parts before it")
            if twice := timed(before) & timed(result):
                sys.exit(f"{path}: {' '.join(min(twice))} is in a part before it too: remove what is stale")
            before["results"] += result["results"]
            before["paths"] += result["paths"]
        else:
            found[name] = result
    return found


def timed(result):
    return {(row["problem"], row["kernel"]) for row in result["results"]}


def conditions(result):
    """What two results must have in common to stand beside each other. Which of CUTLASS's configurations took part depends on the shapes: they
    are the fastest of each."""
    context = result["context"] | {"hgemm": re.sub(r"commit [^,]+, ", "", result["context"]["hgemm"])}
    if "cutlass_only" in context:
        context["cutlass_only"] = "the fastest"
    return {key: value for key, value in context.items() if key not in ("date", "inputs")}


def by_problem(result):
    """{problem: {kernel: row}} of what counted."""
    problems = {}
    for row in result["results"]:
        if "median_us" in row and "failure" not in row:
            problems.setdefault(row["problem"], {})[row["kernel"]] = row
    return problems


def newest(machine, problem, *wanted):
    """({kernel: row}, result) of a problem in the newest list that has all that is wanted; else ({}, None). Every table and figure of a
    single product takes its rows from here."""
    found, of = {}, None
    for name, result in lists(machine).items():
        rows = by_problem(result).get(problem, {}) if not name.startswith(APART) else {}
        if all(kernel in rows for kernel in wanted) and (not of or result["context"]["date"] > of["context"]["date"]):
            found, of = rows, result
    return (found, of) if wanted and of else ({}, None)


def square(machine, size, *wanted):
    """{kernel: row} at a square of that size, as newest finds it."""
    return newest(machine, f"{size}x{size}x{size} nn row", *wanted)[0]


def published():
    """(context, {size: TFLOPS}) of cuBLAS on a T4."""
    result = read(RESULTS / "published" / "t4_cublas.json")
    return result["context"], {int(row["problem"].split("x")[0]): row["tflops"] for row in result["results"]}


def counted_path():
    return RESULTS / "t4emu" / "counted.json"


def profiles_path():
    return RESULTS / "t4model" / "rungs.json"


def bf16_errors_path():
    return RESULTS / "t4emu" / "bf16_errors.json"


def counted():
    """{kernel: row} of what the emulated T4 counted, and the file's context."""
    result = read(counted_path())
    return {row["kernel"]: row for row in result["results"]}, result["context"]


def weights():
    """({problem: {kernel: row}} of products by packed weights on the modelled T4, hgemm's beside others', the results they are from). A row has
    both_times."""
    used = [result for name, result in lists("t4model").items() if name.startswith("bench_weights_")]
    peers = read(RESULTS / "t4model" / "weights_peers.json")
    used.append(peers | {"paths": [RESULTS / "t4model" / "weights_peers.json"]})
    return both_times(used), used


def both_times(of):
    """{problem: {kernel: row}} of lists: `median_us` of a launch that follows others, `first_us` of one that finds the L2 cache empty."""
    problems = {}
    for result in of:
        for problem, rows in by_problem(result).items():
            for kernel, row in rows.items():
                found = {"first_us": row["median_us"]} if result["context"].get("mode") == "first" else row
                problems.setdefault(problem, {}).setdefault(kernel, {}).update(found)
    return problems


def bf16_errors():
    """{(type, scales): {data: error}}; None: infinite or NaN."""
    found = {}
    for row in read(bf16_errors_path())["results"]:
        found.setdefault((row["type"], row["scales"]), {})[row["data"]] = row["rms_error"]
    return found


def profiles():
    """[row] of what each rung waits for by the timing model, and the file's context."""
    result = read(profiles_path())
    return result["results"], result["context"]


def ratios(problems, peer, kept=lambda problem: True, ours="auto"):
    """By how much hgemm's own choice is faster than the peer, of all problems, in ascending order."""
    return sorted(rows[peer]["median_us"] / rows[ours]["median_us"] for problem, rows in problems.items()
                  if peer in rows and ours in rows and kept(problem))


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


@functools.cache
def kernels():
    """The rows of the table of kernels, in its order, as cmake/kernels.json.def has them; any C preprocessor reads it."""
    command = [os.environ.get("CC", "cc"), "-E", "-P", "-x", "c", ROOT / "cmake" / "kernels.json.def"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[:-1]


def tile(kernel, of):
    """(m, n, k) of a kernel's `block` or `warp`."""
    return tuple(kernel[f"{of}_{side}"] for side in "mnk")


def rungs():
    """The rungs of the ladder, from the first that multiplies by tensor cores."""
    return list(dict.fromkeys(kernel["rung"] for kernel in kernels() if kernel["stages"] and re.match(r"k\d_", kernel["rung"])))
