#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes what is generated in the documents: tables from the results under bench/results/, the differences between the
rungs of the ladder, the kernels of the table, examples/multiply.c, functions of examples/inference.c, the interface by task
(docs/api.md), and calls that `turing exec` does not serve.

    tools/report.py            rewrite what is out of date
    tools/report.py --check    change nothing; exit with 1 if something is out of date
    tools/report.py --rows h100    print every row of a folder of bench/results: h100, t4model or t4emu

Under each table stands which files it is from, of which commit, and whether the code that they depend on has changed since. --check
lists the files that are stale so, and exits with 1 if `tools/take.py --redo` could make one anew. Either tells of links that lead nowhere,
and then exits with 1. Figures carry a hash of the rows that they were drawn from: --check exits with 1 if these are others now, and tells
which figures should be marked stale. In README.md and docs/ a generated part stands between
<!-- generated: NAME [ARGUMENT] -->  and  <!-- end -->. tools/plot.py and tools/pictures.py make the figures.
"""
import argparse
import functools
import re
import sys

import results
from evidence import (accuracy, api, calibration, clock, door, figures, first_use, floats, forms, inputs, ladder, measured, notes, packed, products,
                      python_calls, rows, unserved)
from evidence.words import GPU, MODEL
from results import ROOT


def example():
    """The calls of examples/multiply.c, from the handle on to D in host memory."""
    source = (ROOT / "examples" / "multiply.c").read_text()
    found = re.search(r"^    (hgemm_handle_t handle .*?hgemm_download\(.*?\);)$", source, re.M | re.S)
    if not found:
        sys.exit("examples/multiply.c has no calls from hgemm_handle_t to hgemm_download")
    return "```c\n#include <hgemm.h>\n\n" + re.sub(r"^    ", "", found[1], flags=re.M) + "\n```"


def inference(function):
    """A function of examples/inference.c with the comment before it."""
    source = (ROOT / "examples" / "inference.c").read_text()
    found = re.search(rf"^(?:/\*(?:(?!\*/).)*\*/\n)?static [^\n;]*\b{function}\(.*?^}}$", source, re.M | re.S)
    if not found:
        sys.exit(f"examples/inference.c has no function {function}")
    return f"```c\n{found[0]}\n```"


# Of a generated part's name, who makes it; some take the argument behind the name.
PARTS = {
    "t4_ladder": ladder.t4_ladder, "climb": ladder.climb, "code": ladder.code, "loop": ladder.loop, "diff": ladder.diff, "evidence": ladder.evidence,
    "kernels": ladder.kernel_table, "newer_only": ladder.newer_only, "attribution": ladder.attribution,
    "squares": products.squares, "lists": products.shape_lists, "selection": products.chosen_plans, "energy": products.energy,
    "epilogues": products.epilogues, "invariance": products.invariance, "bf16": products.bf16, "bf16_share": products.bf16_share,
    "f32_products": products.f32_products, "f32_energy": products.f32_energy, "weights": products.weights, "experts": products.experts, "batches": products.batches,
    "sensitivity": products.sensitivity, "clock": clock.table_of_constants, "forms": forms.table_of_forms, "calibration": calibration.judged,
    "floats": floats.products, "float_errors": floats.errors,
    "packed_logits": packed.logits, "packed_times": packed.times, "measured_t4": measured.beside_model,
    "gpu_tests": accuracy.tests, "beyond_cublas": accuracy.beyond_cublas, "first_use": first_use.anywhere, "door_first_use": first_use.with_gpu,
    "python_calls": python_calls.anywhere, "python_calls_on_gpu": python_calls.on_gpu, "door": door.products, "door_host": door.host,
    "c_functions": api.c_table, "python_names": api.python_table,
    "example": example, "inference": inference, "unserved": unserved.calls, "note_sections": notes.by_section, "note_subjects": notes.by_subject}
PART = re.compile(r"(<!-- generated: (\w+)(?: (\w+))? -->\n).*?(<!-- end -->)", re.S)


def pages():
    """{path: what it should hold}."""
    found = {}
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        def fill(match):
            text = PARTS[match[2]](*([match[3]] if match[3] else []))
            if path.parent == ROOT:
                text = text.replace("](../", "](")
            return f"{match[1]}{text}\n{match[4]}"
        found[path] = PART.sub(fill, path.read_text())
    found[notes.FOLDER / "README.md"] = notes.page()
    return found


def anchors(text):
    """The anchors of a page's headings, as GitHub makes them."""
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in re.findall(r"^#+ +(.*)$", text, re.M))
    return {word.replace(" ", "-") for word in words}


@functools.cache
def anchors_of(path):
    return anchors(path.read_text())


ROOMS = ("bench", "docs", "examples", "python", "test")  # that have pages


def dead_links():
    """Links of the documents that lead nowhere in this tree."""
    for page in [*ROOT.glob("*.md"), *(path for room in ROOMS for path in (ROOT / room).rglob("*.md"))]:
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.S)
        for target, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", text):
            path = (page.parent / target).resolve() if target else page
            if "://" not in target and (not path.exists() or anchor and path.suffix == ".md" and anchor not in anchors_of(path)):
                yield f"{page.relative_to(ROOT)}: no {target}{'#' + anchor if anchor else ''}"


def stale_files():
    """({file: parts} of what is stale and can be made here, the same of all else that is stale)."""
    found = {}
    for path in results.every_path():
        parts = inputs.changed(results.read(path))
        if parts:
            found[path.relative_to(results.RESULTS).as_posix()] = sorted(parts)
    return tuple({name: parts for name, parts in found.items() if (name in results.REDONE) == here} for here in (True, False))


def made_up():
    """Files that are no evidence."""
    return [path for path in results.every_path() if results.read(path)["context"]["witness"] == "made up"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing; exit with 1 if something is out of date")
    parser.add_argument("--rows", metavar="MACHINE", choices=(GPU, MODEL, "t4emu"), help="print every row of bench/results/MACHINE")
    options = parser.parse_args()
    check = options.check
    if options.rows:
        print(rows.counted_page() if options.rows == "t4emu" else rows.timed_page(options.rows), end="")
        return
    changed = [(path, text) for path, text in pages().items() if not path.exists() or path.read_text() != text]
    for path, text in changed:
        if not check:
            path.write_text(text)
        print(f"{path.relative_to(ROOT)}: {'out of date, run tools/report.py' if check else 'rewritten'}")
    dead = sorted(set(dead_links()))
    print("\n".join(dead), end="\n" if dead else "")
    redone, left = stale_files()
    for parts in sorted({tuple(parts) for parts in left.values()}):
        names = [name.rsplit(".", 1)[0] for name in left if tuple(left[name]) == parts]
        print(f"stale, and marked so: {', '.join(parts)} changed since {', '.join(names)}")
    for name, parts in redone.items():
        print(f"{name}: {', '.join(parts)} changed since: run tools/take.py --redo")
    for path in made_up():
        print(f"{path.relative_to(ROOT)}: is made up, and no evidence")
    drawn, silent = figures.out_of_date(figures.all_figures())
    for name, why in drawn.items():
        print(f"{name}: drawn from other rows ({why}): run tools/plot.py and tools/pictures.py")
    for name in silent:
        print(f"{name}: does not say that its rows are stale: run tools/plot.py and tools/pictures.py")
    sys.exit(1 if dead or check and (changed or redone or made_up() or drawn) else 0)


if __name__ == "__main__":
    main()
