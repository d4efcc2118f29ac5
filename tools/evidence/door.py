# SPDX-License-Identifier: MIT
"""What the cuBLAS door does on an H100: bench/results/h100/door.txt, which test/door/gpu.py wrote."""
import re

import results
from evidence.words import origin, table

LINE = re.compile(r"^faster: (.+?): cuBLAS takes ([\d.]+) times as long as hgemm: (hit|miss); torch.mm takes ([\d.]+) us, without the door ([\d.]+) us$", re.M)


def path():
    return results.RESULTS / "h100" / "door.txt"


def text():
    return path().read_text()


def products():
    """Products by a tuning file: which of them the door takes, and what that is worth."""
    rows = [[name, f"{float(ratio):.2f}", how, f"{float(with_it):.1f}", f"{float(without):.1f}"] for name, ratio, how, with_it, without in LINE.findall(text())]
    return table(["product", "cuBLAS in times of hgemm, by the file", "the door", "with it, us", "without, us"], rows) + f"\n\n{origin(path())}"


def host():
    """What a call takes the host."""
    by_door, direct = re.search(r"^host: ([\d.]+) us by cublasGemmEx, ([\d.]+) us by hgemm_run_f32", text(), re.M).groups()
    return f"A call of `cublasGemmEx` through the door takes the host {float(by_door):.1f} us there, `hgemm_run_f32` {float(direct):.1f} us."
