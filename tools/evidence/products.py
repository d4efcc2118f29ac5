# SPDX-License-Identifier: MIT
"""Tables of products, in the pages: how fast they are, beside whom, of which type, with which epilogue."""
import re

import results
from evidence import clock
from evidence.rows import selection
from evidence.words import GPU, MODEL, SIZES, against, by_events, newest_of, number, origin, percent, square_name, table, with_witness
from results import geometric_mean


# What docs/performance.md shows of lists that have more: each kind of product once, those that fare worst among them. tools/report.py --rows
# has all.
SHOWN = {
    "bench_bf16": ("1x4096x4096 nt", "16x4096x4096 nt", "64x4096x4096 nt", "1024x1024x1024 nn", "2048x2048x2048 nn", "4096x4096x4096 nn"),
    "bench_f32": ("1024x1024x1024 nn", "4096x4096x4096 nn", "8192x8192x8192 nn", "1023x1023x1023 nn", "1x4096x4096 nt", "16x4096x4096 nt",
                  "64x4096x4096 nt", "128x3072x768 nt", "2048x4096x4096 nt"),
    "bench_batches": ("8x8x8 nn batch 4096", "16x16x16 nn batch 4096", "31x31x31 nn batch 1024", "64x64x64 nn batch 512", "8x40000x40 nn", "300000x1x64 nn"),
}


def shown(machine, name, problems):
    """Those problems of a list that a page shows, in their order there."""
    return {problem: named for problem, named in problems.items() if machine != GPU or problem.removesuffix(" row") in SHOWN[name]}


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
    """BF16's speed as a share of FP16's."""
    result, problems = bf16_list(machine)
    rows = [[problem.removesuffix(" row"), *(share(named.get(f"auto_of_bf16{ways}"), named.get("auto_f32")) for ways in ("", "_b_given", "_found")),
             *(f"`{named[kernel]['note']}`" for kernel in ("auto_f32", "auto_of_bf16"))] for problem, named in shown(machine, "bench_bf16", problems).items()]
    return table(["product", "both scales given", "B's given", "both found", "plan of FP16", "plan of BF16"], rows) + "\n\n" + origin(result)


def f32_products(machine):
    """Products of FP32: speeds as shares of FP16's with FP32 sums and over the peers', and errors; and of random shapes the geometric mean."""
    lists = {name: result for name, result in results.lists(machine).items() if name.startswith("bench_f32")}
    by_shape = lists.pop("bench_f32_random", None)
    if not lists:
        return "Not run yet."
    rows, problems = [], {}
    for result in lists.values():
        for problem, named in results.by_problem(result).items():
            problems[problem] = {**named, **problems.get(problem, {})}
    for problem, named in shown(machine, "bench_f32", problems).items():
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


WEIGHTS = (("auto_of_int4:128:none:f16", "INT4, groups of 128"), ("marlin int4:128", "Marlin"), ("auto_of_nf4:64:none:f32", "NF4"),
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
        "[bitsandbytes](https://github.com/bitsandbytes-foundation/bitsandbytes), of which both have other kernels for some rows. NF4 is as bitsandbytes has it: blocks of 64, FP32 scales. INT4 in groups of 128 takes 33 us at 261 GB/s where n and k are 4096. " + origin(*used))


def experts(machine=MODEL):
    """Mixtures of experts with packed weights; by the T4's model beside the time of the bytes that they cannot but read and write."""
    used = [results.lists(machine).get(name) for name in ("bench_experts", "bench_experts_first")]
    used, rows, dram = [one for one in used if one], [], clock.constants()["dram_rate"].value * clock.MHZ / 1e3  # GB/s of a T4
    if not used:
        return origin()
    for problem, named in results.both_times(used).items():
        shape, of, top = re.fullmatch(r"(\S+) nt experts (\d+):(\d+) row", problem).groups()
        tokens, n, k = map(int, shape.split("x"))
        halves, ours = named.get("auto_f32"), next(row for kernel, row in named.items() if kernel.startswith("auto_of_"))
        bytes_of = lambda row: 1e3 * row["gb_per_s"] * row["median_us"]
        hit = "-" if not halves else f"{(bytes_of(halves) / 2 - tokens * int(top) * (n + k)) / (n * k):.0f} of {of}"
        least = bytes_of(ours) / dram / 1e3
        times = [f"{least:.0f}", *(f"{us:.1f}, {us / least:.2f}" if us else "-" for us in map(ours.get, ("median_us", "first_us")))]
        if machine == GPU:
            times = ["-", number(ours, "median_us"), "-"]
        rows.append([shape, hit, *times, number(halves, "median_us"), number(named.get("cublasGemmEx_f32"), "median_us"), f"`{ours['note']}`"])
    header = ["tokens x n x k", "experts hit", "bytes' time, us", "INT4, groups of 128: us" + ("" if machine == GPU else ", of the bytes'"),
              "the same, first launch", "FP16 weights, us", "cuBLAS, a call for each expert, us", "plan of INT4"]
    words = "Each token takes two experts at random, and rows are in their order. FP32 sums, one call. "
    if machine == GPU:
        return table(header, rows) + f"\n\nMeasured on an H100. {words}" + origin(*used)
    return table(header, rows) + (
        f"\n\nTesla T4 (timing model), 1590 MHz: modelled, not measured. {words}Bytes: the weights of experts that are hit, A and D, once, at "
        f"{dram:.0f} GB/s. A launch that follows others like it, and one that finds the L2 cache empty. " + origin(*used))


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


def squares(machine):
    """hgemm beside its peers, both kinds of sums. Speeds are of the newest file that has hgemm, a ratio of the newest that has both."""
    _, published = results.published()
    rows, used = [], {}
    for size in sorted({int(p.split("x")[0]) for name, r in results.lists(machine).items() if not name.startswith(results.APART)
                        for p in results.by_problem(r) if re.fullmatch(r"(\d+)x\1x\1 nn row", p)} & {512, *SIZES}):
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
    for problem, named in shown(machine, "bench_batches", results.by_problem(result)).items():
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


def epilogues(*machines):
    """What an epilogue costs on each machine: time with it over the plain product's, over all shapes of the list."""
    cells, header, used = {}, ["epilogue"], []
    for machine in machines or (GPU, MODEL):
        result = results.lists(machine)["bench_epilogues"]
        problems, used = results.by_problem(result), [*used, result]
        for sums in ("", "_f32"):
            plain = f"auto{sums}"
            header.append(f"{'a T4, modelled' if machine == MODEL else 'an H100'}: {'FP32' if sums else 'FP16'} sums")
            for kernel in dict.fromkeys(name for named in problems.values() for name in named if name.startswith(f"{plain}+")):
                of = [named[kernel]["median_us"] / named[plain]["median_us"] for named in problems.values() if kernel in named and plain in named]
                cells.setdefault(kernel.removeprefix(f"{plain}+").replace("+", ", "), {})[header[-1]] = f"{geometric_mean(of):.3f}, {max(of):.2f}" if of else "-"
    rows = [[epilogue, *(of.get(column, "-") for column in header[1:])] for epilogue, of in cells.items()]
    return table(header, rows) + "\n\nTimes as long as without, in the geometric mean of all shapes, and at most. " + origin(*used)


def chosen_plans(machine):
    """What hgemm's choice loses to the fastest of the plans that were timed."""
    found = selection(results.lists(machine)["bench_plans"])
    losses = sorted(row["loss"] for row in found)
    return (f"Over {len(losses)} random shapes and {sum(row['plans'] for row in found)} plans, what hgemm chooses takes "
            f"{100 * geometric_mean(losses) - 100:.1f}% longer than the fastest plan in the geometric mean, {100 * losses[-1] - 100:.0f}% at "
            f"worst, and is within 3% at {sum(loss <= 1.03 for loss in losses)}.\n\n" + origin(results.lists(machine)["bench_plans"]))


def energy(machine):
    """What products cost in energy, with both kinds of sums."""
    result = results.lists(machine)["bench_energy"]
    figures = (("tflops", "{:.1f}"), ("watts", "{:.0f}"), ("pj_per_flop", "{:.2f}"))
    rows = [[problem.removesuffix(" row"), label, *(number(named.get(kernel), *figure) for kernel in kernels for figure in figures)]
            for problem, named in results.by_problem(result).items()
            for label, kernels in (("`mma.m16n8k8` alone", ("ceiling_f16", "ceiling_f32")), ("cuBLAS", ("cublasHgemm", "cublasGemmEx_f32")),
                                   ("CUTLASS", ("cutlass", "cutlass_f32")), ("hgemm", ("auto", "auto_f32")))]
    return table(["product", "", *(sums + what for sums in ("", "FP32 sums: ") for what in ("TFLOPS", "W", "pJ per operation"))], rows) + "\n\n" + with_witness(machine, result)
