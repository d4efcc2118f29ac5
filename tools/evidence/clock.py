# SPDX-License-Identifier: MIT
"""The constants of the timing model, src/turing/time.def."""
import re
import sys
from typing import NamedTuple

from evidence.words import table
from results import ROOT

FILE = ROOT / "src" / "turing" / "time.def"
ROW = re.compile(r'^TIME\((\w+), ([\d.]+), ([\d.]+), ([\d.]+), (\w+), "(.*?)", "(.*?)"\)$')
MHZ = 1590  # of every modelled time
KINDS = ("published", "assumed", "calibrated", "candidate")


class Constant(NamedTuple):
    name: str
    value: float
    low: float
    high: float
    kind: str
    what: str
    source: str


def constants():
    """{name: Constant}, in the order of the file."""
    found = {}
    for line in FILE.read_text().splitlines():
        if not line.startswith("TIME("):
            continue
        row = ROW.match(line)
        if not row:
            sys.exit(f"{FILE.name}: not a constant: {line}")
        constant = Constant(row[1], *(float(row[i]) for i in (2, 3, 4)), *row.groups()[4:])
        if constant.kind not in KINDS or not constant.low <= constant.value <= constant.high or constant.name in found:
            sys.exit(f"{FILE.name}: kind, range or name: {line}")
        found[constant.name] = constant
    return found


def copy_gb_per_s():
    """What a copy reads and writes in a second, at the clock of the T4's times: reading and writing share DRAM."""
    found = constants()
    return 2 * found["dram_rate"].value * MHZ / 1e3 / (1 + found["dram_written"].value)


def table_of_constants():
    """Of docs/emulator.md."""
    rows = [[f"`{c.name}`", f"{c.value:.5g}", f"{c.low:g} to {c.high:g}" if c.low < c.high else "", c.kind, c.what, c.source]
            for c in constants().values()]
    return table(["constant", "value", "range", "kind", "what", "source"], rows)
