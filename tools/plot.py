#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draws figures of the results in bench/results/<machine>/bench_*.json into docs/plots/<machine>/.

    tools/plot.py [--results DIR --out DIR] [--format svg|png]

Needs matplotlib. A figure's data are found by what is in the files; by their names only which are parts of
one list. A line is of one commit; where every point stands for itself, ratios and the roofline, several commits may
meet, and the caption names them. A problem's contestants always come from one file, that is from the same minutes.
stderr tells what each figure was made from, or why it could not be made. A figure shows measurements, or what the
timing model of a T4 says, never both in one panel; published figures of a T4 stand beside the modelled ones and say so.
"""
import argparse
import json
import math
import pathlib
import re
import statistics
import sys
import textwrap

try:
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
except ImportError:
    print("tools/plot.py: matplotlib is missing: python3 -m pip install matplotlib", file=sys.stderr)
    sys.exit(1)

import results
from evidence import clock, figures, inputs
from results import ROOT

FEWEST_SQUARES = 12 # of a sweep
SPLIT = 1024        # of a sweep in two panels
FEWEST_SHAPES = 10  # of a list of which ratios are drawn
OURS, CUTLASS, CUBLAS, CEILING = "auto", "cutlass", "cublasHgemm", "ceiling_f16"
CONTENDERS = (OURS, CUTLASS, CUBLAS)
LABELS = {OURS: "hgemm", CUTLASS: "CUTLASS, its best Sm75 kernel", CUBLAS: "cublasHgemm", CEILING: "ceiling: mma.m16n8k8 alone"}
COLOURS = {OURS: "#0072B2", CUTLASS: "#E69F00", CUBLAS: "#009E73", CEILING: "#333333"} # Okabe and Ito's
MARKERS = {OURS: "o", CUTLASS: "s", CUBLAS: "^"}
RUNGS = {"k1_tiled": "#D6E6F2", "k2_swizzled": "#AFCEE5", "k3_prefetch": "#85B4D7", "k4_fastindex": "#5598C6"}
PLAN = "plan " # a contestant of that name is there to judge selection: its file repeats other problems
NEAR = {"textcoords": "offset points", "fontsize": 8} # of what is annotated
NEWER = "this GPU's cuBLAS uses tensor-core instructions that Turing does not have"
# Bytes per second of device memory: published peaks.
PUBLISHED_DRAM = {"NVIDIA H100 80GB HBM3": 3350e9}
# Published figures of the T4. Nothing here was measured on one.
T4_L2, T4_FLOPS, T4_MHZ = 1270e9, 65.1e12, clock.MHZ
T4_DRAM = clock.constants()["dram_rate"].value * T4_MHZ * 1e6 # as the timing model has it


class NotMade(Exception):
    """Why a figure cannot be made."""


class Problem:
    """A shape and those who were timed on it, all in one file."""

    def __init__(self, name, source):
        found = re.fullmatch(r"(\d+)x(\d+)x(\d+) ([nt])([nt]) (row|col)", name)
        self.source, self.rows = source, {}
        self.m, self.n, self.k = (int(side) for side in found.groups()[:3])
        self.ops, row = found[4] + found[5], found[6] == "row"
        self.plain_square = self.m == self.n == self.k and self.ops == "nn" and row
        strides = ((self.k if (self.ops[0] == "n") == row else self.m),
                   (self.n if (self.ops[1] == "n") == row else self.k), self.n if row else self.m)
        self.aligned = all(stride % 8 == 0 for stride in strides)
        transfers = 1 if float(source.context.get("beta", 0)) == 0 else 2 # of C and D
        self.intensity = self.m * self.n * self.k / (self.m * self.k + self.k * self.n + transfers * self.m * self.n)

    def drawn(self):
        """How many of those that are drawn it has. Epilogues and products of other types are rows, too."""
        return sum(kernel in self.rows for kernel in (*CONTENDERS, CEILING))

    def rate(self, kernel):
        return self.rows[kernel]["tflops"]

    def quartiles(self, kernel):
        """The slower and the faster quartile of TFLOPS."""
        row = self.rows[kernel]
        return tuple(row["tflops"] * row["median_us"] / row.get(key, row["median_us"]) for key in ("q3_us", "q1_us"))


class Source:
    """A file of results."""

    def __init__(self, path):
        content = json.loads(path.read_text())
        self.path, self.context = path, content["context"]
        self.problems = {}
        if self.context.get("witness") != "measured" or any(row["kernel"].startswith(PLAN) for row in content["results"]):
            return
        for row in content["results"]:
            single = re.fullmatch(r"\d+x\d+x\d+ [nt]{2} (row|col)", row["problem"])  # no batch
            if single and row.get("tflops", 0) > 0 and row.get("median_us", 0) > 0 and "failure" not in row:
                self.problems.setdefault(row["problem"], Problem(row["problem"], self)).rows[row["kernel"]] = row

    @property
    def name(self):
        return self.path.stem.removeprefix("bench_")

    def conditions(self):
        return tuple(self.context.get(key) for key in ("gpu", "driver", "clocks", "hgemm", "mode", "alpha", "beta")) + \
            ("energy" in self.context,)


class Pool:
    """Sources of the same conditions."""

    def __init__(self, sources):
        self.sources, self.problems = sources, {}
        self.burst = sources[0].context.get("mode") == "burst"
        self.date = max(source.context.get("date", "") for source in sources)
        for source in sources:
            for name, problem in source.problems.items():
                other = self.problems.get(name)
                if not other or problem.drawn() > other.drawn():
                    self.problems[name] = problem

    def squares(self):
        return sorted((p for p in self.problems.values() if p.plain_square), key=lambda p: p.n)


def pools_of(sources, key):
    found = {}
    for source in sources:
        if source.problems:
            found.setdefault(key(source), []).append(source)
    return [Pool(members) for members in found.values()]


# ---- what all figures share --------------------------------------------------------------------

def said(sources, key, otherwise="unknown"):
    """A context value; where sources differ, each value once."""
    return " or ".join(dict.fromkeys(str(s.context.get(key, otherwise)) for s in sources))


def caption(sources, *notes):
    """Where the data come from, then what is to be known about them."""
    dates = sorted({s.context.get("date", "unknown")[:10] for s in sources})
    device = said(sources, "device")
    turing = "compute capability 7.5" in device
    code = "sm_75 machine code" if turing else "compute_75 PTX, translated by the driver"
    text = [f"Measured on {said(sources, 'gpu')} ({said(sources, 'clocks')}){'' if turing else ', not on a T4'}; "
            f"hgemm's {code}; {said(sources, 'mode')} mode; {' to '.join(dict.fromkeys((dates[0], dates[-1])))}; "
            f"hgemm {said(sources, 'hgemm')}; driver {said(sources, 'driver')}; cuBLAS {said(sources, 'cublas', 'not there')}; "
            f"CUTLASS {said(sources, 'cutlass', 'not there')}; alpha {said(sources, 'alpha')}, beta {said(sources, 'beta')}; "
            f"medians of {said(sources, 'repetitions')}."]
    changed = sorted(set().union(*(inputs.changed(results.read(s.path)) for s in sources)))
    notes += (f"STALE: {', '.join(changed)} changed since" if changed else "",)
    text.append(" ".join(note[0].upper() + note[1:] + "." for note in notes if note))
    return "\n".join(textwrap.fill(part, 146) for part in text if part)


def newer(sources):
    """Why cuBLAS is not to be compared with on this machine, or nothing."""
    return "" if "compute capability 7.5" in said(sources, "device") else NEWER


def canvas(height, words, columns=1, **options):
    """Axes in a row above the caption."""
    figure, axes = plt.subplots(1, columns, figsize=(8, height), layout="constrained", squeeze=False, **options)
    foot = (0.115 * (words.count("\n") + 1) + 0.12) / height
    figure.get_layout_engine().set(rect=(0, foot, 0.992, 1 - foot))
    figure.text(0.012, 0.06 / height, words, fontsize=6.8, color="#444444", va="bottom", linespacing=1.2)
    for ax in axes[0]:
        ax.spines[["top", "right"]].set_visible(False)
        ax.grid(axis="y", color="#DDDDDD", linewidth=0.6)
        ax.set_axisbelow(True)
    return figure, axes[0]


def dots(kernel, aligned=True, size=4.0):
    """How a contestant's points look: filled where all rows are multiples of 8 elements."""
    return {"color": COLOURS[kernel], "marker": MARKERS[kernel], "markersize": size, "markeredgewidth": 0.2 * size,
            "markerfacecolor": COLOURS[kernel] if aligned else "white"}


def log2_axis(axis, ticks, form="{:g}"):
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: form.format(value)))


def powers_of_two(low, high):
    return [2.0 ** e for e in range(math.floor(math.log2(low)), math.ceil(math.log2(high)) + 1)]


def from_files(sources):
    return ", ".join(dict.fromkeys(source.path.name for source in sources))


# ---- bars of contestants: ladder and energy ----------------------------------------------------

def line_up(problem):
    """[(kernel, label, colour)] of a problem: the rungs, the library's choice as the last of them, the peers."""
    bars = [(rung, rung.replace("_", "\n"), colour) for rung, colour in RUNGS.items()]
    choice = problem.rows.get(OURS, {}).get("note", "")
    bars.append((OURS, "k5\ntuned" + (f"\n({choice})" if choice else ""), COLOURS[OURS]))
    tile = problem.rows.get(CUTLASS, {}).get("note", "")
    bars.append((CUTLASS, "CUTLASS" + (f"\n({tile.replace(' ', chr(10), 1)})" if tile else ""), COLOURS[CUTLASS]))
    bars += [(CUBLAS, "cublas\nHgemm", COLOURS[CUBLAS]), (CEILING, "ceiling:\nmma.m16n8k8\nalone", COLOURS[CEILING])]
    return [bar for bar in bars if bar[0] in problem.rows]


def draw_bars(ax, bars, values, whiskers, words, hatched, shares=None):
    """`words` stand above the bars, `shares` within."""
    heights = [values[kernel] for kernel, _, _ in bars]
    for x, (kernel, _, colour) in enumerate(bars):
        low, high = whiskers[kernel]
        ax.bar(x, values[kernel], 0.72, color=colour, edgecolor="white" if kernel in hatched else colour,
               hatch="//" if kernel in hatched else None, linewidth=0)
        ax.errorbar(x, values[kernel], [[values[kernel] - low], [high - values[kernel]]], color="black", capsize=3, linewidth=1)
        ax.annotate(words[kernel], (x, max(high, values[kernel])), (0, 3), textcoords="offset points", ha="center", fontsize=8)
        if kernel in (shares or {}):
            ax.annotate(shares[kernel], (x, low), (0, -4), textcoords="offset points", ha="center", va="top", fontsize=8,
                        color="white" if kernel == OURS else "black")
    ax.set_xticks(range(len(bars)), [label for _, label, _ in bars], fontsize=8)
    ax.tick_params(axis="x", length=0)
    ax.set_ylim(0, 1.16 * max(heights))


def ladder(machine):
    name = "4096x4096x4096 nn row"
    able = [pool for pool in pools_of(machine, lambda source: source.path) # of one run, and the newest, as results.newest has it
            if pool.burst and name in pool.problems and all(r in pool.problems[name].rows for r in (*RUNGS, OURS))]
    if not able:
        raise NotMade("no file has k1 to k4 and auto at 4096")
    problem = max(able, key=lambda pool: pool.date).problems[name]
    bars = line_up(problem)
    sources = [problem.source]
    ceiling = problem.rate(CEILING) if CEILING in problem.rows else None
    hatched = {CUBLAS} if newer(sources) else set()
    figure, (ax,) = canvas(4.6, caption(sources, "whiskers: quartiles",
                                        "" if CUTLASS in problem.rows else "CUTLASS was not measured in this file",
                                        f"Hatched: {NEWER}" if hatched else ""))
    draw_bars(ax, bars, {k: problem.rate(k) for k, _, _ in bars}, {k: problem.quartiles(k) for k, _, _ in bars},
              {k: f"{problem.rate(k):.0f}" for k, _, _ in bars}, hatched,
              {k: f"{100 * problem.rate(k) / ceiling:.0f}%" for k, _, _ in bars if ceiling and k not in hatched | {CEILING}})
    if ceiling:
        ax.axhline(ceiling, color=COLOURS[CEILING], linestyle="--", linewidth=0.9, zorder=0.9)
        ax.annotate(f"ceiling {ceiling:.0f} TFLOPS; percentages are of it", (-0.45, ceiling), (0, 3), **NEAR)
    ax.set_ylabel("TFLOPS")
    ax.set_title("The rungs: half-precision 4096 x 4096 x 4096", loc="left")
    return figure, sources


def energy_of(row):
    """(pJ per operation, watts, [pJ per operation of each repetition]) by the energy counter, or None."""
    watts = row.get("watts")
    picojoules = row.get("pj_per_flop", row.get("picojoules_per_flop", watts / row["tflops"] if watts else None))
    if not picojoules:
        return None
    operations = row["tflops"] * row["median_us"] * 1e6
    turns = zip(*(row[key] if isinstance(row.get(key), list) else [] for key in ("joules", "window_s", "us")))
    return picojoules, watts or picojoules * row["tflops"], [j / w * us * 1e6 / operations for j, w, us in turns if j and w and us]


def energy(machine):
    name = "8192x8192x8192 nn row"
    able = []
    for pool in pools_of(machine, Source.conditions):
        problem = pool.problems.get(name)
        if problem and sum(energy_of(row) is not None for row in problem.rows.values()) >= 2:
            able.append(pool)
    if not able:
        raise NotMade("no file has energy (watts, pj_per_flop) of two contestants at 8192")
    problem = max(able, key=lambda pool: (CUTLASS in pool.problems[name].rows, pool.date)).problems[name]
    bars = [bar for bar in line_up(problem) if energy_of(problem.rows[bar[0]])]
    values, whiskers, words = {}, {}, {}
    for kernel, _, _ in bars:
        picojoules, watts, turns = energy_of(problem.rows[kernel])
        quartiles = statistics.quantiles(turns, method="inclusive") if len(turns) > 1 else [picojoules] * 3
        values[kernel] = 1000 / picojoules
        whiskers[kernel] = tuple(1000 / q for q in (max(quartiles[2], picojoules), min(quartiles[0], picojoules)))
        words[kernel] = f"{values[kernel]:.0f}\n{picojoules:.2f} pJ\n{watts:.0f} W"
    sources = [problem.source]
    hatched = {CUBLAS} if newer(sources) and CUBLAS in values else set()
    figure, (ax,) = canvas(4.6, caption(sources, "above each bar: GFLOP per joule, picojoules per operation, watts",
                                        "whiskers: quartiles",
                                        "energy of the whole board " + said(sources, "energy", "").removesuffix("."),
                                        "CUTLASS was not measured in this file" if CUTLASS not in values else "",
                                        f"Hatched: {NEWER}" if hatched else ""))
    draw_bars(ax, bars, values, whiskers, words, hatched)
    ax.set_ylim(0, 1.25 * max(values.values()))
    ax.set_ylabel("GFLOP per joule")
    ax.set_title("Energy: half-precision 8192 x 8192 x 8192, launches back to back", loc="left")
    return figure, sources


# kernel: label, colour, marker
FLOATS = {"cublasGemmEx_f32": ("FP16, cuBLAS", "#999999", "^"), "auto_f32": ("FP16, hgemm", "#E69F00", "o"),
          "cublasGemmEx_bf16": ("BF16, cuBLAS", "#555555", "^"), "auto_of_bf16": ("BF16, hgemm", "#CC79A7", "o"),
          "cublasGemmEx_tf32": ("TF32, cuBLAS", "#56B4E9", "^"), "auto_of_f32_11bits": ("FP32 to 11 bits, hgemm", "#85B4D7", "o"), "auto_of_f32_16bits": ("FP32 to 16 bits, hgemm", "#5598C6", "o"),
          "cublasSgemm": ("FP32, cuBLAS", "#009E73", "^"), "auto_of_f32": ("FP32, hgemm", "#0072B2", "o")}


def of_f32(machine):
    """{size: {kernel: row}} of the newest lists of FP32 and of BF16, and their sources."""
    found, sources = {}, []
    for asked, kernels in (("f32", ("auto_f32", "cublasGemmEx_f32", "cublasGemmEx_tf32", "cublasSgemm", "auto_of_f32", "auto_of_f32_16bits", "auto_of_f32_11bits")), ("bf16", ("cublasGemmEx_bf16", "auto_of_bf16"))):
        able = [source for source in machine if source.context.get("operands") == asked and "energy" not in source.context
                and any(problem.plain_square and problem.n % 1024 == 0 for problem in source.problems.values())]
        for source in able[-1:]:
            sources.append(source)
            for problem in source.problems.values():
                if problem.plain_square and problem.n % 1024 == 0:
                    found.setdefault(problem.n, {}).update({k: row for k, row in problem.rows.items() if k in kernels and "relative_error" in row})
    return found, sources


def floats(machine):
    found, sources = of_f32(machine)
    if not any("cublasSgemm" in rows and "auto_of_f32" in rows for rows in found.values()):
        raise NotMade("no file has cublasSgemm and auto_of_f32 at a square")
    figure, (ax,) = canvas(4.4, caption(sources, "error: root mean square of D's over that of its values, random A and B in [-1, 1); D is of the type of A and B, "
                                        "and its rounding counts", "squares: " + ", ".join(map(str, sorted(found))) + ", of which the largest have the largest markers",
                                        newer(sources)))
    ax.set_xscale("log")
    ax.set_yscale("log")
    for kernel, (label, colour, marker) in FLOATS.items():
        points = [(rows[kernel]["tflops"], rows[kernel]["relative_error"]) for _, rows in sorted(found.items()) if kernel in rows]
        if not points:
            continue
        ax.plot(*zip(*points), color=colour, linewidth=1, zorder=1)
        ax.scatter(*zip(*points), s=[18 + 22 * i for i in range(len(points))], color=colour, marker=marker, linewidths=0, zorder=2)
        below = kernel in ("cublasGemmEx_tf32", "auto_of_f32_11bits")  # among those of FP16
        if kernel.startswith("auto"):
            ax.annotate(label, points[0], (0, -7 if below else 7), **NEAR, color=colour, weight="bold", va="top" if below else "bottom")
        else:
            ax.annotate(label, points[-1], (2, -8) if below else (8, 2), **NEAR, color=colour, va="top" if below else "bottom")
    low, high = ax.get_xlim()
    ax.set_xlim(low, high * 1.6)
    low, high = ax.get_ylim()
    ax.set_ylim(low / 1.5, high * 2)
    ax.xaxis.set_major_locator(FixedLocator([20, 30, 50, 100, 200, 300, 500, 1000]))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    ax.set_xlabel("TFLOPS")
    ax.set_ylabel("relative error")
    ax.set_title("Error against speed: FP32 sums, by what A and B are", loc="left")
    return figure, sources


def energy_f32(machine):
    name = "4096x4096x4096 nn row"
    able = [source for source in machine if source.context.get("operands") == "f32" and name in source.problems
            and sum(energy_of(row) is not None for row in source.problems[name].rows.values()) >= 2]
    if not able:
        raise NotMade("no file has energy of FP32 products at 4096")
    source = max(able, key=lambda source: source.context.get("date", ""))
    rows = source.problems[name].rows
    bars = [(kernel, label.replace(", ", "\n"), colour) for kernel, (label, colour, _) in FLOATS.items() if kernel in rows and energy_of(rows[kernel])]
    values = {kernel: energy_of(rows[kernel])[0] for kernel, _, _ in bars}
    words = {kernel: f"{values[kernel]:.1f} pJ\n{energy_of(rows[kernel])[1]:.0f} W\n{rows[kernel]['tflops']:.0f} TFLOPS" for kernel, _, _ in bars}
    whiskers = {}
    for kernel, _, _ in bars:
        turns = energy_of(rows[kernel])[2]
        whiskers[kernel] = (min([*turns, values[kernel]]), max([*turns, values[kernel]]))
    figure, (ax,) = canvas(4.2, caption([source], "whiskers: least and most", "energy of the whole board " + said([source], "energy", "").removesuffix("."),
                                        newer([source])))
    draw_bars(ax, bars, values, whiskers, words, {kernel for kernel in values if kernel.startswith("cublasGemmEx")} if newer([source]) else set())
    ax.set_ylim(0, 1.35 * max(values.values()))
    ax.set_ylabel("picojoules per operation")
    ax.set_title("Energy: FP32 4096 x 4096 x 4096 beside less exact products, launches back to back", loc="left")
    return figure, [source]


# ---- TFLOPS over N -----------------------------------------------------------------------------

def sweep(machine):
    best = max(pools_of(machine, Source.conditions), default=None,
               key=lambda pool: (sum(OURS in p.rows for p in pool.squares()), pool.burst, pool.date))
    squares = [p for p in best.squares() if OURS in p.rows] if best else []
    if len(squares) < FEWEST_SQUARES:
        raise NotMade(f"at most {len(squares)} square sizes under the same conditions, {FEWEST_SQUARES} wanted")
    sources = list(dict.fromkeys(p.source for p in squares))
    count = sum(CUTLASS in p.rows for p in squares)
    cutlass = f"CUTLASS was measured at {count} of {len(squares)} sizes" if count else "CUTLASS was not measured in these files"
    low, high = squares[0].n / 1.1, squares[-1].n * 1.1
    ranges = [(low, high)]
    if squares[0].n <= SPLIT / 2 and squares[-1].n >= SPLIT * 2:
        ranges = [(low, SPLIT * 1.1), (SPLIT / 1.1, high)]
    figure, axes = canvas(4.6, caption(sources, f"{len(squares)} sizes",
                                       "the panels have different scales" if len(ranges) > 1 else "",
                                       cutlass if count < len(squares) else "", newer(sources)), len(ranges))
    entries = []
    for kernel in (*CONTENDERS, CEILING):
        curve = [p for p in squares if kernel in p.rows]
        if not curve:
            continue
        if kernel == CEILING:
            for ax in axes:
                ax.plot([p.n for p in curve], [p.rate(kernel) for p in curve], color=COLOURS[kernel], linestyle="--", linewidth=1.1)
            entries.append(Line2D([], [], color=COLOURS[kernel], linestyle="--", linewidth=1.1, label=LABELS[kernel]))
            continue
        for aligned in (True, False):
            part = [p for p in curve if (p.n % 8 == 0) == aligned]
            for ax in axes:
                ax.plot([p.n for p in part], [p.rate(kernel) for p in part], linestyle="-" if aligned else ":",
                        linewidth=1.3 if aligned else 0.9, **dots(kernel, aligned))
        entries.append(Line2D([], [], linewidth=1.3, label=LABELS[kernel], **dots(kernel)))
    entries += [Line2D([], [], color="#777777", marker="o", markersize=4.5, linewidth=1.3, label="N a multiple of 8: filled"),
                Line2D([], [], color="#777777", marker="o", markersize=4.5, linewidth=0.9, linestyle=":", markerfacecolor="white",
                       label="any other N: hollow")]
    axes[0].legend(handles=entries, loc="upper left", fontsize=8, frameon=False)
    for ax, (low, high) in zip(axes, ranges):
        ax.set_xscale("log", base=2)
        log2_axis(ax.xaxis, powers_of_two(low, high), "{:.0f}")
        ax.set_xlim(low, high)
        ax.set_ylim(0, 1.06 * max(p.rate(k) for p in squares if low <= p.n <= high for k in (*CONTENDERS, CEILING) if k in p.rows))
        ax.set_xlabel("N of an N x N x N product")
        ax.set_ylabel("TFLOPS")
    axes[0].set_title("Squares, aligned and not", loc="left")
    return figure, sources


# ---- ratios over lists of shapes ---------------------------------------------------------------

def ratio(machine):
    def comparable(source): # a ratio is of one run, so that runs of several commits may stand side by side
        return tuple(source.context.get(key) for key in ("gpu", "driver", "clocks", "mode", "alpha", "beta"))

    parts = {} # of a list: its name, and a number
    for source in machine:
        if source.problems:
            parts.setdefault((source.name.rstrip("0123456789"), comparable(source)), []).append(source)
    lists = []
    for (name, under), members in parts.items():
        shapes = [p for s in members for p in s.problems.values() if OURS in p.rows and (CUTLASS in p.rows or CUBLAS in p.rows)]
        if len(shapes) >= FEWEST_SHAPES and 2 * sum(p.plain_square for p in shapes) <= len(shapes):
            lists.append((name, under, members, shapes))
    if not lists:
        raise NotMade(f"no list has {FEWEST_SHAPES} shapes, half of them no squares, with auto and a peer")
    newest = max((s for _, _, members, _ in lists for s in members),
                 key=lambda s: (s.context.get("mode") == "burst", s.context.get("date", "")))
    sources = [s for _, under, members, _ in lists if under == comparable(newest) for s in members]
    lists = [(name, shapes) for name, under, _, shapes in lists if under == comparable(newest)]
    absent = [name for name, shapes in lists if not any(CUTLASS in p.rows for p in shapes)]
    figure, axes = canvas(4.4, caption(
        sources, "each curve is sorted by itself", "filled: all rows are multiples of 8 elements, hollow: not",
        f"CUTLASS was not measured in {', '.join(absent)}" if absent else "", newer(sources)), len(lists), sharey=True)
    every = []
    for ax, (name, shapes) in zip(axes, lists):
        for kernel in (CUTLASS, CUBLAS):
            known = sorted((p.rate(OURS) / p.rate(kernel), p.aligned) for p in shapes if kernel in p.rows)
            if not known:
                continue
            points = [(place, *point) for place, point in enumerate(known, 1)]
            ratios = [value for value, _ in known]
            every += ratios
            mean = math.exp(statistics.fmean(map(math.log, ratios)))
            ax.plot(range(1, len(known) + 1), ratios, color=COLOURS[kernel], linewidth=0.8)
            for aligned in (True, False):
                part = [(place, value) for place, value, is_aligned in points if is_aligned == aligned]
                ax.plot([place for place, _ in part], [value for _, value in part], linestyle="none", **dots(kernel, aligned))
            peer = "CUTLASS" if kernel == CUTLASS else kernel
            ax.plot([], [], linewidth=0.8, **dots(kernel),
                    label=f"over {peer}:{' ' if len(lists) < 3 else chr(10)}geometric mean {mean:.2f},\n"
                          f"faster in {sum(r > 1 for r in ratios)} of {len(ratios)}")
        ax.axhline(1, color="#333333", linewidth=1)
        ax.set_xlabel("shapes, sorted by ratio")
        ax.set_title(f"{name.replace('_', ' ')}: {len(shapes)} shapes", loc="left")
        ax.legend(loc="upper left", fontsize=8, frameon=False)
    axes[0].set_yscale("log", base=2)
    log2_axis(axes[0].yaxis, [t for e in range(-8, 9) for t in (2.0 ** e, 1.5 * 2.0 ** e)])
    legend = (max(every) / min(every)) ** (0.35 if len(lists) < 3 else 0.5) # room for it
    axes[0].set_ylim(min(every) / 1.15, max(every) * 1.15 * legend)
    axes[0].set_ylabel("hgemm's speed over the peer's")
    return figure, sources


# ---- roofline ----------------------------------------------------------------------------------

def bandwidth(gpu):
    """(bytes per second of device memory, label), where they are known."""
    if gpu in PUBLISHED_DRAM:
        return PUBLISHED_DRAM[gpu], f"DRAM {PUBLISHED_DRAM[gpu] / 1e9:.0f} GB/s (published)"
    return None, None


def draw_roof(ax, slope, top, low, label, colour, style):
    """A slanting roof up to where it meets the flat one, and its label, to be tilted. (knee, label)"""
    knee = top / slope
    ax.plot([low, knee], [low * slope / 1e12, knee * slope / 1e12], color=colour, linestyle=style, linewidth=1.2)
    at = low * (knee / low) ** 0.52
    return knee, ax.annotate(label, (at, at * slope / 1e12), (-2, 2), **NEAR, color=colour, ha="center",
                             va="bottom", rotation_mode="anchor", in_layout=False)


def tilt(figure, ax, labels):
    """Lays labels along the roofs of memory, which all rise alike."""
    figure.draw_without_rendering() # settles the layout
    (left, bottom), (right, top) = ax.transData.transform([(1, 1), (10, 10)])
    for label in labels:
        label.set_rotation(math.degrees(math.atan2(top - bottom, right - left)))


def roofline(machine):
    able = [pool for pool in pools_of(machine, lambda s: (s.context.get("gpu"), s.context.get("mode")))
            if any(OURS in p.rows for p in pool.problems.values())]
    if not able:
        raise NotMade("no file has auto")
    pool = max(able, key=lambda pool: (pool.burst, pool.date))
    # The same product with another beta is another problem here: its traffic differs.
    problems = [p for s in pool.sources for p in s.problems.values() if OURS in p.rows]
    sources = list(dict.fromkeys(p.source for p in problems))
    low, high = 0.5, 2.0 ** math.ceil(math.log2(2 * max(p.intensity for p in problems)))
    slope, memory = bandwidth(said(sources, "gpu"))
    tops = [p.rate(CEILING) for p in problems if CEILING in p.rows]
    top = max(tops) * 1e12 if tops else None
    cutlass = any(CUTLASS in p.rows for p in problems)
    gpu = said(sources, "gpu")
    figure, (ax, t4) = canvas(4.8, caption(
        sources, "traffic is what cannot be avoided: A, B and, with beta, C read once, D written once", newer(sources),
        "" if cutlass else "CUTLASS was not measured in these files",
        "Right: figures published for the T4, not measured, no result of this library"), 2, sharex=True, sharey=True,
        gridspec_kw={"width_ratios": (1.6, 1)})
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=10)
    size = 4.2 if len(problems) < 60 else 3
    for kernel in reversed(CONTENDERS):
        shown = [p for p in problems if kernel in p.rows]
        for aligned in (True, False):
            part = [p for p in shown if p.aligned == aligned]
            ax.plot([p.intensity for p in part], [p.rate(kernel) for p in part], linestyle="none", alpha=0.8,
                    **dots(kernel, aligned, size))
    lowest = min(p.rate(k) for p in problems for k in CONTENDERS if k in p.rows)
    highest = max(p.rate(k) for p in problems for k in CONTENDERS if k in p.rows)
    ax.set_xlim(low, high)
    ax.set_ylim(min(0.1, lowest / 2), max(highest, (top or 0) / 1e12) * 2)
    knee, label = low, None
    if slope and top:
        knee, label = draw_roof(ax, slope, top, low, memory, COLOURS[CEILING], "-")
    if top:
        ax.plot([knee, high], [top / 1e12] * 2, color=COLOURS[CEILING], linewidth=1.2)
        ax.annotate(f"mma.m16n8k8 {top / 1e12:.0f} TFLOPS (measured)", (knee, top / 1e12), (-4, 4), **NEAR,
                    ha="right", color=COLOURS[CEILING])
    handles = [Line2D([], [], linestyle="none", marker=MARKERS[k], color=COLOURS[k], markersize=5, label=LABELS[k].split(",")[0])
               for k in CONTENDERS if any(k in p.rows for p in problems)]
    handles.append(Line2D([], [], linestyle="none", marker="o", color="#777777", markerfacecolor="white", markersize=5,
                          label="hollow: rows no multiples of 8"))
    ax.legend(handles=handles, loc="lower right", fontsize=8, frameon=False)
    ax.set_title(f"{gpu}: measured", loc="left")
    ax.set_xlabel("flop per byte of DRAM traffic")
    ax.set_ylabel("TFLOPS")

    grey = "#666666"
    knee, cache = draw_roof(t4, T4_L2, T4_FLOPS, low, f"L2 {T4_L2 / 1e9:.0f} GB/s (published)", grey, "--")
    _, dram = draw_roof(t4, T4_DRAM, T4_FLOPS, low, f"DRAM {T4_DRAM / 1e9:.0f} GB/s (published)", grey, "-")
    t4.plot([knee, high], [T4_FLOPS / 1e12] * 2, color=grey, linewidth=1.2)
    t4.annotate(f"{T4_FLOPS / 1e12:.1f} TFLOPS, nominal\nat {T4_MHZ} MHz (published)", (high, T4_FLOPS / 1e12), (-2, 4),
                **NEAR, ha="right", color=grey)
    t4.set_title("T4: published figures only", loc="left")
    t4.set_xlabel("flop per byte of DRAM or L2 traffic")
    log2_axis(ax.xaxis, [t for t in powers_of_two(1, high) if math.log2(t) % 3 == 0], "{:.0f}")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_locator(NullLocator())
    tilt(figure, ax, [label] if label else [])
    tilt(figure, t4, [cache, dram])
    return figure, sources


# ---- a T4, by its timing model ------------------------------------------------------------------

MODEL = "t4model"


def stale(used):
    """What changed since the files of results were made."""
    changed = sorted(set().union(*(inputs.changed(results.read(path)) for of in used for path in of["paths"])))
    return f"STALE: {', '.join(changed)} changed since." if changed else ""


def by_events(row):
    """TFLOPS of a modelled launch by a pair of events after a pause; None where it is not known."""
    return row["tflops"] * row["median_us"] / row["events_us"] if "events_us" in row else None


def t4_ladder():
    """The rungs on a modelled T4, beside published figures of cuBLAS on a real one."""
    context, published = results.published()
    bars = [*RUNGS.items(), (OURS, COLOURS[OURS]), (CUTLASS, COLOURS[CUTLASS])]
    sizes = [size for size in (1024, 2048, 4096, 8192) if results.square(MODEL, size, OURS)]
    used = [of for size in sizes for kernel, _ in bars if (of := results.newest(MODEL, f"{size}x{size}x{size} nn row", kernel)[1])]
    words = "\n".join(textwrap.fill(text, 146) for text in (
        "Blue, orange and the dashed ceiling: modelled, not measured; the timing model executes the sm_75 machine code at 1590 MHz "
        "and leaves out the launch. Black lines: the same as a pair of events after a pause would say, which is how the published ones were timed. "
        "CUTLASS is its fastest Turing kernel.",
        f"Hatched: published, cuBLAS on a real T4 with clocks {context['clocks']} ({context['source']}; {context['note']}). No T4 was measured here. " + stale(used)))
    figure, (ax,) = canvas(4.2, words)
    width = 0.8 / (len(bars) + 1)
    for group, size in enumerate(sizes):
        rows = {kernel: results.square(MODEL, size, kernel).get(kernel) for kernel, _ in bars}
        heights = [(rows[kernel]["tflops"], by_events(rows[kernel]), colour, None) for kernel, colour in bars if rows[kernel]]
        if size in published:
            heights.append((published[size], None, COLOURS[CUBLAS], "//"))
        left = group - width * (len(heights) - 1) / 2
        for i, (height, shown, colour, hatch) in enumerate(heights):
            ax.bar(left + i * width, height, 0.92 * width, color=colour, hatch=hatch, edgecolor="white" if hatch else colour, linewidth=0)
            if shown:
                ax.plot([left + (i - 0.46) * width, left + (i + 0.46) * width], [shown] * 2, color="black", linewidth=1.4, solid_capstyle="butt")
            ax.annotate(f"{height:.0f}", (left + i * width, height), (0, 2), textcoords="offset points", ha="center", fontsize=7.5)
        if ceiling := results.square(MODEL, size, CEILING).get(CEILING):
            ax.plot([left - width, left + width * len(heights)], [ceiling["tflops"]] * 2, color=COLOURS[CEILING], linestyle="--", linewidth=1)
    ax.set_xticks(range(len(sizes)), [f"{size} x {size} x {size}" for size in sizes])
    ax.tick_params(axis="x", length=0)
    ax.set_ylabel("TFLOPS")
    ax.set_ylim(0, 78)
    names = {**{rung: rung for rung in RUNGS}, OURS: "hgemm (k5_tuned)", CUTLASS: "CUTLASS"}
    handles = [Patch(color=colour, label=names[kernel]) for kernel, colour in bars]
    handles += [Patch(facecolor=COLOURS[CUBLAS], hatch="//", edgecolor="white", label="cublasHgemm (published)"),
                Line2D([], [], color="black", linewidth=1.4, label="by events after a pause"),
                Line2D([], [], color=COLOURS[CEILING], linestyle="--", linewidth=1, label="ceiling")]
    ax.legend(handles=handles, loc="upper left", ncols=5, fontsize=7.5, frameon=False)
    ax.set_title("A T4: half precision, FP16 sums", loc="left")
    return figure, used


WAITS = (("tensor core", "#009E73", "the tensor core, which is busy"), ("issue", "#8FD3BE", "nothing: it issues"),
         ("load/store queue", "#0072B2", "a place in the load/store queue"), ("shared memory", "#56B4E9", "shared memory"),
         ("global memory", "#CC79A7", "global memory"), ("barrier", "#E69F00", "a barrier"),
         ("other", "#999999", "other pipes, stall counts"), ("no warps", "#E5E5E5", "no warp left"))


def t4_waits():
    """What the cycles of a sub-core go to, rung by rung."""
    profiles, _ = results.profiles()
    used = [{"paths": [results.profiles_path()]}]
    size = profiles[0]["problem"].split("x")[0]
    figure, (ax,) = canvas(3.4, f"Modelled, not measured: {size} x {size} x {size} on the timing model of a T4. "
                                "A sub-core that issues nothing waits for what the warp that issues next waited for. " + stale(used))
    for y, profile in enumerate(profiles):
        shares = {**profile["waits"], "issue": profile["percent"]["issue"]}
        shares["other"] = shares.pop("other pipes") + shares.pop("stall counts")
        left = 0
        for name, colour, _ in WAITS:
            ax.barh(y, shares[name], 0.72, left, color=colour, linewidth=0)
            if shares[name] >= 4:
                ax.annotate(f"{shares[name]:.0f}", (left + shares[name] / 2, y), ha="center", va="center", fontsize=7.5,
                            color="white" if colour in ("#009E73", "#0072B2") else "black")
            left += shares[name]
    ax.set_yticks(range(len(profiles)), [p["kernel"] + (f"\n({p['note']})" if "note" in p else "") for p in profiles])
    ax.invert_yaxis()
    ax.set_xlim(0, 100)
    ax.grid(axis="y", visible=False)
    ax.tick_params(axis="y", length=0)
    ax.set_xlabel("% of the cycles of a sub-core")
    ax.legend(handles=[Patch(color=colour, label=label) for _, colour, label in WAITS], loc="lower center",
              bbox_to_anchor=(0.45, 1.0), ncols=4, fontsize=7.2, frameon=False)
    return figure, used


# kernel: label, colour, marker, line
PACKED = {"auto_f32": ("FP16 weights, hgemm", "#333333", "o", "-"), "bitsandbytes nf4:64": ("NF4, bitsandbytes", "#CC79A7", "^", "--"),
          "marlin int4:128": ("INT4, Marlin (FP16 sums)", "#E69F00", "s", "--"), "auto_of_int8:128:none:f16": ("INT8, hgemm", "#009E73", "o", "-"),
          "auto_of_nf4:64:none:f32": ("NF4, hgemm", "#56B4E9", "o", "-"), "auto_of_int4:128:none:f16": ("INT4, hgemm", "#0072B2", "o", "-")}
TENSOR_FLOPS = 40 * 4 * 2 * 16 * 8 * 8 / clock.constants()["tensor"].value * T4_MHZ * 1e6  # of a T4, by the model's constant


def t4_weights():
    """Products by packed weights over the number of rows, on a modelled T4, beside others."""
    problems, used = results.weights()
    side, rows = 4096, {}
    for problem, named in problems.items():
        m, n, k = map(int, problem.split()[0].split("x"))
        if (n, k) == (side, side):
            rows[m] = named
    firsts = sorted(m for m in rows if any("median_us" not in rows[m][kernel] for kernel in PACKED if kernel in rows[m]))
    but = f", but hgemm's of {' and '.join(map(str, firsts))} rows, which find nothing in L2" if firsts else ""
    words = "\n".join(textwrap.fill(text, 146) for text in (
        f"Modelled, not measured: kernel times of a T4 at {T4_MHZ} MHz, W of {side} x {side}, FP32 sums but Marlin's. "
        f"Launches follow others like them{but}. Marlin is vLLM's, built for sm_75; of "
        "bitsandbytes the kernel that uses tensor cores, for up to 32 rows. Grey: what INT4's bytes at "
        f"{T4_DRAM / 1e9:.0f} GB/s, or tensor cores, ask for. " + stale(used),))
    figure, (ax,) = canvas(4.6, words)
    ms = sorted(rows)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    bytes_ = side * side * (0.5 + 2 / 128)
    ax.plot(ms, [1e6 * max((bytes_ + 4 * m * side) / T4_DRAM, 2 * m * side * side / TENSOR_FLOPS) for m in ms], color="#AAAAAA", linewidth=5, alpha=0.5, zorder=0,
            solid_capstyle="butt", label="floor, INT4")
    for kernel, (label, colour, marker, line) in PACKED.items():
        points = [(m, rows[m][kernel].get("median_us", rows[m][kernel].get("first_us"))) for m in ms if kernel in rows[m]]
        if points:
            ax.plot(*zip(*points), color=colour, linestyle=line, marker=marker, markersize=4, linewidth=1.2, label=label)
    log2_axis(ax.xaxis, [m for m in ms if bin(m).count("1") == 1], "{:.0f}")
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set_xlabel("rows of A")
    ax.set_ylabel("us")
    ax.legend(loc="upper left", fontsize=8, frameon=False)
    ax.set_title("A T4: products by packed weights", loc="left")
    return figure, used


FIGURES = {"ladder": ladder, "floats": floats, "energy_f32": energy_f32, "sweep": sweep, "ratio": ratio, "roofline": roofline, "energy": energy}
T4_FIGURES = {"ladder": t4_ladder, "weights": t4_weights, "waits": t4_waits}


def save(figure, path, paths):
    path.parent.mkdir(parents=True, exist_ok=True)
    undated = {"Date": None, "Creator": None} if path.suffix == ".svg" else {"Software": None}
    if path.suffix == ".png" and all(source.is_relative_to(results.RESULTS) for source in paths):
        undated["Comment"] = figures.made_of(paths)
    figure.savefig(path, dpi=140, metadata=undated)
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=pathlib.Path, help="holds <machine>/*.json; wants --out as well")
    parser.add_argument("--out", type=pathlib.Path, default=None)
    parser.add_argument("--format", choices=("svg", "png"), default="png")
    options = parser.parse_args()
    if options.results and not options.out:
        parser.error("--results wants --out as well: docs/plots is for the results of this repository")
    out = options.out or ROOT / "docs" / "plots"
    # A fixed salt, and no dates below: the same data give the same file.
    plt.rcParams.update({"font.family": "DejaVu Sans", "font.size": 9, "axes.titlesize": 10, "axes.labelsize": 9,
                         "hatch.linewidth": 1.5, "svg.hashsalt": "hgemm", "savefig.facecolor": "white"})
    machines = {}
    for path in sorted((options.results or ROOT / "bench" / "results").glob("*/bench_*.json")):
        source = Source(path)
        if source.problems:
            machines.setdefault(path.parent.name, []).append(source)
    for machine, sources in machines.items():
        for name, make in FIGURES.items():
            path = out / machine / f"{name}.{options.format}"
            try:
                figure, used = make(sources)
            except NotMade as why:
                left = f"; the one that is there was left: {path}" if path.exists() else ""
                print(f"{machine}: {name} not made: {why}{left}", file=sys.stderr)
                continue
            save(figure, path, [source.path for source in used])
            print(f"{machine}: {name} made from {from_files(used)}: {path}", file=sys.stderr)
    if not options.results:
        for name, make in T4_FIGURES.items():
            figure, used = make()
            save(figure, out / MODEL / f"{name}.{options.format}", [path for of in used for path in of["paths"]])


if __name__ == "__main__":
    main()
