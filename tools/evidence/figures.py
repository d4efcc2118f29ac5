# SPDX-License-Identifier: MIT
"""Which rows of results a figure was drawn from: it carries a hash of those of each file, and whether it says that they are stale."""
import hashlib
import json
import struct

import results
from evidence import inputs
from results import ROOT

KEY = b"Comment"  # of a PNG's text


def digest(path):
    """Of the rows, but for the names of images, which no figure shows."""
    rows = [{key: value for key, value in row.items() if key != "images"} for row in results.read(path)["results"]]
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()[:8]


def is_stale(paths):
    return any(inputs.changed(results.read(path)) for path in paths)


def made_of(paths):
    """The text that a figure of these files carries."""
    files = {path.relative_to(results.RESULTS).as_posix(): digest(path) for path in sorted({*paths})}
    return json.dumps({"files": files, "stale": is_stale(paths)})


def carried(path):
    """What a PNG says of itself; {} if it says nothing."""
    data, at = path.read_bytes(), 8
    while at < len(data):
        size, kind = struct.unpack(">I4s", data[at:at + 8])
        key, _, text = data[at + 8:at + 8 + size].partition(b"\0")
        if kind == b"tEXt" and key == KEY:
            return json.loads(text)
        at += 12 + size
    return {}


def all_figures():
    return sorted((ROOT / "docs" / "plots").glob("*/*.png")) + [ROOT / "docs" / "pictures" / "overlap.png"]


def out_of_date(figures):
    """({figure: why} of those that were drawn from other rows than there are, figures that should say that these are stale)."""
    other, silent = {}, []
    for path in figures:
        said = carried(path)
        files = {results.RESULTS / name: hash_ for name, hash_ in said.get("files", {}).items()}
        name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
        changed = [file.stem for file, hash_ in files.items() if not file.exists() or digest(file) != hash_]
        if changed or not files:
            other[name] = ", ".join(changed) or "it does not say of what it is"
        elif is_stale(files) and not said["stale"]:
            silent.append(name)
    return other, silent
