# SPDX-License-Identifier: MIT
"""Packed weights on an H100: bench/results/h100/packed.txt, which python/tests/gpu_check.py wrote."""
import re
import sys

import results
from evidence.words import origin, table

LOGITS = re.compile(r"^ *(\w+): error of logits to single precision ([\d.e-]+)(?:, converted ([\d.e-]+), bitsandbytes' ([\d.e-]+)"
                    r"|; of the model dequantised to halves ([\d.e-]+))$", re.M)
GRADIENTS = re.compile(r"^ *(\w+): a QLoRA step's gradients differ by ([\d.e-]+) from bitsandbytes' own$", re.M)
TIMES = re.compile(r"^ *(\S.*?) {2,}(m=1: .*)$", re.M)
NAMES = {"nf4": "bitsandbytes NF4", "fp4": "bitsandbytes FP4"}


def path():
    return results.RESULTS / "h100" / "packed.txt"


def text():
    return path().read_text()


def source():
    return f"{text().splitlines()[0].split('; ', 1)[1]}. {origin(path())}"


def logits():
    """How far quantised models' logits are from those of what their weights stand for, in single precision."""
    steps = dict(GRADIENTS.findall(text()))
    rows = [[NAMES.get(name, name), *(number or "-" for number in (mine if converted else "", converted or mine, theirs or halves)), steps.get(name, "-")]
            for name, mine, converted, theirs, halves in LOGITS.findall(text())]
    if not rows:
        sys.exit("bench/results/h100/packed.txt has no errors of logits")
    header = ["error of logits", "under `enable()`", "converted", "of bitsandbytes, or of the model dequantised to halves", "gradients of a QLoRA step, to bitsandbytes'"]
    return f"{table(header, rows)}\n\n{source()}"


def times():
    """Microseconds of a layer of 4096 x 4096."""
    found = [(name, dict(re.findall(r"m=(\d+): +([\d.]+)", line))) for name, line in TIMES.findall(text())]
    rows = [[name, *by_rows.values()] for name, by_rows in found]
    return table(["us, 4096 x 4096", *(f"{m} row{'s' * (m != '1')}" for m in found[0][1])], rows) + f"\n\nMeasured on an H100. {source()}"
