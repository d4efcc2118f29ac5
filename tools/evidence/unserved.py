# SPDX-License-Identifier: MIT
"""Entry points of CUDA that `turing exec` does not serve, from the list that test/face/unserved.py makes of its libraries."""
from results import ROOT


def calls():
    """A paragraph for each library."""
    version, *parts = (ROOT / "src" / "face" / "unserved.txt").read_text().strip().split("\n\n")
    found = []
    for part in parts:
        heading, *names = part.split("\n")
        names = [f"`{name.split()[0]}`" + (f" ({name.split()[1]})" if " " in name else "") for name in names]
        found.append(f"**{heading}** (names of {version}; a star stands for any end, the number for how many there are): {', '.join(names)}.")
    return "\n\n".join(found)
