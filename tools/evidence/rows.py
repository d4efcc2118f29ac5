# SPDX-License-Identifier: MIT
"""Every row of a machine, for tools/report.py --rows."""
import re
import statistics

import results
from evidence import floats
from evidence.words import GPU, MODEL, against, commits_of, number, origin, stale_words, table
from results import geometric_mean

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
    if machine == GPU:
        parts.append(f"## Tensors of FP32 in PyTorch\n\n{table(*floats.every_product())}\n\n{origin(floats.path())}")
    context = next(iter(results.lists(machine).values()))["context"]
    witness = ("modelled: they were computed by a timing model, and no T4 was measured" if context["witness"] == "modelled"
               else "measured on this GPU")
    return (f"# {context['gpu']}: all rows\n\nGenerated by tools/report.py --rows from bench/results/{machine}. The times are {witness}. "
            f"How they are taken, and what they mean in brief: docs/{'t4' if machine == MODEL else 'performance'}.md.\n\n{LEGEND}\n\n" + "\n\n".join(parts) + "\n")


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

Generated by tools/report.py --rows from bench/results/t4emu/counted.json. Nothing here is measured or timed: each kernel's sm_75 machine code was
executed on the emulator, which counts. *Ideal* is the fewest shared-memory wavefronts, or global sectors, that could
carry the bytes: 1 means no bank conflicts, and no sector fetched twice by one access. DRAM traffic counts every sector
once. The last column is the share of the main loop in which the tensor cores would be busy if only its busiest unit
limited it.

    tools/take.py --redo && tools/report.py

{shown}

{context['gpu']}; hgemm {context['hgemm']}; alpha {context['alpha']}, beta {context['beta']}. {stale_words([path])}
"""
