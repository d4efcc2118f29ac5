# SPDX-License-Identifier: MIT
"""The words of tables: their layout, how fast beside whom, and the line that says which files a table is from."""
import re

import results
from evidence import inputs

GPU, MODEL = "h100", "t4model"  # the machines of the summaries
SIZES = (1024, 2048, 4096, 8192)


def table(header, rows):
    """Leaves out empty columns."""
    used = [i for i in range(len(header)) if any(row[i] not in ("", "-") for row in rows)]
    header, rows = [header[i] for i in used], [[row[i] for i in used] for row in rows]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def number(row, key, form="{:.1f}"):
    return form.format(row[key]) if row and key in row else "-"


def percent(part, whole, form="{:.0f}"):
    return form.format(100 * part["tflops"] / whole["tflops"]) if part and whole else "-"


def commits_of(paths):
    """The commits of files, each once, as words."""
    found = dict.fromkeys(re.search(r"commit ([0-9a-f]+)", results.read(path)["context"]["hgemm"])[1] for path in paths)
    return " and ".join(commit[:9] for commit in found)


def stale_words(paths):
    """What changed since files were made, as a sentence; names the files where some are not stale."""
    stale = {path: inputs.changed(results.read(path)) for path in paths}
    parts = sorted(set().union(*stale.values()))
    stems = [path.stem for path in paths]
    names = [path.stem if stems.count(path.stem) == 1 else f"{path.parent.name}/{path.stem}" for path in paths if stale[path]]
    which = "" if len(names) == len(paths) else f" ({', '.join(names)})"
    return f"**Stale**{which}: {', '.join(parts)} changed since" if parts else ""


def origin(*of):
    """The line under a table: its files, their version and commit, and what they are older than. `of` are results, or paths of files."""
    every, made_by = [], {}
    for one in of:
        paths = one["paths"] if isinstance(one, dict) else [one] if one else []
        if not paths or paths[0] in every:
            continue
        every += paths
        version = re.match(r"([\d.]+), ", results.read(paths[0])["context"]["hgemm"])
        first, folder = paths[0], f"../bench/results/{paths[0].parent.name}"
        name = f"[{first.stem}]({folder}/{first.name})" if len(paths) == 1 else f"[{first.stem.rstrip('123456789')}]({folder})"
        made_by.setdefault(" ".join(["hgemm", *(version.groups() if version else ()), "commit", commits_of(paths)]), []).append(name)
    stale, said = stale_words(every), "; ".join(f"{', '.join(names)} ({by})" for by, names in made_by.items())
    return (f"From {said}." + (f" {stale}." if stale else "")) if every else "Not run yet."


def square_name(size):
    return f"{size}x{size}x{size} nn row"


def row_of(machine, size, kernel):
    return results.square(machine, size, kernel).get(kernel)


def by_events(row):
    """TFLOPS of a modelled launch as a pair of events after a pause would say, the way in which the published ones were timed."""
    return f"{row['tflops'] * row['median_us'] / row['events_us']:.1f}" if row and "events_us" in row else "-"


def with_witness(machine, *of):
    """Who bears witness under which conditions, and which files a table is from."""
    contexts = [found["context"] for found in of]
    said = {key: " or ".join(dict.fromkeys(c[key].split(",")[0] if key == "cutlass" else c[key] for c in contexts if key in c))
            for key in ("gpu", "clocks", "driver", "cublas", "cutlass")}
    if contexts[0]["witness"] == "modelled":
        words = f"{said['gpu']}, {said['clocks']}: modelled, not measured. Kernel times, without the launch."
    else:
        peers = "".join(f"; {name} {said[key]}" for key, name in (("cublas", "cuBLAS"), ("cutlass", "CUTLASS")) if said[key])
        words = f"{said['gpu']}: measured; {said['clocks']}; driver {said['driver']}{peers}."
    return f"{words} {origin(*of)} All rows: `tools/report.py --rows {machine}`."


def against(ours, theirs):
    return f"{theirs['median_us'] / ours['median_us']:.2f}" if ours and theirs else "-"


def newest_of(machine, size, used, *wanted):
    """Rows of a square, from the newest file that has all that is wanted, which is added to the used ones."""
    found, of = results.newest(machine, square_name(size), *wanted)
    if of:
        used[id(of)] = of
    return found
