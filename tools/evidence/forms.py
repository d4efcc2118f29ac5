# SPDX-License-Identifier: MIT
"""The forms of instructions that tests have met, src/turing/forms.def."""
import re
import sys

from evidence.words import table
from results import ROOT

FILE = ROOT / "src" / "turing" / "forms.def"
ROW = re.compile(r'^FORM\((HOST|OTHERS), "([^"]*)"\)$')


def forms():
    """[(witness, opcode, its modifiers, the kinds of its operands)]."""
    found, last = [], b""
    for line in FILE.read_text().splitlines():
        if not line.startswith("FORM("):
            continue
        row = ROW.match(line)
        if not row or row[2].encode() <= last:
            sys.exit(f"{FILE.name}: no form, or not in order: {line}")
        last = row[2].encode()
        mnemonic, _, operands = row[2].partition(" ")
        opcode, *modifiers = mnemonic.split(".")
        found.append((row[1], opcode, modifiers, operands))
    return found


def places(operands):
    """What was met in each place, of lists of as many operands: "R, R or -R or c"."""
    by_count = {}
    for text in operands:
        kinds = text.split(", ")
        by_count.setdefault(len(kinds), []).append(kinds)
    return "; ".join(", ".join(" or ".join(f"`{kind}`" for kind in sorted(set(place))) for place in zip(*lists)) for _, lists in sorted(by_count.items()))


def table_of_forms():
    """Of docs/emulator.md: a row for each opcode."""
    by_opcode = {}
    for form in forms():
        by_opcode.setdefault(form[1], []).append(form)
    rows = []
    for opcode, own in sorted(by_opcode.items()):
        host = sum(witness == "HOST" for witness, *_ in own)
        modifiers = sorted({m for form in own for m in form[2]})
        operands = places({form[3] for form in own if form[3]}).replace("|", "\\|")
        rows.append([f"`{opcode}`", f"{host}", f"{len(own) - host}" if host < len(own) else "", " ".join(modifiers), operands])
    host = sum(witness == "HOST" for witness, *_ in forms())
    return table(["opcode", "host", "others", "modifiers", "operands"], rows) + f"\n\n{host} forms beside the host's arithmetic, {len(forms()) - host} by other tests alone."
