#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws the pictures that docs/ladder.md explains the rungs with, into docs/pictures/.

    tools/pictures.py [--out DIR]

Needs matplotlib. Sizes are those of the first rungs' row of the table, the swizzle is the map of ptx/operand.cuh, and
what runs beside what comes from bench/results/t4model/rungs.json, which bench/profile_rungs wrote: a timing model's
trace, no measurement.
"""
import argparse
import pathlib
import sys

try:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import Patch, Rectangle
except ImportError:
    print("tools/pictures.py: matplotlib is missing: python3 -m pip install matplotlib", file=sys.stderr)
    sys.exit(1)

import results
from evidence import figures

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#E69F00", "#009E73", "#CC79A7"  # Okabe and Ito's
PALE = {BLUE: "#CCE3F0", ORANGE: "#FAECCC", GREEN: "#CCECE3"}


def first_rung():
    """Block tile (BM, BN, BK) and warp tile of the first rungs."""
    kernel = next(kernel for kernel in results.kernels() if kernel["stages"]) # k1_tiled
    return results.tile(kernel, "block"), results.tile(kernel, "warp")


def box(ax, x, y, width, height, colour, edge="white", line=0.8, **options):
    ax.add_patch(Rectangle((x, y), width, height, facecolor=colour, edgecolor=edge, linewidth=line, **options))


# ---- the hierarchy of tiles ------------------------------------------------------------------------

class Panel:
    """Axes of one size for pictures of any size, which are scaled to fill them."""

    def __init__(self, ax, title, width, height):
        self.ax, self.scale = ax, 1 / max(width, height)
        self.x, self.y = (1 - width * self.scale) / 2, (1 - height * self.scale) / 2
        ax.text(0.5, self.y - 0.14, title, fontsize=9, ha="center", va="bottom")
        ax.set_xlim(-0.02, 1.02)
        ax.set_ylim(1.12 - self.y, self.y - 0.36)
        ax.set_aspect("equal")
        ax.axis("off")

    def at(self, x, y):
        return self.x + x * self.scale, self.y + y * self.scale

    def box(self, x, y, width, height, colour, line=0.8):
        box(self.ax, *self.at(x, y), width * self.scale, height * self.scale, colour, line=line)

    def text(self, x, y, label, colour, up=False):
        self.ax.annotate(label, self.at(x, y), (0, 3 if up else -3), textcoords="offset points", ha="center",
                         va="bottom" if up else "top", fontsize=7.5, color=colour)


def product(ax, title, depth, labels, cut, marked):
    """A, B and D of one level: D below right, A at its left, B above it, k as long as `depth`; D in tiles, of which one is
    marked with what it needs of A and B."""
    rows, columns = cut
    left = top = depth + 0.09
    panel = Panel(ax, title, left + 1, top + 1)
    panel.box(0, top, depth, 1, PALE[BLUE])
    panel.box(left, 0, 1, depth, PALE[ORANGE])
    for i in range(rows):
        for j in range(columns):
            panel.box(left + j / columns, top + i / rows, 1 / columns, 1 / rows, PALE[GREEN], line=0.6)
    i, j = marked
    panel.box(0, top + i / rows, depth, 1 / rows, BLUE)
    panel.box(left + j / columns, 0, 1 / columns, depth, ORANGE)
    panel.box(left + j / columns, top + i / rows, 1 / columns, 1 / rows, GREEN)
    a, b, d = labels
    panel.text(depth / 2, top + 1, a, BLUE)
    panel.text(left + 0.5, 0, b, "#A87300", up=True)
    panel.text(left + 0.5, top + 1, d, "#00785A")


def multiply_one(ax, title):
    panel = Panel(ax, title, 17.5, 25.5)
    for x, y, rows, colour, label in ((0, 9.5, 16, BLUE, "A 16x8"), (9.5, 0, 8, ORANGE, "B 8x8"), (9.5, 9.5, 16, GREEN, "D 16x8")):
        for i in range(rows):
            for j in range(8):
                panel.box(x + j, y + i, 1, 1, colour, line=0.4)
        ax.text(*panel.at(x + 4, y + rows / 2), label, ha="center", va="center", fontsize=7.5, color="white", weight="bold",
                bbox={"facecolor": colour, "edgecolor": "none", "pad": 1.5})


def tiles():
    (bm, bn, bk), (wm, wn, _) = first_rung()
    figure, axes = plt.subplots(1, 4, figsize=(9.4, 3.6), layout="constrained")
    product(axes[0], "grid\none thread block for each tile of D", 0.75, ("A", "B", "D"), (6, 6), (3, 4))
    product(axes[1], f"thread block\n{bm // wm * (bn // wn)} warps, one k-tile at a time", bk / bm,
            (f"A: {bm}x{bk}", f"B: {bk}x{bn}", f"block tile {bm}x{bn}"), (bm // wm, bn // wn), (0, 1))
    product(axes[2], f"warp\n{wm // 16 * (wn // 8)} mma's for each slice", 8 / wm, (f"{wm}x8", f"8x{wn}", f"warp tile {wm}x{wn}"),
            (wm // 16, wn // 8), (1, 5))
    multiply_one(axes[3], "mma.m16n8k8\none instruction of a warp")
    figure.supxlabel("Each picture enlarges the marked tile of the one before it. Blue and orange: what that tile needs of A and of B.",
                     fontsize=7.5, color="#444444")
    return figure


# ---- fragments -------------------------------------------------------------------------------------

def fragments():
    figure, axes = plt.subplots(1, 3, figsize=(8, 3.7), layout="constrained")
    layouts = (("A: 16 x 8, two registers", 16, 8, lambda r, c: (r % 8 * 4 + c // 2, r // 8), "k", "m"),
               ("B: 8 x 8, one register", 8, 8, lambda r, c: (c * 4 + r // 2, 0), "n", "k"),
               ("D: 16 x 8, two registers (FP32: four)", 16, 8, lambda r, c: (r % 8 * 4 + c // 2, r // 8), "n", "m"))
    for ax, (title, rows, columns, holder, across, down) in zip(axes, layouts):
        for r in range(rows):
            for c in range(columns):
                lane, register = holder(r, c)
                box(ax, c, r, 1, 1, (BLUE, ORANGE, GREEN, PURPLE)[lane % 4], alpha=0.25 if register else 0.55, line=0.5)
                ax.text(c + 0.5, r + 0.5, str(lane), ha="center", va="center", fontsize=6.5)
        ax.set_xlim(0, columns)
        ax.set_ylim(16, 0)
        ax.set_aspect("equal")
        ax.set_xticks([]), ax.set_yticks([])
        ax.spines[:].set_visible(False)
        ax.set_title(title, fontsize=9)
        ax.text(columns / 2, rows + 0.3, across + " →", ha="center", va="top", fontsize=8)
        ax.text(-0.3, 0.3, down + " ↓", ha="right", va="top", fontsize=8, rotation=0)
    figure.supxlabel("The number is the lane that holds the element: its register holds two of them. Paler: the lane's second register.",
                     fontsize=7.5, color="#444444")
    return figure


# ---- the swizzle -----------------------------------------------------------------------------------

def position(row, chunk, row_chunks, swizzled):
    """Where a chunk of 16 bytes lies in shared memory, counted in chunks: operand::offset."""
    line_rows, phases = (1, 8) if row_chunks >= 8 else (8 // row_chunks, row_chunks)
    return row * row_chunks + (chunk ^ (row // line_rows % phases if swizzled else 0))


def swizzle():
    (bm, bn, bk), _ = first_rung()
    figure, axes = plt.subplots(2, 2, figsize=(8, 6.2), layout="constrained")
    cases = ((f"B: rows of {bn * 2} bytes (first half shown)", bn // 8, 8, 2), (f"A: rows of {bk * 2} bytes, two in a line", bk // 8, 16, 2))
    for line, (what, row_chunks, rows, wanted) in enumerate(cases):
        for column, swizzled in enumerate((False, True)):
            ax = axes[line][column]
            asked = {}
            for row in range(rows):
                for chunk in range(min(row_chunks, 8)):
                    at = position(row, chunk, row_chunks, swizzled)
                    y, x = at // max(row_chunks, 8), at % 8
                    marked = chunk == wanted and row < 8
                    if marked:
                        asked[x] = asked.get(x, 0) + 1
                    box(ax, x, y, 1, 1, BLUE if marked else "#EEF3F6", line=1)
                    label = f"{chunk}" if row_chunks >= 8 else f"r{row} c{chunk}"
                    ax.text(x + 0.5, y + 0.5, label, ha="center", va="center", fontsize=8 if row_chunks >= 8 else 6,
                            color="white" if marked else "#555555", weight="bold" if marked else "normal")
            waves = max(asked.values())
            ax.set_xlim(0, 8)
            ax.set_ylim(8, 0)
            ax.set_xticks([i + 0.5 for i in range(8)], [f"{4 * i}-{4 * i + 3}" for i in range(8)], fontsize=7)
            ax.set_yticks([i + 0.5 for i in range(8)], [f"row {i}" if row_chunks >= 8 else f"rows {2 * i}, {2 * i + 1}" for i in range(8)], fontsize=7)
            ax.tick_params(length=0)
            ax.spines[:].set_visible(False)
            ax.set_xlabel("banks", fontsize=7.5)
            ax.set_title(f"{'k2_swizzled' if swizzled else 'k1_tiled'}, {what}\n{waves} wavefront{'s' if waves > 1 else ''}", fontsize=9)
    figure.supxlabel(f"A number is the chunk of 16 bytes that lies there. Blue: what one 8x8 matrix of an ldmatrix reads, chunk {wanted} of rows 0 to 7.",
                     fontsize=7.5, color="#444444")
    return figure


# ---- what runs beside what -------------------------------------------------------------------------

WORKS = (("ldsm", BLUE, "ldmatrix"), ("sts", ORANGE, "store to shared memory"), ("ldg", PURPLE, "load from global memory"))


def overlap():
    profiles, context = results.profiles()
    figure, axes = plt.subplots(len(profiles), 1, figsize=(9.4, 6.6), layout="constrained", sharex=True)
    for ax, profile in zip(axes, profiles):
        line = profile["timeline"]
        end = line["cycles"]
        blocks = sorted({warp for _, _, warp in line["hmma"]})
        for start, length, warp in line["hmma"]:
            ax.broken_barh([(start, length)], (2.1, 0.8), color=GREEN if blocks.index(warp) % 2 == 0 else "#66C2A5", linewidth=0)
        for name, colour, _ in WORKS:
            ax.broken_barh([(start, length) for start, length, _ in line[name]], (1.1, 0.8), color=colour, linewidth=0)
        ax.broken_barh([(start, max(length, 1)) for start, length, _ in line["other"]], (0.1, 0.8), color="#666666", linewidth=0)
        ax.set_ylim(0, 3)
        ax.set_xlim(0, end)
        ax.set_yticks([2.5, 1.5, 0.5], ["tensor core", "load/store unit", "other instructions"], fontsize=7)
        ax.tick_params(axis="y", length=0)
        ax.spines[["top", "right", "left"]].set_visible(False)
        note = f" = {profile['note']}" if "note" in profile else ""
        ax.set_title(f"{profile['kernel']}{note}: tensor cores busy {profile['percent']['tensor']:.0f}% of the whole launch", fontsize=8.5, loc="left", pad=3)
    axes[-1].set_xlabel("cycles", fontsize=8)
    size = profiles[0]["problem"].split("x")[0]
    figure.legend(handles=[Patch(color=GREEN, label="HMMA"), Patch(color="#66C2A5", label="HMMA of another warp"),
                           *(Patch(color=colour, label=label) for _, colour, label in WORKS), Patch(color="#666666", label="all else")],
                  loc="outside upper center", ncols=6, fontsize=7.2, frameon=False)
    figure.supxlabel(f"Modelled, not measured: {context['gpu']}, {size} x {size} x {size}, midway through the first tile.\nTensor core and other instructions: one sub-core. The load/store unit serves all four.",
                     fontsize=7.5, color="#444444")
    return figure


# ---- warps that divide k, and the last wave --------------------------------------------------------

WARPS = (BLUE, ORANGE, GREEN, PURPLE)


def sliced():
    """Four warps on a tile of 64x128 and a k-tile of 64: a tile for each, or two pairs that divide k."""
    figure, axes = plt.subplots(1, 2, figsize=(8, 4), layout="constrained")
    # of each warp: rows, columns and k's, in halves
    ways = (("a tile of 32x64 for each warp", [((m, 32), (n, 64), (0, 64)) for n in (0, 64) for m in (0, 32)]),
            ("two warps share a tile of 64x64, half of k each", [((0, 64), (n, 64), (k, 32)) for n in (0, 64) for k in (0, 32)]))
    for ax, (title, warps) in zip(axes, ways):
        (_, height), (_, width), _ = warps[0]
        halves, mmas = (height + width) * 8, height // 16 * (width // 8)
        panel = Panel(ax, f"{title}\nfragments of a slice: {halves} halves for {mmas} mma's, {halves // mmas} for each", 64 + 8 + 128, 64 + 8 + 64)
        for warp, ((m, rows), (n, columns), (k, depth)) in enumerate(warps):
            shared = depth < 64
            panel.box(72 + n, 72 + m + (rows / 2 if shared and k else 0), columns, rows / (2 if shared else 1), WARPS[warp])
            panel.box(72 + n, k, columns, depth, WARPS[warp] if shared else "#EEEEEE")
            if n == 0:
                panel.box(k, 72 + m, depth, rows, WARPS[warp] if shared else "#EEEEEE")
        for x, y, label in ((32, 136, "A: 64x64"), (136, 136, "D: 64x128")):
            panel.text(x, y, label, "black")
        panel.text(136, 0, "B: 64x128", "black", up=True)
    figure.supxlabel("Four colours: four warps. Right: a warp multiplies its half of k for the whole of its tile; in the end each of a pair keeps half of the sums.",
                     fontsize=7.5, color="#444444")
    return figure


MULTIPROCESSORS = 40
SQUARE, TILE, PARTS = 2048, 256, (1408, 640)  # the example: as hgemm splits it on a T4


def gantt(ax, title, blocks, longest):
    """Blocks, by the k's that they multiply, each go to the multiprocessor that is free first."""
    free = [0] * MULTIPROCESSORS
    for k, colour in blocks:
        at = min(range(MULTIPROCESSORS), key=lambda i: (free[i], i))
        box(ax, free[at], at, k, 1, colour, line=0.5)
        free[at] += k
    ax.axvline(max(free), color="#333333", linestyle="--", linewidth=1)
    busy = sum(free) / (MULTIPROCESSORS * max(free))
    ax.set_title(f"{title}: multiprocessors busy {100 * busy:.0f}%", fontsize=9, loc="left")
    ax.set_xlim(0, longest)
    ax.set_ylim(MULTIPROCESSORS, 0)
    ax.set_xticks(range(0, longest + 1, 1024))
    ax.tick_params(labelsize=7)
    ax.set_yticks([0.5, MULTIPROCESSORS - 0.5], ["1", str(MULTIPROCESSORS)], fontsize=7)
    ax.set_ylabel("multiprocessor", fontsize=7.5)
    ax.spines[["top", "right"]].set_visible(False)


def waves():
    tiles_of_d = (SQUARE // TILE) ** 2
    whole = MULTIPROCESSORS
    left = tiles_of_d - whole
    figure, axes = plt.subplots(2, 1, figsize=(8, 4.4), layout="constrained", sharex=True)
    gantt(axes[0], "whole tiles", [(SQUARE, GREEN)] * tiles_of_d, 2 * SQUARE)
    gantt(axes[1], "those of the last wave in two parts", [(SQUARE, GREEN)] * whole + [(PARTS[0], BLUE)] * left + [(PARTS[1], ORANGE)] * left, 2 * SQUARE)
    axes[1].set_xlabel("k's multiplied, which is time", fontsize=7.5)
    figure.supxlabel(f"Computed: {SQUARE} x {SQUARE} x {SQUARE} in tiles of {TILE}x{TILE}, which are {tiles_of_d}, on {MULTIPROCESSORS} multiprocessors. Parts: {PARTS[0]} and {PARTS[1]} of k.",
                     fontsize=7.5, color="#444444")
    return figure


PICTURES = {"tiles": tiles, "fragments": fragments, "swizzle": swizzle, "overlap": overlap, "sliced": sliced, "waves": waves}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, default=results.ROOT / "docs" / "pictures")
    out = parser.parse_args().out
    plt.rcParams.update({"font.family": "DejaVu Sans", "savefig.facecolor": "white"})
    out.mkdir(parents=True, exist_ok=True)
    for name, draw in PICTURES.items():
        figure = draw()
        figure.savefig(out / f"{name}.png", dpi=130, metadata={"Software": None} | ({"Comment": figures.made_of([results.profiles_path()])} if draw is overlap else {}))
        plt.close(figure)
        print(out / f"{name}.png")


if __name__ == "__main__":
    main()
