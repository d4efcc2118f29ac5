#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes what is generated in the documents: tables from the results under bench/results/, the differences between the
rungs of the ladder, the kernels of the table, examples/multiply.c, and functions of examples/inference.c.

    tools/report.py            rewrite what is out of date
    tools/report.py --check    change nothing; exit with 1 if something is out of date

Under each table stands which files it is from, of which commit, and whether the code that they depend on has changed since. --check
lists the files that are stale so, and exits with 1 if `tools/take.py --redo` could make one anew. Either tells of links that lead nowhere,
and then exits with 1. In README.md and docs/ a generated part stands between
<!-- generated: NAME [ARGUMENT] -->  and  <!-- end -->. bench/results/<machine>/README.md is generated as a whole: every row of the files beside it. tools/plot.py and
tools/pictures.py make the figures.
"""
import argparse
import difflib
import functools
import re
import statistics
import sys

import results
from evidence import accuracy, calibration, clock, door, first_use, floats, inputs, measured, notes, packed, python_calls
from results import ROOT, geometric_mean

GPU, MODEL = "h100", "t4model"  # the machines of the summaries
SIZES = (1024, 2048, 4096, 8192)
NAIVE = "k0_naive"  # the foot of the ladder
LONG_DIFF = 40  # lines; longer ones are folded


def table(header, rows):
    """Leaves out empty columns."""
    used = [i for i in range(len(header)) if any(row[i] not in ("", "-") for row in rows)]
    header, rows = [header[i] for i in used], [[row[i] for i in used] for row in rows]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def number(row, key, form="{:.1f}"):
    return form.format(row[key]) if row and key in row else "-"


def percent(part, whole, form="{:.0f}"):
    return form.format(100 * part["tflops"] / whole["tflops"]) if part and whole else "-"


def described(name):
    """A rung as a link to its source."""
    return f"[`{name}`](../ptx/{name}.cu)"


# ---- where figures come from ---------------------------------------------------------------------

def commits_of(paths):
    """The commits of files, each once, as words."""
    found = dict.fromkeys(re.search(r"commit ([0-9a-f]+)", results.read(path)["context"]["hgemm"])[1] for path in paths)
    return " and ".join(commit[:9] for commit in found)


def stale_words(paths):
    """What changed since files were made, as a sentence; names the files where some are not stale."""
    stale = {path: inputs.changed(results.read(path)) for path in paths}
    parts = sorted(set().union(*stale.values()))
    stems = [path.stem for path in paths]
    names = [path.stem if stems.count(path.stem) == 1 else f"{path.parent.name}/{path.stem}" for path in paths if stale[path]]
    which = "" if len(names) == len(paths) else f" ({', '.join(names)})"
    return f"**Stale**{which}: {', '.join(parts)} changed since" if parts else ""


def origin(*of):
    """The line under a table: its files, their version and commit, and what they are older than. `of` are results, or paths of files."""
    every, made_by = [], {}
    for one in of:
        paths = one["paths"] if isinstance(one, dict) else [one] if one else []
        if not paths or paths[0] in every:
            continue
        every += paths
        version = re.match(r"([\d.]+), ", results.read(paths[0])["context"]["hgemm"])
        first, folder = paths[0], f"../bench/results/{paths[0].parent.name}"
        name = f"[{first.stem}]({folder}/{first.name})" if len(paths) == 1 else f"[{first.stem.rstrip('123456789')}]({folder}/README.md)"
        made_by.setdefault(" ".join(["hgemm", *(version.groups() if version else ()), "commit", commits_of(paths)]), []).append(name)
    stale, said = stale_words(every), "; ".join(f"{', '.join(names)} ({by})" for by, names in made_by.items())
    return (f"From {said}." + (f" {stale}." if stale else "")) if every else "Not run yet."


# ---- the ladder ----------------------------------------------------------------------------------

def square_name(size):
    return f"{size}x{size}x{size} nn row"


def rungs_at(machine, size):
    """{rung: row} of the newest file that has the rungs at that size, and the file; of a family of kernels, the row of the plan which
    hgemm chooses."""
    first, *_, last = results.rungs()
    rows, of = results.newest(machine, square_name(size), first, "auto")
    return (rows | {last: rows["auto"]}, of) if rows else ({}, None)


def row_of(machine, size, kernel):
    return results.square(machine, size, kernel).get(kernel)


def by_events(row):
    """TFLOPS of a modelled launch as a pair of events after a pause would say, the way in which the published ones were timed."""
    return f"{row['tflops'] * row['median_us'] / row['events_us']:.1f}" if row and "events_us" in row else "-"


def t4_ladder():
    """A T4's TFLOPS by size: modelled ones, then published ones."""
    context, published = results.published()
    sizes = [size for size in SIZES if size in published or row_of(MODEL, size, "auto")]
    used = {}
    named = [(f"`{rung}`", rung) for rung in results.rungs()[:-1]]
    named += [("**hgemm** (`k5_tuned`)", "auto"), ("**hgemm**, FP32 sums", "auto_f32"), ("CUTLASS's fastest Turing kernel", "cutlass"),
              ("the same, FP32 sums", "cutlass_f32"), ("`mma.m16n8k8` alone: the ceiling", "ceiling_f16")]
    rows = []
    for label, kernel in named:
        found = [results.newest(MODEL, square_name(size), kernel) for size in sizes]
        cells = [number(row.get(kernel), "tflops") for row, _ in found]
        if any(cell != "-" for cell in cells):
            rows.append([label, "modelled", *cells])
            shown = [by_events(row.get(kernel)) for row, _ in found]
            if kernel.split("_f32")[0] in ("auto", "cutlass") and any(cell != "-" for cell in shown):
                rows.append([f"{label}: by events after a pause", "modelled", *shown])
            used.update((id(of), of) for _, of in found if of)
    rows += measured.ladder_rows(sizes)
    rows.append(["cublasHgemm", f"[published]({context['url']})", *(str(published.get(size, "-")) for size in sizes)])
    return table(["TFLOPS on a T4", "witness", *map(str, sizes)], rows) + "\n\n" + origin(*used.values(), *measured.paths())


def climb():
    """Every rung on both witnesses."""
    shown = [(witness, machine, [size for size in SIZES if size <= 4096 and rungs_at(machine, size)[0]])
             for witness, machine in (("T4 model", MODEL), ("H100", GPU))]
    header = ["rung"]
    for witness, _, sizes in shown:
        header += [f"{witness}, {size}" for size in sizes] + [f"% of ceiling, {sizes[-1]}"]
    rows = []
    for rung in (NAIVE, *results.rungs()):
        cells = [f"`{rung}`"]
        for _, machine, sizes in shown:
            cells += [number(rungs_at(machine, size)[0].get(rung), "tflops") for size in sizes]
            largest, _ = rungs_at(machine, sizes[-1])
            cells.append(percent(largest.get(rung), largest.get("ceiling_f16")))
        rows.append(cells)
    return table(header, rows) + "\n\nTFLOPS at squares of that size. T4 model: modelled, no T4 was measured. H100: measured. " + origin(
        *(rungs_at(machine, size)[1] for _, machine, sizes in shown for size in sizes))


def evidence_of_naive():
    """What a GPU says of the first rung, which has no tensor cores to be counted, and which the model would take minutes for."""
    (rows, of), counted = rungs_at(GPU, 4096), results.counted()[0][NAIVE]
    m, n, k = map(int, counted["problem"].split()[0].split("x"))
    lines = [["bytes asked of the L2 for each byte of A, B and D", "counted", f"{counted['l2_bytes'] / (2 * (m * k + k * n + m * n)):.0f}"],
             ["TFLOPS at 4096", "H100", number(rows[NAIVE], "tflops")], ["% of the ceiling", "H100", percent(rows[NAIVE], rows["ceiling_f16"], "{:.1f}")]]
    return table(["", "witness", f"`{NAIVE}`"], lines) + f"\n\nSource: {described(NAIVE)}. " + origin(results.counted_path(), of)


def evidence(rung):
    """What the witnesses say of a rung, beside the one before it."""
    if rung == NAIVE:
        return evidence_of_naive()
    rungs = results.rungs()
    before = rungs[rungs.index(rung) - 1] if rung != rungs[0] else None
    shown = [name for name in (before, rung) if name]
    profiles = {row["kernel"]: row for row in results.profiles()[0]}
    counted = results.counted()[0]
    size = int(profiles[rung]["problem"].split("x")[0])
    gpu_size = max(size for size in SIZES if rungs_at(GPU, size)[0] and size <= 4096)
    (gpu, of_gpu), (model, of_model) = rungs_at(GPU, gpu_size), rungs_at(MODEL, size)

    def count(name, key):
        row = counted.get(name) or counted.get(profiles[name].get("note"))
        return number(row, key, "{:.2f}")

    def line(label, witness, cell):
        return [label, witness, *(cell(name) for name in shown)]

    def profile(*path):
        def cell(name):
            value = profiles[name]
            for key in path:
                value = value[key]
            return f"{value:.1f}"
        return cell

    rows = [line("shared-memory wavefronts, of the fewest possible", "counted", lambda n: count(n, "shared_waves_per_ideal")),
            line("machine instructions per HMMA", "counted", lambda n: count(n, "instructions_per_hmma")),
            line(f"TFLOPS at {size}", "T4 model", lambda n: number(model[n], "tflops")),
            line("tensor cores busy, % of the time", "T4 model", profile("percent", "tensor")),
            line("load/store units busy, %", "T4 model", profile("percent", "lsu"))]
    rows += [line(f"waiting for {what}, %", "T4 model", profile("waits", key))
             for key, what in (("global memory", "global memory"), ("shared memory", "shared memory"),
                               ("load/store queue", "a place in the load/store queue"))]
    rows.append(line(f"TFLOPS at {gpu_size}", "H100", lambda n: number(gpu[n], "tflops")))
    rows.append(line("% of its ceiling", "H100", lambda n: percent(gpu[n], gpu.get("ceiling_f16"))))
    return table(["", "witness", *(f"`{name}`" for name in shown)], rows) + f"\n\nSource: {described(rung)}. " + origin(
        results.profiles_path(), results.counted_path(), of_model, of_gpu)


def code_of(rung):
    """A rung's source after its header comment, its name taken out."""
    source = (ROOT / "ptx" / f"{rung}.cu").read_text()
    return re.sub(r"^.*?\*/.*?\*/\n", "", source, count=1, flags=re.S).replace(rung, "RUNG").splitlines()


def code(rung):
    """The whole of a rung."""
    text = "\n".join(code_of(rung)).replace("RUNG", rung)
    return f"```cpp\n{text}\n```\n\nSource: {described(rung)}"


def loop(rung):
    """The main loop of a rung, whose file is longer than a page should show."""
    source = (ROOT / "ptx" / f"{rung}.cu").read_text()
    found = re.search(r"^    for \(u32 (?:k0|left|k) .*?^    }$", source, re.M | re.S)
    if not found:
        sys.exit(f"ptx/{rung}.cu has no main loop")
    return f"```cpp\n{found[0]}\n```"


def diff(rung):
    """A rung against the one before it; what ends up the same is left out."""
    rungs = results.rungs()
    before = rungs[rungs.index(rung) - 1]
    lines = list(difflib.unified_diff(code_of(before), code_of(rung), n=1, lineterm=""))[2:]
    text = "```diff\n" + "\n".join("" if line.startswith("@@") else line for line in lines).strip("\n") + "\n```"
    changed = sum(line[0] in "+-" for line in lines)
    if len(lines) > LONG_DIFF:
        text = f"<details>\n<summary>{changed} changed lines</summary>\n\n{text}\n\n</details>"
    return text


def kernel_table():
    def size(kernel, of):
        return "x".join(map(str, results.tile(kernel, of)))

    header = ["rung", "kernel", "block tile", "warp tile", "stages", "sums", "transposes", "access"]
    return table(header, [[f"`{k['rung']}`", f"`{k['name']}`", size(k, "block"), size(k, "warp"), str(k["stages"]),
                           k["acc"], k["ops"], next(filter(None, map(k.get, ("align", "f32", "weights"))))] for k in results.kernels()])


PARTS_OF_K5 = (  # what it is, the product, the plan without it and the plan with it
    ("larger tiles", "2048x2048x2048", "k5_64x64", "k5_128x128"),
    ("split-K of the last wave", "2048x2048x2048", "k5_128x128", "k5_128x128 tail k/2"),
    ("split-K of all tiles", "64x64x16384", "k5_16x64", "k5_16x64 k/8"),
)


def attribution():
    """What each part of the tuned rung that is a choice among plans is worth: the product's time without it and with it."""
    rows, used = [], []
    for what, shape, without, with_it in PARTS_OF_K5:
        cells = []
        for machine in (MODEL, GPU):
            of = results.lists(machine).get("bench_parts")
            found = results.by_problem(of).get(f"{shape} nn row", {}) if of else {}
            chosen = {found["auto"]["note"]: found["auto"]} if found else {}
            us = [(found.get(f"plan {plan}") or found.get(plan) or chosen.get(plan, {})).get("median_us") for plan in (without, with_it)]
            cells.append(f"{us[0]:.1f} → {us[1]:.1f} us, {100 * us[1] / us[0] - 100:+.0f}%" if all(us) else "-")
            used += [of] if all(us) else []
        rows.append([what, shape, f"`{without}`, `{with_it}`", *cells])
    return table(["part", "product", "without it, with it", "T4 model", "H100"], rows) + "\n\n" + origin(*used)


def newer_only():
    """The kernels that a T4 never runs: their PER_SM begins with 0."""
    table_ = (ROOT / "src" / "table" / "kernels.def").read_text()
    names = re.findall(r"^HGEMM_KERNEL\(\w+, (\w+),[^;]*?PER_SM\((\d+)", table_, re.M)
    return "They are " + ", ".join(f"`{name}`" for name, blocks in names if blocks == "0") + "."


def invariance(machine):
    """What batch invariance costs: the plan that hgemm chooses without it, and the fastest whole kernel that has it."""
    names = {k["name"] for k in results.kernels() if (k["block_k"], k["warp_k"]) == (64, 32)}
    rows = []
    for problem, found in results.by_problem(results.lists(machine)["bench_invariant"]).items():
        for sums in ("", "_f32"):
            ours = found.get(f"auto{sums}")
            kept = [row for name, row in found.items() if name in names and name.endswith("_f32") == bool(sums)]
            if ours and kept:
                best = min(kept, key=lambda row: row["median_us"])
                rows.append([problem.split()[0], "FP32" if sums else "FP16", f"`{ours['note']}`", number(ours, "median_us"),
                             f"`{best['kernel']}`", number(best, "median_us"), against(ours, best)])
    return table(["product", "sums", "chosen without it", "us", "fastest with it", "us", "times as long"], rows) + "\n\n" + with_witness(
        machine, results.lists(machine)["bench_invariant"])


BF16_WAYS = (("auto_of_bf16", ("bf16", "given"), "BF16, scales given (of weights: `hgemm_find_scale`)"),
             ("auto_of_bf16_found", ("bf16", "found"), "BF16, scales found by the call"), ("auto_f32", ("f16", "none"), "FP16, of the same numbers"),
             (None, ("f32", "none"), "FP32 on CUDA cores"))
T4_PEAK = "https://www.nvidia.com/en-us/data-center/tesla-t4/"  # of FP32, in TFLOPS: 8.1


def bf16_list(machine):
    """The list of BF16 products, and {problem: {kernel: row}}."""
    result = results.lists(machine).get("bench_bf16")
    return result, results.by_problem(result) if result else {}


def bf16():
    """BF16 beside FP16 and FP32: squares' TFLOPS on both machines, and errors."""
    machines, errors = ((MODEL, "T4"), (GPU, "H100")), results.bf16_errors()
    squares = [(machine, label, size, bf16_list(machine)[1].get(square_name(size), {})) for machine, label in machines for size in SIZES]
    squares = [square for square in squares if square[-1]]
    rows = []
    for kernel, of, label in BF16_WAYS:
        cells = [number(named.get(kernel), "tflops") if kernel else "below 8.1" if machine == MODEL else "-" for machine, _, _, named in squares]
        cells += ["infinity" if error is None else f"{error:.0e}".replace("e-0", "e-") for error in errors[of].values()]
        rows.append([label, *cells])
    header = [f"TFLOPS on {'a' if machine == MODEL else 'an'} {label}, {size}" for machine, label, size, _ in squares]
    return table(["A and B", *header, "error: normal data", "with outliers of 8e5", "over 80 binades"], rows) + (
        f"\n\nSquares, FP32 sums, D of the type of A and B. T4: modelled, and for FP32 the [published]({T4_PEAK}) peak; H100: measured. Errors: "
        "of FP32 results, 128x128 with k = 2048, root mean squares over that of sum |a||b|; emulated T4, and for FP32 computed, one "
        "product after the other. " + origin(bf16_list(MODEL)[0], bf16_list(GPU)[0], results.bf16_errors_path()))


def share(row, whole):
    return f"{100 * whole['median_us'] / row['median_us']:.0f}%" if row and whole else "-"


def bf16_share(machine):
    """BF16's speed in that of FP16, of all products that were timed."""
    result, problems = bf16_list(machine)
    rows = [[problem.removesuffix(" row"), *(share(named.get(f"auto_of_bf16{ways}"), named.get("auto_f32")) for ways in ("", "_b_given", "_found")),
             *(f"`{named[kernel]['note']}`" for kernel in ("auto_f32", "auto_of_bf16"))] for problem, named in problems.items()]
    return table(["product", "both scales given", "B's given", "both found", "plan of FP16", "plan of BF16"], rows) + "\n\n" + origin(result)


def f32_products(machine):
    """Products of FP32: speeds in those of FP16 with FP32 sums and of the peers, and errors, of all products that were timed; and of random
    shapes the geometric mean."""
    lists = {name: result for name, result in results.lists(machine).items() if name.startswith("bench_f32")}
    by_shape = lists.pop("bench_f32_random", None)
    if not lists:
        return "Not run yet."
    rows, problems = [], {}
    for result in lists.values():
        for problem, named in results.by_problem(result).items():
            problems[problem] = {**named, **problems.get(problem, {})}
    for problem, named in problems.items():
        ours = named.get("auto_of_f32")
        errors = (number(named.get(kernel), "relative_error", "{:.0e}").replace("e-0", "e-")
                  for kernel in ("auto_of_f32", "cublasSgemm", "cublasGemmEx_tf32", "auto_f32"))
        rows.append([problem.removesuffix(" row"), number(ours, "tflops"), share(ours, named.get("auto_f32")),
                     *(share(named.get(f"auto_of_f32_{accuracy}"), named.get("auto_f32")) for accuracy in ("16bits", "11bits")),
                     *(against(ours, named.get(kernel)) for kernel in ("cutlass_of_f32", "cublasSgemm", "cublasGemmEx_tf32")), *errors])
    text = table(["product", "TFLOPS", "of FP16's speed", "of 16 bits", "of 11 bits", "speed / CUTLASS's", "speed / SGEMM's", "speed / TF32's", "error", "SGEMM's", "TF32's", "FP16's"], rows)
    if by_shape:
        speeds = results.ratios(results.by_problem(by_shape), "cublasSgemm", ours="auto_of_f32")
        text += (f"\n\nOver {len(speeds)} random shapes the speed over SGEMM's is {geometric_mean(speeds):.2f} in the geometric mean, {speeds[0]:.2f} at "
                 f"worst, and SGEMM is faster at {sum(speed < 1 for speed in speeds)}.")
    if any("cutlass_of_f32" in named for named in problems.values()):
        text += ("\n\nCUTLASS's: the fastest of its kernels for FP32 units (OpClassSimt) that was tried, k in slices where that is faster; which were "
                 "tried is in the file.")
    return (f"{text}\n\nErrors: root mean squares of D's over that of its values; A and B are random in [-1, 1). "
            f"{origin(*lists.values(), by_shape)}")


def f32_energy(machine):
    """What FP32 products cost in energy, beside others."""
    result = results.lists(machine).get("bench_energy_f32")
    if not result:
        return "Not run yet."
    rows = [[problem.removesuffix(" row"), label, number(named.get(kernel), "tflops"), number(named.get(kernel), "watts", "{:.0f}"),
             number(named.get(kernel), "pj_per_flop", "{:.2f}")]
            for problem, named in results.by_problem(result).items()
            for kernel, label in (("auto_of_f32", "FP32, hgemm"), ("cublasSgemm", "FP32, cuBLAS's SGEMM"), ("cublasGemmEx_tf32", "TF32, cuBLAS"),
                                  ("cublasGemmEx_f32", "FP16, cuBLAS"), ("auto_f32", "FP16, hgemm")) if kernel in named]
    return table(["product", "A and B", "TFLOPS", "W", "pJ per operation"], rows) + "\n\n" + origin(result)


WEIGHTS = (("auto_of_int4:128:none:f16", "INT4, groups of 128"), ("marlin int4:128", "Marlin"), ("auto_of_nf4:64:none:f16", "NF4, groups of 64"),
           ("bitsandbytes nf4:64", "bitsandbytes NF4"), ("auto_of_int8:128:none:f16", "INT8, groups of 128"),
           ("auto_of_bf16_int4:128:none:f16", "INT4, A of BF16"), ("auto_f32", "FP16"))


def weights():
    """Products by packed weights, by the T4's model, beside others; the plot has those between."""
    problems, used = results.weights()
    problems = {problem: named for problem, named in problems.items() if bin(int(problem.split("x")[0])).count("1") == 1}
    rows = []
    for problem, named in sorted(problems.items(), key=lambda item: [int(x) for x in item[0].split()[0].split("x")[1:]] + [int(item[0].split("x")[0])]):
        ours = named.get(WEIGHTS[0][0], {})
        both = ([number(named.get(kernel), which) for which in ("median_us", "first_us")] for kernel, _ in WEIGHTS)
        rows.append([problem.removesuffix(" nt row"), *(" / ".join(times) if times != ["-", "-"] else "-" for times in both),
                     f"`{ours['note']}`" if "note" in ours else "-"])
    return table(["m x n x k, us by weights", *(label for _, label in WEIGHTS), "plan of INT4"], rows) + (
        "\n\nTesla T4 (timing model), 1590 MHz: modelled, not measured. Two times: of a launch that follows others like it, on other operands, while L2 "
        "still writes back what these left / of a first launch, which finds the L2 cache empty. FP32 sums; "
        "[Marlin](https://github.com/vllm-project/vllm), as vLLM builds it for sm_75, with FP16 sums, and "
        "[bitsandbytes](https://github.com/bitsandbytes-foundation/bitsandbytes), of which both have other kernels for some rows. INT4 in groups of 128 takes 33 us at 261 GB/s where n and k are 4096. " + origin(*used))


def experts():
    """Mixtures of experts with packed weights, by the T4's model, beside the time of the bytes that they cannot but read and write."""
    used = [results.lists(MODEL).get(name) for name in ("bench_experts", "bench_experts_first")]
    used, rows, dram = [one for one in used if one], [], clock.constants()["dram_rate"].value * clock.MHZ / 1e3  # GB/s
    if not used:
        return origin()
    for problem, named in results.both_times(used).items():
        shape, of, top = re.fullmatch(r"(\S+) nt experts (\d+):(\d+) row", problem).groups()
        tokens, n, k = map(int, shape.split("x"))
        halves, ours = named.get("auto_f32"), next(row for kernel, row in named.items() if kernel.startswith("auto_of_"))
        bytes_of = lambda row: 1e3 * row["gb_per_s"] * row["median_us"]
        least = bytes_of(ours) / dram / 1e3
        hit = "-" if not halves else f"{(bytes_of(halves) / 2 - tokens * int(top) * (n + k)) / (n * k):.0f} of {of}"
        rows.append([shape, hit, f"{least:.0f}", *(f"{us:.1f}, {us / least:.2f}" if us else "-" for us in map(ours.get, ("median_us", "first_us"))),
                     number(halves, "median_us"), f"`{ours['note']}`"])
    return table(["tokens x n x k", "experts hit", "bytes' time, us", "INT4, groups of 128: us, of the bytes'", "the same, first launch", "FP16 weights, us",
                  "plan of INT4"], rows) + (
        f"\n\nTesla T4 (timing model), 1590 MHz: modelled, not measured. Each token takes two experts at random, and rows are in their order. "
        f"Bytes: the weights of experts that are hit, A and D, once, at {dram:.0f} GB/s. FP32 sums, one call; a launch that follows others like it, and one "
        "that finds the L2 cache empty. " + origin(*used))


def sensitivity(machine):
    """How far modelled times move with each constant of the timing model."""
    path = results.RESULTS / machine / "sensitivity.json"
    times, constants = {}, clock.constants()
    for row in results.read(path)["results"]:
        times.setdefault(row["change"], {})[row["kernel"], row["problem"]] = row["median_us"]
    usual = times.pop("")
    lines, most = [], {}
    for change, moved in times.items():
        name, value = change.split("=")
        shares = {product: 100 * (us / usual[product] - 1) for product, us in moved.items()}
        lines.append([f"`{name}` {constants[name].value:.5g} -> {value}", *(f"{share:+.1f}%" for share in shares.values())])
        most = {product: max(most.get(product, 0), abs(share)) for product, share in shares.items()}
    header = [("" if kernel == "auto" else f"`{kernel}` ") + re.sub(r"^(\d+)x\1x\1$", r"\1", problem.split()[0]) for kernel, problem in usual]
    lines.append(["the most", *(f"{most[product]:.1f}%" for product in usual)])
    return table(["change", *header], lines) + "\n\nKernel times of the T4 model, one run each: modelled, not measured. " + origin(path)


# ---- summaries -----------------------------------------------------------------------------------

def with_witness(machine, *of):
    """Who bears witness under which conditions, and which files a table is from."""
    contexts = [found["context"] for found in of]
    said = {key: " or ".join(dict.fromkeys(c[key].split(",")[0] if key == "cutlass" else c[key] for c in contexts if key in c))
            for key in ("gpu", "clocks", "driver", "cublas", "cutlass")}
    if contexts[0]["witness"] == "modelled":
        words = f"{said['gpu']}, {said['clocks']}: modelled, not measured. Kernel times, without the launch."
    else:
        peers = "".join(f"; {name} {said[key]}" for key, name in (("cublas", "cuBLAS"), ("cutlass", "CUTLASS")) if said[key])
        words = f"{said['gpu']}: measured; {said['clocks']}; driver {said['driver']}{peers}."
    return f"{words} {origin(*of)} All rows: [bench/results/{machine}](../bench/results/{machine}/README.md)."


def against(ours, theirs):
    return f"{theirs['median_us'] / ours['median_us']:.2f}" if ours and theirs else "-"


def newest_of(machine, size, used, *wanted):
    """Rows of a square, from the newest file that has all that is wanted, which is added to the used ones."""
    found, of = results.newest(machine, square_name(size), *wanted)
    if of:
        used[id(of)] = of
    return found


def squares(machine):
    """hgemm beside its peers, both kinds of sums. Speeds are of the newest file that has hgemm, a ratio of the newest that has both."""
    _, published = results.published()
    rows, used = [], {}
    for size in sorted({int(p.split("x")[0]) for name, r in results.lists(machine).items() if name not in results.APART
                        for p in results.by_problem(r) if re.fullmatch(r"(\d+)x\1x\1 nn row", p)} & {512, 768, 1536, *SIZES}):
        cells = [str(size)]
        for sums, cublas in (("", "cublasHgemm"), ("_f32", "cublasGemmEx_f32")):
            ours = f"auto{sums}"
            cells.append(number(newest_of(machine, size, used, ours).get(ours), "tflops"))
            for peer, shown in ((f"ceiling_{sums[1:] or 'f16'}", percent), (f"cutlass{sums}", against), (cublas, against)):
                found = newest_of(machine, size, used, ours, peer)
                cells.append(shown(found.get(ours), found.get(peer)))
        cells.append(by_events(newest_of(machine, size, used, "auto").get("auto")))
        cells.append(str(published.get(size, "-")) if machine == MODEL else "-")
        rows.append(cells)
    header = ["N"]
    for sums in ("", "FP32 sums: "):
        header += [f"{sums}TFLOPS", f"{sums}% of ceiling", f"{sums}speed / CUTLASS's", f"{sums}speed / cuBLAS's"]
    return table([*header, "TFLOPS by events after a pause", "cublasHgemm's TFLOPS, published"], rows) + "\n\n" + with_witness(machine, *used.values())


def aligned_square(problem):
    return int(re.match(r"\d+", problem).group()) % 8 == 0


def shape_lists(machine):
    """A row for each list of shapes: hgemm's speed over its peers'."""
    here = results.lists(machine)
    rows, used = [], {}
    for label, name, kept in (("squares, N a multiple of 8", "bench_sweep", aligned_square),
                              ("squares, other N", "bench_sweep", lambda problem: not aligned_square(problem)),
                              ("sizes that are not multiples of 8", "bench_odd", lambda problem: True),
                              ("few rows, or a small output", "bench_skinny", lambda problem: True),
                              ("random shapes", "bench_random", lambda problem: True),
                              ("DeepBench's training shapes", "bench_deepbench", lambda problem: True),
                              ("attention: batches of small k or n", "bench_attention", lambda problem: True),
                              ("thin products: one side of 8 at most", "bench_thin", lambda problem: True)):
        if name not in here:
            continue
        problems = results.by_problem(here[name])
        for sums in ("", "_f32"):
            cells = []
            for peer in (f"cutlass{sums}", "cublasHgemm" if not sums else "cublasGemm"):
                of = results.ratios(*with_peer(problems, peer), kept, f"auto{sums}")
                cells += [f"{geometric_mean(of):.2f}", f"{of[0]:.2f} to {of[-1]:.2f}"] if of else ["-", "-"]
                count = len(of) if of else 0
            if any(cell != "-" for cell in cells):
                used[name] = here[name]
                total = sum("auto" + sums in rows_ and kept(problem) for problem, rows_ in problems.items())
                rows.append([label + (", FP32 sums" if sums else ""), str(max(total, count)), *cells])
    return table(["list", "shapes", "speed / CUTLASS's: geometric mean", "range", "speed / cuBLAS's: geometric mean", "range"],
                 rows) + "\n\n" + with_witness(machine, *used.values())


def batches(machine):
    """Small products in batches and others that bytes bind: beside cuBLAS where they were measured, beside a copy where modelled."""
    result = results.lists(machine)["bench_batches"]
    is_modelled = result["context"]["witness"] == "modelled"
    copies = clock.copy_gb_per_s() if is_modelled else None
    rows = []
    for problem, named in results.by_problem(result).items():
        m_n_k, trans, batch = re.match(r"(\S+) (\w\w)(?: batch (\d+))? row$", problem).groups()
        cells = [f"{m_n_k} {trans}", batch or "1"]
        peers = [row for kernel, row in named.items() if kernel.startswith("cublas")]
        for ours in (named.get("auto"), named.get("auto_f32")):
            cells += [number(ours, "median_us"), number(ours, "gb_per_s", "{:.0f}")]
            cells.append(against(ours, min(peers, key=lambda row: row["median_us"])) if peers and ours else "-")
            cells.append(f"{100 * ours['gb_per_s'] / copies:.0f}" if copies and ours else "-")
            cells.append(f"`{ours['note']}`" if ours and "note" in ours else "-")
        rows.append(cells)
    header = ["product", "matrices"]
    for sums in ("", "FP32 sums: "):
        header += [sums + what for what in ("us", "GB/s", "speed / the better cuBLAS's", "% of a copy's rate", "plan")]
    copied = f" A copy's rate is {copies:.0f} GB/s, by the model's constants." if copies else ""
    return table(header, rows) + "\n\n" + with_witness(machine, result) + copied


def with_peer(problems, prefix):
    """The problems with the first contestant whose name begins so under that very name: cuBLAS has a function for each
    kind of call."""
    renamed = {}
    for problem, rows in problems.items():
        named = {kernel: row for kernel, row in rows.items() if kernel.startswith("auto")}
        peer = next((row for kernel, row in rows.items() if kernel.startswith(prefix) and
                     (not prefix.startswith("cutlass") or kernel == prefix)), None)
        renamed[problem] = named | ({prefix: peer} if peer else {})
    return renamed, prefix


def epilogues(machine):
    """What an epilogue costs: time with it over the plain product's, over all shapes of the list."""
    problems = results.by_problem(results.lists(machine)["bench_epilogues"])
    rows = []
    for sums in ("", "_f32"):
        plain = f"auto{sums}"
        for kernel in dict.fromkeys(name for named in problems.values() for name in named if name.startswith(f"{plain}+")):
            of = sorted(named[kernel]["median_us"] / named[plain]["median_us"] for named in problems.values()
                        if kernel in named and plain in named)
            if of:
                rows.append([kernel.removeprefix(f"{plain}+").replace("+", ", "), "FP32" if sums else "FP16", str(len(of)),
                             f"{geometric_mean(of):.3f}", f"{of[0]:.2f} to {of[-1]:.2f}"])
    return table(["epilogue", "sums", "shapes", "times as long as without: geometric mean", "range"], rows) + "\n\n" + origin(
        results.lists(machine)["bench_epilogues"])


def chosen_plans(machine):
    """What hgemm's choice loses to the fastest of the plans that were timed."""
    found = selection(results.lists(machine)["bench_plans"])
    losses = sorted(row["loss"] for row in found)
    return (f"Over {len(losses)} random shapes and {sum(row['plans'] for row in found)} plans, what hgemm chooses takes "
            f"{100 * geometric_mean(losses) - 100:.1f}% longer than the fastest plan in the geometric mean, {100 * losses[-1] - 100:.0f}% at "
            f"worst, and is within 3% at {sum(loss <= 1.03 for loss in losses)}.\n\n" + origin(results.lists(machine)["bench_plans"]))


def energy(machine):
    result = results.lists(machine)["bench_energy"]
    rows = [[row["problem"].split()[0], name_of(row), number(row, "tflops"), number(row, "watts", "{:.0f}"),
             number(row, "pj_per_flop", "{:.2f}")] for row in result["results"] if "watts" in row]
    return table(["problem", "", "TFLOPS", "W", "pJ per operation"], rows) + "\n\n" + with_witness(machine, result)


# ---- all rows of a machine -----------------------------------------------------------------------

PLANS_BY_WEIGHTS = {"int4": "INT4, groups of 128", "int4_32": "INT4, groups of 32", "nf4": "NF4", "int8": "INT8", "bf16": "INT4, A of BF16"}
TITLES = {
    "bench_ladder": "The ladder",
    "bench_squares": "Squares, one launch at a time",
    "bench_large": "Large squares, one launch at a time",
    "bench_large_f32": "The same with FP32 sums",
    "bench_bf16": "Products of BF16",
    "bench_f32": "Products of FP32",
    "bench_energy_f32": "Energy of FP32",
    "bench_single": "Squares with FP32 sums",
    "bench_continuous": "Squares, launches back to back",
    "bench_transposes": "Transposes and sums",
    "bench_odd": "Sizes that are not multiples of eight",
    "bench_skinny": "Few rows, or a small output",
    "bench_attention": "Attention: batches",
    "bench_thin": "Thin products",
    "bench_batches": "Batches of small products, and few columns",
    "bench_epilogues": "Epilogues",
    "bench_invariant": "Kernels that are batch-invariant, and the plan that is chosen without",
    "bench_energy": "Energy",
    "bench_experts": "Experts of packed weights, two for each token",
    "bench_experts_first": "The same by first launches",
    "bench_sweep": "Many squares",
    "bench_random": "Random shapes",
    "bench_deepbench": "DeepBench's training shapes, column-major",
    "bench_plans": "Plans: the one chosen, and the fastest",
    **{f"bench_plans_weights_{name}": f"Plans by packed weights: {words}" for name, words in PLANS_BY_WEIGHTS.items()},
}
LONG = ("bench_sweep", "bench_random", "bench_deepbench")  # one row for each shape

LEGEND = """A problem is MxNxK, the transposes of A and B (`n` or `t`), and the layout. GB/s counts what cannot be avoided: A, B and,
unless beta is 0, C read once, and D written once.

| row | meaning |
|---|---|
| `ceiling_f16`, `ceiling_f32` | a loop of `mma.m16n8k8` on registers, as many operations as the problem has |
| `copy` | the driver's copy of eight times the L2 cache's size |
| `cutlass` = ... | CUTLASS and the configuration that won: block tile, alignment, split-K |
| `auto` = ... | the plan that hgemm chose |
| `k1_tiled` ... | the kernel by itself, never split |

| column | meaning |
|---|---|
| % cuBLAS | speed over `cublasHgemm`'s with FP16 sums, over `cublasGemmEx`'s with FP32 sums |
| % CUTLASS, % ceiling | speed over that of the row for the same sums |
| % copy | GB/s over those of `copy`: how near to DRAM's limit the problem runs |
| rel. error | root mean square of the errors over that of the values |

| plan | meaning |
|---|---|
| `k5_256x256` | whole tiles only |
| `k5_16x64 k/4` | split-K: the k of every tile is cut into four parts |
| `k5_256x256 tail k/4` | only the tiles that do not fill the last wave are split |
| `k5_256x256 tail 1x6656+1536` | the same, in parts of unequal length: one of 6656 and one of 1536 |
| `k5_64x128 copy` | on aligned copies of unaligned operands |"""


def name_of(row):
    return f"`{row['kernel']}`" + (f" = `{row['note']}`" if "note" in row else "")


def provenance(result):
    c = result["context"]
    hgemm = re.sub(r"commit [^,]+", "commit " + commits_of(result["paths"]), c["hgemm"])
    words = [c["gpu"] + (": modelled, not measured" if c["witness"] == "modelled" else ": measured"), c["clocks"]]
    if c["witness"] != "modelled":
        words += [f"driver {c['driver']}", f"cuBLAS {c['cublas']}" if "cublas" in c else "without cuBLAS", f"{c['mode']} mode"]
    cutlass = f"CUTLASS {c['cutlass']}" if "cutlass" in c else "without CUTLASS"
    if "cutlass_only" in c: # by --cutlass
        cutlass += ", of whose configurations some took part, named in the file: those that had been fastest when all were tried"
    words += [cutlass, f"hgemm {hgemm}",
              f"alpha {c['alpha']}, beta {c['beta']}", f"medians of {c['repetitions']}" if c["repetitions"] != "1" else "one run"]
    stale = stale_words(result["paths"])
    return "; ".join(words) + "." + (f" {stale}." if stale else "")


def every_contestant(result):
    rows = []
    for r in result["results"]:
        if "failure" in r:
            rows.append([r["problem"], name_of(r), r["failure"], *["-"] * 10])
            continue
        spread = number(r, "q1_us", "{:.2f}") + " .. " + number(r, "q3_us", "{:.2f}") if len(r["us"]) > 1 else "-"
        rows.append([r["problem"], name_of(r), number(r, "median_us", "{:.2f}"), spread, number(r, "tflops"),
                     number(r, "percent_cublas"), number(r, "percent_cutlass"), number(r, "percent_ceiling"),
                     number(r, "gb_per_s", "{:.0f}"), number(r, "percent_copy"), number(r, "relative_error", "{:.1e}"),
                     number(r, "watts", "{:.0f}"), number(r, "pj_per_flop", "{:.2f}")])
    return table(["problem", "kernel", "median us", "quartiles us", "TFLOPS", "% cuBLAS", "% CUTLASS", "% ceiling", "GB/s", "% copy",
                  "rel. error", "W", "pJ per operation"], rows)


def every_shape(result):
    """A row for each problem: hgemm's time, and how much longer its peers take."""
    problems = results.by_problem(result)
    peers = [peer for peer in ("cutlass", "cublasHgemm", "cublasGemmEx_f32") if any(peer in rows for rows in problems.values())]
    summary, rows = [], []
    for peer in peers:
        of = results.ratios(problems, peer)
        summary.append([f"`{peer}`", str(len(of)), f"{geometric_mean(of):.2f}", f"{of[0]:.2f}", f"{statistics.median(of):.2f}",
                        f"{of[-1]:.2f}", str(sum(x < 1 for x in of))])
    for problem, named in problems.items():
        ours = named.get("auto")
        if ours:
            rows.append([problem, f"`{ours['note']}`", number(ours, "median_us", "{:.2f}"), number(ours, "tflops"),
                         number(ours, "gb_per_s", "{:.0f}"), *(against(ours, named.get(peer)) for peer in peers),
                         f"`{named['cutlass']['note']}`" if "cutlass" in named else "-"])
    return table(["peer", "shapes", "hgemm's speed / peer's: geometric mean", "min", "median", "max", "shapes where hgemm is slower"],
                 summary) + "\n\n" + table(
        ["problem", "plan", "median us", "TFLOPS", "GB/s", *(f"speed / `{peer}`" for peer in peers), "CUTLASS's configuration"], rows)


def selection(result):
    """[{problem, chosen, fastest, loss, plans}] of a file of plans."""
    found = []
    for problem, named in results.by_problem(result).items():
        times = {name.removeprefix("plan "): row["median_us"] for name, row in named.items() if name.startswith("plan ")}
        chosen = next((row.get("note") for kernel, row in named.items() if kernel.startswith("auto")), None)
        if chosen in times:
            fastest = min(times, key=times.get)
            found.append({"problem": problem, "chosen": chosen, "us": times[chosen], "fastest": fastest, "fastest_us": times[fastest],
                          "loss": times[chosen] / times[fastest], "plans": len(times)})
    return found


def every_choice(result):
    return table(["problem", "chosen", "us", "fastest", "us", "chosen / fastest", "plans timed"],
                 [[row["problem"], f"`{row['chosen']}`", f"{row['us']:.2f}", f"`{row['fastest']}`", f"{row['fastest_us']:.2f}",
                   f"{row['loss']:.3f}", str(row["plans"])] for row in selection(result)])


def timed_page(machine):
    parts = []
    for name, result in sorted(results.lists(machine).items(), key=lambda item: [*TITLES, item[0]].index(item[0])):
        rows = every_choice(result) if name.startswith("bench_plans") else every_shape(result) if name in LONG else every_contestant(result)
        parts.append(f"## {TITLES.get(name, name)}\n\n{provenance(result)}\n\n{rows}")
    context = next(iter(results.lists(machine).values()))["context"]
    witness = ("modelled: they were computed by a timing model, and no T4 was measured" if context["witness"] == "modelled"
               else "measured on this GPU")
    return (f"# {context['gpu']}: all rows\n\nGenerated by tools/report.py from the files in this folder. The times are {witness}. "
            f"How they are taken, and what they mean in brief: [docs/{'t4' if machine == MODEL else 'performance'}.md]"
            f"(../../../docs/{'t4' if machine == MODEL else 'performance'}.md).\n\n{LEGEND}\n\n" + "\n\n".join(parts) + "\n")


def counted_page():
    rows, context = results.counted()
    path = results.counted_path()
    figures = {"blocks_per_sm": "thread blocks per SM", "instructions_per_hmma": "instructions per HMMA",
               "shared_waves_per_ideal": "shared wavefronts / ideal", "global_sectors_per_ideal": "global sectors / ideal",
               "partial_sectors": "partially written sectors", "operations_per_dram_byte": "flop per DRAM byte",
               "tensor_percent_of_loop": "tensor cores busy, % of main loop"}
    shown = table(["problem", "kernel", *figures.values()],
                  [[row["problem"], f"`{name}`", *(number(row, key, "{:.2f}").removesuffix(".00") for key in figures)]
                   for name, row in rows.items() if "note" not in row])
    return f"""# What the emulated T4 counts

Generated by tools/report.py from counted.json. Nothing here is measured or timed: each kernel's sm_75 machine code was
executed on the emulator, which counts. *Ideal* is the fewest shared-memory wavefronts, or global sectors, that could
carry the bytes: 1 means no bank conflicts, and no sector fetched twice by one access. DRAM traffic counts every sector
once. The last column is the share of the main loop in which the tensor cores would be busy if only its busiest unit
limited it.

    tools/take.py --redo && tools/report.py

{shown}

{context['gpu']}; hgemm {context['hgemm']}; alpha {context['alpha']}, beta {context['beta']}. {stale_words([path])}
"""


# ---- where all this goes -------------------------------------------------------------------------

def example():
    """The calls of examples/multiply.c, from the handle on to D in host memory."""
    source = (ROOT / "examples" / "multiply.c").read_text()
    found = re.search(r"^    (hgemm_handle_t handle .*?hgemm_download\(.*?\);)$", source, re.M | re.S)
    if not found:
        sys.exit("examples/multiply.c has no calls from hgemm_handle_t to hgemm_download")
    return "```c\n#include <hgemm.h>\n\n" + re.sub(r"^    ", "", found[1], flags=re.M) + "\n```"


def inference(function):
    """A function of examples/inference.c with the comment before it."""
    source = (ROOT / "examples" / "inference.c").read_text()
    found = re.search(rf"^(?:/\*(?:(?!\*/).)*\*/\n)?static [^\n;]*\b{function}\(.*?^}}$", source, re.M | re.S)
    if not found:
        sys.exit(f"examples/inference.c has no function {function}")
    return f"```c\n{found[0]}\n```"


PARTS = {"t4_ladder": t4_ladder, "climb": climb, "code": code, "loop": loop, "diff": diff, "evidence": evidence, "kernels": kernel_table, "newer_only": newer_only,
         "attribution": attribution, "squares": squares, "lists": shape_lists, "selection": chosen_plans, "energy": energy,
         "example": example, "inference": inference, "epilogues": epilogues, "invariance": invariance, "bf16": bf16, "bf16_share": bf16_share, "f32_products": f32_products, "f32_energy": f32_energy,
         "weights": weights, "experts": experts, "batches": batches,
         "floats": lambda: floats.products(table) + "\n\n" + origin(floats.path()), "float_levels": lambda: floats.levels(table) + "\n\n" + origin(floats.path()), "float_errors": lambda: floats.errors() + "\n\n" + origin(floats.path()),
         "measured_t4": lambda: measured.beside_model(table, origin), "first_use": lambda: first_use.anywhere(table, origin), "door_first_use": lambda: first_use.with_gpu(origin),
         "python_calls": lambda: python_calls.anywhere(table, origin), "python_calls_on_gpu": lambda: python_calls.on_gpu(table, origin),
         "door": lambda: door.products(table, origin), "door_host": door.host, "packed_logits": lambda: packed.logits(table, origin), "packed_times": lambda: packed.times(table, origin),
         "sensitivity": sensitivity, "clock": lambda: table(["constant", "value", "range", "kind", "what", "source"], clock.rows()),
         "calibration": lambda: calibration.judged(table, origin), "gpu_tests": lambda: accuracy.tests(origin), "beyond_cublas": lambda: accuracy.beyond_cublas(origin), "note_sections": lambda: notes.by_section(table), "note_subjects": lambda: notes.by_subject(table)}
PART = re.compile(r"(<!-- generated: (\w+)(?: (\w+))? -->\n).*?(<!-- end -->)", re.S)


def pages():
    """{path: what it should hold}."""
    found = {}
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        def fill(match):
            text = PARTS[match[2]](*([match[3]] if match[3] else []))
            if path.parent == ROOT:
                text = text.replace("](../", "](")
            return f"{match[1]}{text}\n{match[4]}"
        found[path] = PART.sub(fill, path.read_text())
    for machine in (GPU, MODEL):
        found[results.RESULTS / machine / "README.md"] = timed_page(machine)
    found[results.RESULTS / "t4emu" / "README.md"] = counted_page()
    found[notes.FOLDER / "README.md"] = notes.page(table)
    return found


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in re.findall(r"^#+ +(.*)$", text, re.M))
    return {word.replace(" ", "-") for word in words}


@functools.cache
def anchors_of(path):
    return anchors(path.read_text())


ROOMS = ("bench", "docs", "examples", "python", "test")  # that have pages


def dead_links():
    """Links of the documents that lead nowhere in this tree."""
    for page in [*ROOT.glob("*.md"), *(path for room in ROOMS for path in (ROOT / room).rglob("*.md"))]:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
            path = (page.parent / target).resolve() if target else page
            if "://" not in target and (not path.exists() or anchor and path.suffix == ".md" and anchor not in anchors_of(path)):
                yield f"{page.relative_to(ROOT)}: no {target}{'#' + anchor if anchor else ''}"


def stale_files():
    """({file: parts} of what is stale and can be made here, the same of all else that is stale)."""
    found = {}
    for path in results.every_path():
        parts = inputs.changed(results.read(path))
        if parts:
            found[path.relative_to(results.RESULTS).as_posix()] = sorted(parts)
    return tuple({name: parts for name, parts in found.items() if (name in results.REDONE) == here} for here in (True, False))


def made_up():
    """Files that are no evidence."""
    return [path for path in results.every_path() if results.read(path)["context"]["witness"] == "made up"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if something is out of date")
    check = parser.parse_args().check
    changed = [(path, text) for path, text in pages().items() if not path.exists() or path.read_text() != text]
    for path, text in changed:
        if not check:
            path.write_text(text)
        print(f"{path.relative_to(ROOT)}: {'out of date, run tools/report.py' if check else 'rewritten'}")
    dead = sorted(set(dead_links()))
    print("\n".join(dead), end="\n" if dead else "")
    redone, left = stale_files()
    for parts in sorted({tuple(parts) for parts in left.values()}):
        names = [name.rsplit(".", 1)[0] for name in left if tuple(left[name]) == parts]
        print(f"stale, and marked so: {', '.join(parts)} changed since {', '.join(names)}")
    for name, parts in redone.items():
        print(f"{name}: {', '.join(parts)} changed since: run tools/take.py --redo")
    for path in made_up():
        print(f"{path.relative_to(ROOT)}: is made up, and no evidence")
    sys.exit(1 if dead or check and (changed or redone or made_up()) else 0)


if __name__ == "__main__":
    main()
