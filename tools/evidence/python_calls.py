# SPDX-License-Identifier: MIT
"""What Python's calls cost the host, as python/tests/host_cost.py measured: host/python_calls.json, and h100/python.txt of a GPU's host."""
import re

import results
from evidence.words import origin, table


def anywhere():
    path = results.RESULTS / "host" / "python_calls.json"
    result = results.read(path)
    header = ["microseconds, product of 64x64x64", *result["context"]["columns"]]
    return f"{table(header, [[row['what'], *row['us']] for row in result['results']])}\n\n{result['context']['machine']}. {origin(path)}"


def on_gpu():
    path = results.RESULTS / "h100" / "python.txt"
    text = path.read_text()
    line = re.search(r"^ *(torch\.mm: [\d.]+ us, .*)$", text, re.M)[1]
    rows = [[f"`{what}`" if re.match(r"[a-z.]+\.[a-z]", what) else what, us] for what, us in re.findall(r"(?:^|, )(.*?): ([\d.]+) us", line)]
    on = ", ".join(text.split("\n")[0].split("; ")[1:3])
    return f"{table(['microseconds', 'H100'], rows)}\n\n{on}. {origin(path)}"
