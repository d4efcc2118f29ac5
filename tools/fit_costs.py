#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fits constants of the cost model (src/select/costs.def), for products of floats on an H100, to plans that bench_hgemm timed there.

    tools/fit_costs.py BUILD PLANS.json... [--names NAME,NAME...] [--hold] [--seconds 60]

BUILD has the library built (build/release); PLANS are of `bench_hgemm --type f32 --plans 40 --kernel '^auto_of_f32$'`. Without names it
only tells how far the choices of today are from the fastest plans, and prices from times. With --hold a third of the problems is left out
of the fit and judged apart. What it finds it prints: copy it to costs.def, and say in its head what it was fitted to.

What is made small: how much longer than the fastest plan a choice takes, where plans whose prices are near each other are chosen from by
chance; the squared distance of prices from times, those of slow plans counting less; and the distance of constants from today's.
"""
import argparse
import ctypes
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LABEL, MOST = 64, 3000
LAUNCH_US = 4.3  # of a burst's time, beyond what prices count
NEAR = .04  # prices this near to each other may change places
FIRST_STEP = .08  # of a logarithm


def link(build, folder):
    objects = [path for place in ("CMakeFiles/hgemm_objects.dir", "CMakeFiles/hgemm_images.dir", "src/turing/CMakeFiles/turing.dir")
               for path in (build / place).rglob("*.o") if path.name != "price.c.o"]
    if not objects or min(path.stat().st_mtime for path in objects if path.name == "cost.c.o") < (ROOT / "src/select/costs.def").stat().st_mtime:
        sys.exit(f"{build} is older than costs.def: build it")
    library = pathlib.Path(folder) / "fit.so"
    subprocess.run(["gcc", "-O2", "-std=gnu11", "-shared", "-fPIC", f"-I{ROOT / 'src'}", f"-I{ROOT / 'include'}", f"-I{build}", "-o", library,
                    ROOT / "tools" / "fit_costs.c", *objects, "-lzstd", "-lm", "-lpthread", "-ldl"], check=True)
    model = ctypes.CDLL(str(library))
    model.fit_us.restype, model.fit_cost.restype = ctypes.c_double, ctypes.POINTER(ctypes.c_double)
    return model


def shape_of(problem):
    m, n, k, a, b = re.match(r"(\d+)x(\d+)x(\d+) (.)(.)", problem).groups()
    return (ctypes.c_longlong * 5)(int(m), int(n), int(k), a == "t", b == "t")


class Ranked:
    """All plans of a product, by label, the cheapest first."""

    def __init__(self, model, shape):
        size = model.fit_plan_bytes()
        labels, plans, us = ctypes.create_string_buffer(LABEL * MOST), ctypes.create_string_buffer(size * MOST), (ctypes.c_double * MOST)()
        count = model.fit_rank(shape, MOST, labels, plans, us)
        self.labels = [labels.raw[i * LABEL:][:LABEL].split(b"\0")[0].decode() for i in range(count)]
        self.plans = {label: plans.raw[i * size:][:size] for i, label in enumerate(self.labels)}


def read(model, paths):
    """Of each problem: its shape, and the label, plan and time of each plan that was timed."""
    times = {}
    for path in paths:
        for row in json.loads(pathlib.Path(path).read_text())["results"]:
            if row["kernel"].startswith("plan ") and row.get("median_us"):
                times.setdefault(row["problem"], {})[row["kernel"].removeprefix("plan ")] = row["median_us"]
    problems = {}
    for problem, by_label in times.items():
        shape = shape_of(problem)
        plans = Ranked(model, shape).plans
        problems[problem] = shape, [(label, plans[label], us) for label, us in by_label.items() if label in plans]
    return problems


def logs(model, shape, timed):
    """Of each plan, the logarithms of its price and of its time, over the shortest."""
    prices = [math.log(model.fit_us(shape, plan) + LAUNCH_US) for _, plan, _ in timed]
    least = min(us for _, _, us in timed)
    return [(price - math.log(least), math.log(us / least)) for price, (_, _, us) in zip(prices, timed)]


def objective(model, problems):
    lost = off = weights = 0
    for shape, timed in problems:
        pairs = logs(model, shape, timed)
        cheapest = min(price for price, _ in pairs)
        chances = [math.exp((cheapest - price) / NEAR) for price, _ in pairs]
        lost += sum(chance * time for chance, (_, time) in zip(chances, pairs)) / sum(chances) / len(problems)
        for price, over in pairs:
            weight = 1 if over < .15 else .5 if over < .5 else .15
            off += min(abs(price - over), .3) ** 2 * weight ** 2
            weights += weight
    return lost + off / weights


def fit(model, problems, names, seconds):
    cost = [model.fit_cost(name.encode()) for name in names]
    if not all(cost):
        sys.exit(f"no such constant: {', '.join(name for name, at in zip(names, cost) if not at)}")
    start = [math.log(at[0]) for at in cost]

    def worth(x):
        for at, value in zip(cost, x):
            at[0] = math.exp(value)
        return objective(model, problems) + .002 * sum((a - b) ** 2 for a, b in zip(x, start))
    x, steps, stop = start[:], [FIRST_STEP] * len(names), time.time() + seconds
    least = worth(x)
    while time.time() < stop:
        for i in random.sample(range(len(x)), len(x)):
            for sign in (1, -1):
                y = x[:]
                y[i] += sign * steps[i]
                if (value := worth(y)) < least:
                    x, least = y, value
                    steps[i] *= 1.3
                    break
            else:
                steps[i] = max(steps[i] * .6, .004)
        y = [value + random.gauss(0, .03) for value in x]
        if (value := worth(y)) < least:
            x, least = y, value
    worth(x)
    for name, value, was in zip(names, x, start):
        print(f"{name}: {math.exp(was):.4g} -> {math.exp(value):.4g}")


def judge(model, title, problems):
    losses, off = [], {}
    for problem, (shape, timed) in problems.items():
        times = {label: us for label, _, us in timed}
        for (price, over), (label, _, _) in zip(logs(model, shape, timed), timed):
            off.setdefault(label.split()[0], []).append(price - over)
        chosen = Ranked(model, shape).labels[0]
        if chosen in times:
            losses.append((times[chosen] / min(times.values()), problem, chosen))
    if losses:
        mean = math.exp(sum(math.log(loss) for loss, _, _ in losses) / len(losses))
        print(f"{title}: {len(losses)} of {len(problems)} choices were timed, {mean:.4f} times the fastest plan; the worst:")
        for loss, problem, chosen in sorted(losses, reverse=True)[:5]:
            print(f"    {loss:.3f} {problem}, {chosen}")
    for kernel, values in sorted(off.items()):
        mean = sum(values) / len(values)
        spread = math.sqrt(sum((value - mean) ** 2 for value in values) / len(values))
        print(f"    {kernel}: {len(values)} prices, {mean:+.3f} from times, spread {spread:.3f} (logarithms)")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("plans", nargs="+")
    parser.add_argument("--names", default="")
    parser.add_argument("--hold", action="store_true")
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        model = link(given.build.resolve(), folder)
        problems = read(model, given.plans)
        order = sorted(problems)
        random.shuffle(order)
        held = order[::3] if given.hold else []
        seen = {problem: problems[problem] for problem in order if problem not in held}
        for turn in ("before", "after"):
            judge(model, turn, seen)
            judge(model, f"{turn}, left out", {problem: problems[problem] for problem in held})
            if turn == "after" or not given.names:
                break
            fit(model, list(seen.values()), given.names.split(","), given.seconds)


if __name__ == "__main__":
    main()
