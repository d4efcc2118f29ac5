# SPDX-License-Identifier: MIT
"""How far the timing model is off published times of a T4: t4model/calibration.json, which tools/calibrate.py wrote."""
import itertools
from statistics import fmean as mean

import results
from evidence.words import origin, table

KERNELS = {"a": "a, every shared access conflicts", "b": "b, swizzled", "c": "c, prefetches, 256x256"}


def path():
    return results.RESULTS / "t4model" / "calibration.json"


def errors():
    """{(kernel, size): modelled over published less 1}"""
    return {(row["kernel"], row["size"]): row["events_us"] / row["published_us"] - 1 for row in results.read(path())["results"]}


def judged():
    found, rows = errors(), {(row["kernel"], row["size"]): row for row in results.read(path())["results"]}
    sizes = sorted({size for _, size in found})
    lines = [[words, *(f"{found[kernel, size]:+.1%}" for size in sizes)] for kernel, words in KERNELS.items()]
    pairs = [(x, y) for x, y in itertools.combinations(rows.values(), 2) if x["size"] == y["size"]]
    right = sum((x["events_us"] - y["events_us"]) * (x["published_us"] - y["published_us"]) > 0 for x, y in pairs)
    of_parts = sorted({size for (_, size), row in rows.items() if row["part"]})
    return (f"{table(['modelled over published less 1', *map(str, sizes)], lines)}\n\n"
            f"On average {mean(map(abs, found.values())):.1%}, at most {max(map(abs, found.values())):.1%}, with signs "
            f"{mean(found.values()):+.1%}; of {len(pairs)} pairs of a size {right} are ranked as on the T4. At "
            f"{', '.join(map(str, of_parts))} a part of the blocks was timed. {origin(path())}")
