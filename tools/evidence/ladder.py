# SPDX-License-Identifier: MIT
"""The ladder, docs/ladder.md: each rung's code, how it differs from the one before, and what is known of it; the kernels of the table."""
import difflib
import re
import sys

import results
from evidence import measured
from evidence.words import GPU, MODEL, SIZES, by_events, number, origin, percent, row_of, square_name, table
from results import ROOT

NAIVE = "k0_naive"  # the foot of the ladder
LONG_DIFF = 40  # lines; longer ones are folded


def described(name):
    """A rung as a link to its source."""
    return f"[`{name}`](../ptx/{name}.cu)"


def rungs_at(machine, size):
    """{rung: row} of the newest file that has the rungs at that size, and the files; of a family of kernels, the row of the plan which
    hgemm chooses. On the model, which has no clocks that change from run to run, that is the row that other pages show."""
    first, *_, last = results.rungs()
    rows, of = results.newest(machine, square_name(size), first, "auto")
    if not rows:
        return {}, []
    chosen, of_chosen = results.newest(machine, square_name(size), "auto") if machine == MODEL else (rows, of)
    return rows | {last: chosen["auto"]}, [of, of_chosen]


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
    return table(header, rows) + ("\n\nTFLOPS at squares of that size. T4 model: modelled, no T4 was measured. H100: measured, all rungs in one run. "
                                  ) + origin(*(of for _, machine, sizes in shown for size in sizes for of in rungs_at(machine, size)[1]))


def evidence_of_naive():
    """What a GPU says of the first rung, which has no tensor cores to be counted, and which the model would take minutes for."""
    (rows, of), counted = rungs_at(GPU, 4096), results.counted()[0][NAIVE]
    m, n, k = map(int, counted["problem"].split()[0].split("x"))
    lines = [["bytes asked of the L2 for each byte of A, B and D", "counted", f"{counted['l2_bytes'] / (2 * (m * k + k * n + m * n)):.0f}"],
             ["TFLOPS at 4096", "H100", number(rows[NAIVE], "tflops")], ["% of the ceiling", "H100", percent(rows[NAIVE], rows["ceiling_f16"], "{:.1f}")]]
    return table(["", "witness", f"`{NAIVE}`"], lines) + f"\n\nSource: {described(NAIVE)}. " + origin(results.counted_path(), *of)


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
        results.profiles_path(), results.counted_path(), *of_model[:None if rung == rungs[-1] else 1], *of_gpu)


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
