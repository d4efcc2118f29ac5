# SPDX-License-Identifier: MIT
"""How long first use takes: bench/results/host/first_use.json, and h100/first_use.txt, which test/door/first_use.sh wrote."""
import re

import results
from evidence.words import origin, table


def anywhere():
    """What a machine without anything takes to a first result."""
    path = results.RESULTS / "host" / "first_use.json"
    result = results.read(path)
    rows = [[row["what"], f"{row['seconds']:g}"] for row in result["results"]]
    return f"{table(['first use', 'seconds'], rows)}\n\n{result['context']['machine']}. {origin(path)}"


def with_gpu():
    """What the wheel, and a program behind the door, take the first time on a GPU."""
    path = results.RESULTS / "h100" / "first_use.txt"
    text = path.read_text()
    seconds = dict(re.findall(r"^(.*): ([\d.]+) s$", text, re.M))
    return (f"On a machine with an H100 and PyTorch ([test/door/first_use.sh](../test/door/first_use.sh)) the wheel installs in {seconds['install']} s. A program takes "
            f"{seconds['program, by cuBLAS']} s with cuBLAS and, behind the door, {seconds['program, by hgemm, first time']} s the first time and "
            f"{seconds['program, by hgemm, second time']} s after that; most of it is PyTorch's start. {origin(path)}")
