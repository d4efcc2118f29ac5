# SPDX-License-Identifier: MIT
"""Products of floats: the time that no kernel here can beat on the GPU whose results these are, beside those of hgemm and of cuBLAS's SGEMM.

    python3 bench/float_floor.py [FOLDER]      by default bench/results/h100

It is the longest of
    launch   the shortest time of any row in bench_f32*.json: events around a launch
    bytes    A, B and D once, at the rate of the driver's copy in bench_f32.json
    macs     three products of halves at the rate of the ceiling, mma.m16n8k8, there; or one by FP32 units, if that is less

Times of products are those of bench_f32_random.json. One may take long for what no such sum knows: it waits for memory before its first mma, and blocks
that share a tile for each other.
"""
import json
import math
import pathlib
import re
import sys

FP32_LANES = 128  # of a multiprocessor, a multiply-add each in a clock


def rows(path):
    file = json.loads(path.read_text())
    return file["context"], file["results"]


def best(results, kernel, value, choose):
    return choose(row[value] for row in results if re.match(kernel, row["kernel"]) and row.get(value))


def floor_us(m, n, k, launch, copy, mma, fma):
    """By what it is bound, too. Rates are per microsecond: bytes, operations."""
    operations = 2 * m * n * k
    return max((launch, "launch"), (4 * (m * k + k * n + m * n) / copy, "bytes"), min((3 * operations / mma, "mma"), (operations / fma, "FP32 units")))


def mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "results" / "h100")
    context, measured = rows(folder / "bench_f32.json")
    launch = min(best(rows(path)[1], ".", "median_us", min) for path in folder.glob("bench_f32*.json"))
    copy = best(measured, "copy$", "gb_per_s", max) * 1e3
    mma = best(measured, "ceiling_f32$", "tflops", max) * 1e6
    multiprocessors, mhz = int(re.search(r"(\d+) multiprocessors", context["device"])[1]), max(row["mhz"] for row in measured)
    fma = 2 * FP32_LANES * multiprocessors * mhz
    print(f"{context['gpu']}: launch {launch:.2f} us, copy {copy / 1e3:.0f} GB/s, mma {mma / 1e6:.0f} TFLOPS, FP32 units {fma / 1e6:.0f} TFLOPS\n")
    problems = {}
    for row in rows(folder / "bench_f32_random.json")[1]:
        problems.setdefault(row["problem"], {})[row["kernel"]] = row
    table = []
    for problem, of in problems.items():
        m, n, k = map(int, re.match(r"(\d+)x(\d+)x(\d+)", problem).groups())
        sgemm, ours = of["cublasSgemm"]["median_us"], of["auto_of_f32"]
        floor, bound = floor_us(m, n, k, launch, copy, mma, fma)
        table.append((ours["median_us"] / floor, problem.removesuffix(" row"), sgemm, ours["median_us"], floor, bound, ours["note"]))
    print("| Problem | SGEMM, us | hgemm | floor | by | hgemm / floor | plan |\n|---|---|---|---|---|---|---|")
    for over, problem, sgemm, us, floor, bound, plan in sorted(table, reverse=True):
        print(f"| {problem} | {sgemm:.1f} | {us:.1f} | {floor:.1f} | {bound} | {over:.1f} | {plan} |")
    print(f"\nSGEMM's time over the floor {mean([row[2] / row[4] for row in table]):.2f}, over hgemm's {mean([row[2] / row[3] for row in table]):.2f}; "
          f"hgemm's over the floor {mean([row[0] for row in table]):.2f} (geometric means of {len(table)})")


if __name__ == "__main__":
    main()
