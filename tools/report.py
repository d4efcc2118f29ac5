#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the generated parts of README.md and docs/: tables from the results that are committed
under bench/results/<gpu>/, the kernels of src/kernels.def, and examples/multiply.c.

    tools/report.py            rewrite what is out of date
    tools/report.py --check    change nothing; exit with 1 if something is out of date

A generated part stands between  <!-- generated: NAME -->  and  <!-- end -->.
"""
import functools
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
LADDER_SIZES = ("4096x4096x4096", "8192x8192x8192")
TITLES = {
    "bench_squares": "Squares, one launch at a time",
    "bench_large": "A large square, one launch at a time",
    "bench_single": "Squares with single-precision accumulation",
    "bench_continuous": "Squares, launches back to back",
    "bench_transposes": "Transposes and accumulators",
    "bench_odd": "Sizes that are not multiples of eight",
    "bench_skinny": "Few rows, or a small output",
    "bench_energy": "Energy",
    "bench_sweep": "Squares from 127 to 8192",
    "bench_random": "Random shapes (bench/shapes/random.csv)",
    "bench_plans": "Selection over the same random shapes",
    "bench_deepbench": "DeepBench's training shapes, column-major",
}
MODELLED_TITLES = {"bench_random": "Small random shapes (bench/shapes/small.csv)",
                   "bench_plans": "Selection over the same random shapes"}
PARTS = {f"{of}{part}": of for of in ("bench_deepbench", "bench_random") for part in range(1, 7)}  # files that are parts of one list
SUMMARISED = ("bench_sweep", "bench_random", "bench_deepbench")  # too many shapes for a row each


def results(witness="measured"):
    """{gpu folder: {file stem: result}}, as bench_hgemm --format json wrote them; parts of a list as one, of several commits."""
    found = {}
    for path in sorted((ROOT / "bench" / "results").glob("*/*.json")):
        result = json.loads(path.read_text())
        if result["context"]["witness"] == witness:
            files = found.setdefault(path.parent.name, {})
            stem = PARTS.get(path.stem, path.stem)
            if stem in files:
                if conditions(files[stem]) != conditions(result):
                    sys.exit(f"{path}: not under the conditions of the parts before it")
                if path.with_stem(stem).exists():
                    sys.exit(f"{path}: a part of {stem}.json, which is there too: remove what is stale")
                if twice := timed(files[stem]) & timed(result):
                    sys.exit(f"{path}: {' '.join(min(twice))} is in a part before it too: remove what is stale")
                result["results"] = files[stem]["results"] + result["results"]
                result["commits"] = files[stem]["commits"] | commits(result)
            files[stem] = {"commits": commits(result), **result}
    return found


def timed(result):
    return {(r["problem"], r["kernel"]) for r in result["results"]}


def conditions(result):
    hgemm = re.sub(r"commit [^,]+, ", "", result["context"]["hgemm"])
    return {key: value for key, value in result["context"].items() if key != "date"} | {"hgemm": hgemm}


def commits(result):
    return {re.search(r"commit (\S+?),", result["context"]["hgemm"]).group(1)}


def table(header, rows):
    """Leaves out empty columns."""
    used = [i for i in range(len(header)) if any(row[i] != "-" for row in rows)]
    header, rows = [header[i] for i in used], [[row[i] for i in used] for row in rows]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def number(row, key, form="{:.1f}"):
    return form.format(row[key]) if row and key in row else "-"


def provenance(result, *others):
    c = result["context"]
    repetitions = sorted({r["context"]["repetitions"] for r in (result, *others)}, key=int)
    *of, last = sorted({commit for r in (result, *others) for commit in r["commits"]})
    of = f"commits {', '.join(of)} and {last}" if of else f"commit {last}"
    hgemm = re.sub(r"commit [^,]+", of, c["hgemm"])
    cutlass = f"CUTLASS {c['cutlass']}" if "cutlass" in c else "without CUTLASS"
    if c["witness"] == "modelled":
        return (f"{c['gpu']}, not measured; {c['clocks']}; {cutlass}; hgemm {hgemm}; "
                f"alpha {c['alpha']}, beta {c['beta']}; kernel times, without launch overhead.")
    cublas = f"cuBLAS {c['cublas']}" if "cublas" in c else "without cuBLAS"
    return (f"{c['gpu']} ({c['witness']}); {c['clocks']}; driver {c['driver']}; {cublas}; {cutlass}; hgemm {hgemm}; "
            f"alpha {c['alpha']}, beta {c['beta']}, {c['mode']} mode, medians of {' or '.join(repetitions)}.")


@functools.cache
def kernels():
    """Rows of the table in the order of the ladder, as cmake/kernels.json.def has them; any C preprocessor reads it."""
    command = [os.environ.get("CC", "cc"), "-E", "-P", "-x", "c", ROOT / "cmake" / "kernels.json.def"]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)[:-1]


def rung_names():
    return list(dict.fromkeys(k["rung"] for k in kernels()))


def ladder():
    """The five rungs; of the tuned family, the kernel that hgemm itself chooses."""
    parts = []
    for files in results().values():
        squares = files.get("bench_squares")
        if not squares:
            continue
        by_name = {(r["problem"].split()[0], r["kernel"]): r for r in squares["results"]}
        sizes = [s for s in LADDER_SIZES if (s, "auto") in by_name]
        header = ["rung"] + [f"{s.split('x')[0]}: {what}" for s in sizes for what in ("TFLOPS", "% cuBLAS", "% ceiling")]
        rows = []
        for rung in rung_names() + ["cutlass", "cublasHgemm", "ceiling_f16"]:
            name = rung if (sizes and (sizes[0], rung) in by_name) else "auto"
            cells = [f"`{rung}`"]
            for size in sizes:
                row = by_name.get((size, name))
                cells += [number(row, "tflops"), number(row, "percent_cublas"), number(row, "percent_ceiling")]
            rows.append(cells)
        parts.append(table(header, rows) + "\n\n" + provenance(squares))
    return "\n\n".join(parts) or no_results()


def no_results():
    return "No results are committed yet: run `tools/gpu_check.sh` on a machine with a GPU."


def ratios(results, peer, kept=lambda problem: True):
    """By how much hgemm's own choice is faster than the peer, of all problems, in ascending order."""
    problems = {}
    for result in results:
        for r in result["results"]:
            if "median_us" in r and kept(r["problem"]):
                problems.setdefault(r["problem"], {})[r["kernel"]] = r["median_us"]
    return sorted(p[peer] / p["auto"] for p in problems.values() if peer in p and "auto" in p)


def mean(values):
    return math.exp(sum(map(math.log, values)) / len(values))


def summary(result):
    rows = []
    for peer in ("cutlass", "cublasHgemm", "cublasGemmEx_f32"):
        of = ratios([result], peer)
        if of:
            rows.append([f"`{peer}`", str(len(of)), f"{mean(of):.2f}", f"{of[0]:.2f}", f"{statistics.median(of):.2f}", f"{of[-1]:.2f}",
                         str(sum(x < 1 for x in of))])
    return table(["peer", "shapes", "hgemm's speed / peer's: geometric mean", "min", "median", "max", "shapes where hgemm is slower"], rows)


def peers():
    """A row for each list of shapes."""
    def multiple_of_8(problem):
        return int(problem.split("x")[0]) % 8 == 0

    parts = []
    for files in results().values():
        sweep = [files[f] for f in files if f == "bench_sweep"]
        lists = [("squares, N a multiple of 8", sweep, multiple_of_8),
                 ("squares, other N", sweep, lambda problem: not multiple_of_8(problem)),
                 ("random shapes", [files[f] for f in files if f == "bench_random"], lambda problem: True),
                 ("DeepBench's training shapes", [files[f] for f in files if f == "bench_deepbench"], lambda problem: True)]
        rows, used = [], []
        for name, of, kept in lists:
            pairs = [ratios(of, peer, kept) for peer in ("cutlass", "cublasHgemm")]
            if all(pairs):
                used += of
                rows.append([name, str(len(pairs[0]))] + [text for x in pairs for text in (f"{mean(x):.2f}", f"{x[0]:.2f} .. {x[-1]:.2f}")])
        if rows:
            header = ["list", "shapes", "hgemm's speed / CUTLASS's: geometric mean", "min .. max", "hgemm's speed / cublasHgemm's: geometric mean", "min .. max"]
            parts.append(table(header, rows) + "\n\n" + provenance(*used))
    return "\n\n".join(parts) or no_results()


def selection(result):
    """What hgemm's own choice loses to the fastest of the plans that were timed."""
    problems = {}
    for r in result["results"]:
        if "median_us" in r:
            problems.setdefault(r["problem"], {})[r["kernel"]] = r
    rows = []
    for automatic, suffix in (("auto", ""), ("auto_f32", "_f32")):
        losses, plans = [], 0
        for named in problems.values():
            times = {name.removeprefix("plan "): r["median_us"] for name, r in named.items()
                     if name.startswith("plan ") and ("_f32" in name) == bool(suffix)}
            chosen = named.get(automatic, {}).get("note")
            if chosen in times:
                losses.append(times[chosen] / min(times.values()))
                plans += len(times)
        if losses:
            losses.sort()
            rows.append([f"`{automatic}`", str(len(losses)), str(plans), f"{mean(losses):.3f}", f"{statistics.median(losses):.3f}",
                         f"{losses[-1]:.3f}", str(sum(x <= 1.03 for x in losses))])
    return table(["choice of", "shapes", "plans timed", "time of the choice / of the fastest plan: geometric mean", "median", "max",
                  "shapes within 3%"], rows)


def performance(witness="measured"):
    parts, titles = [], {**TITLES, **(MODELLED_TITLES if witness == "modelled" else {})}
    for files in results(witness).values():
        for stem, result in sorted(files.items(), key=lambda item: list(titles).index(item[0]) if item[0] in titles else 99):
            rows = []
            if stem in SUMMARISED:
                parts.append(f"## {titles[stem]}\n\n{provenance(result)}\n\n{summary(result)}")
                continue
            if stem == "bench_plans":
                parts.append(f"## {titles[stem]}\n\n{provenance(result)}\n\n{selection(result)}")
                continue
            energy = any("pj_per_flop" in r for r in result["results"])
            copy = any("percent_copy" in r for r in result["results"])
            for r in result["results"]:
                if "failure" in r:
                    rows.append([r["problem"], f"`{r['kernel']}`", r["failure"]] + [""] * (7 + copy + 2 * energy))
                    continue
                name = f"`{r['kernel']}`" + (f" = `{r['note']}`" if "note" in r else "")
                if r.get("on_t4", r.get("note")) != r.get("note"):
                    name += f" (T4: `{r['on_t4']}`)"
                rows.append([r["problem"], name, number(r, "median_us", "{:.2f}"),
                             number(r, "q1_us", "{:.2f}") + " .. " + number(r, "q3_us", "{:.2f}") if len(r["us"]) > 1 else "-",
                             number(r, "tflops"),
                             number(r, "percent_cublas"), number(r, "percent_cutlass"), number(r, "percent_ceiling"),
                             number(r, "gb_per_s", "{:.0f}"), number(r, "relative_error", "{:.1e}")])
                if copy:
                    rows[-1].insert(-1, number(r, "percent_copy"))
                if energy:
                    rows[-1] += [number(r, "watts", "{:.0f}"), number(r, "pj_per_flop", "{:.2f}")]
            header = ["problem", "kernel", "median us", "quartiles us", "TFLOPS", "% cuBLAS", "% CUTLASS", "% ceiling", "GB/s", "rel. error"]
            header[-1:-1] = ["% copy"] if copy else []
            header += ["W", "pJ per operation"] if energy else []
            parts.append(f"## {titles.get(stem, stem)}\n\n{provenance(result)}\n\n{table(header, rows)}")
    return "\n\n".join(parts) or no_results()


def counted():
    """What the emulated T4 counted: no times."""
    figures = {"blocks_per_sm": "thread blocks per SM", "instructions_per_hmma": "instructions per HMMA",
               "shared_waves_per_ideal": "shared wavefronts / ideal", "global_sectors_per_ideal": "global sectors / ideal",
               "partial_sectors": "partially written sectors", "operations_per_dram_byte": "flop per DRAM byte",
               "tensor_percent_of_loop": "tensor cores busy, % of main loop"}
    parts = []
    for files in results("emulated").values():
        for result in files.values():
            rows = [[r["problem"], f"`{r['kernel']}`"] + [number(r, key, "{:.2f}").removesuffix(".00") for key in figures]
                    for r in result["results"] if "note" not in r]
            c = result["context"]
            parts.append(table(["problem", "kernel", *figures.values()], rows) +
                         f"\n\nEmulated, not measured: {c['gpu']}; hgemm {c['hgemm']}; alpha {c['alpha']}, beta {c['beta']}.")
    return "\n\n".join(parts) or "No counts are committed yet."


def kernel_table():
    header = ["rung", "kernel", "block tile", "warp tile", "stages", "accumulator", "transposes", "access"]
    tile = lambda k, of: "x".join(str(k[f"{of}_{side}"]) for side in "mnk")
    return table(header, [[f"`{k['rung']}`", f"`{k['name']}`", tile(k, "block"), tile(k, "warp"), str(k["stages"]),
                           k["acc"], k["ops"], k["align"]] for k in kernels()])


def rungs():
    """Each rung's own words: the header comment of its source."""
    parts = []
    for rung in rung_names():
        comment = re.findall(r"/\*(.*?)\*/", (ROOT / "ptx" / f"{rung}.cu").read_text(), re.S)[1]
        text = "\n".join(re.sub(r"^ \* ?", "", line) for line in comment.strip("\n").splitlines()).strip()
        parts.append(f"### {rung}\n\n```\n{text}\n```\n\nSource: [ptx/{rung}.cu](../ptx/{rung}.cu)")
    return "\n\n".join(parts)


def example():
    return "```c\n" + (ROOT / "examples" / "multiply.c").read_text().rstrip("\n") + "\n```"


GENERATED = {"ladder": ladder, "peers": peers, "performance": performance,
             "modelled": lambda: performance("modelled"), "kernels": kernel_table, "rungs": rungs, "counted": counted, "example": example}


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    stale = []
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = path.read_text()
        new = re.sub(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)",
                     lambda m: m.group(1) + GENERATED[m.group(2)]() + "\n" + m.group(3), text, flags=re.S)
        if new != text:
            stale.append(path.relative_to(ROOT))
            if not check:
                path.write_text(new)
    for path in stale:
        print(f"{path}: {'out of date, run tools/report.py' if check else 'rewritten'}")
    sys.exit(1 if check and stale else 0)


if __name__ == "__main__":
    main()
