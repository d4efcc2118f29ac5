# SPDX-License-Identifier: MIT
"""Whether the library chooses today what it chose when a file's rows were timed: then a change of `selection` (inputs.py) has moved
none of them.

A row of hgemm's own choice, `auto...`, has its plan in its `note`: kernel, parts of k and their lengths, whether the last tiles alone
are split, and whether operands are copied. How many tiles are the last, and which operands are copied, follows from kernel, GPU and
problem. bench_hgemm says what is chosen today for the same problem on the same GPU, which need not be there.
"""
import json
import pathlib
import re
import subprocess
import tempfile

PROBLEM = re.compile(r"(\d+)x(\d+)x(\d+) ([nt])([nt])(?: batch (\d+)| experts (\d+:\d+))? (row|col)")
OPERANDS = re.compile(r"(?:(f16|bf16|f32)|(?:(bf16)_)?(int\d+:.+|nf4:.+))")


def command_of(context):
    """The arguments of bench_hgemm that all problems of a file have; a ValueError says what the file does not tell."""
    for key in ("device", "alpha", "beta"):
        if key not in context:
            raise ValueError(f"it does not say of which {key} its rows are")
    words = ["--choices", context["device"], "--alpha", context["alpha"], "--beta", context["beta"], "--kernel", "^auto"]
    operands = OPERANDS.fullmatch(context.get("operands", "f16"))
    if not operands:
        raise ValueError(f"its operands are not known: {context['operands']}")
    of, beside_packed, packed = operands.groups()
    words += ["--type", of or beside_packed or "f16"] + (["--weights", packed] if packed else [])
    return words + (["--accumulate", "f16,f32", "--epilogues"] if of == "f16" else [])


def today(result, bench):
    """{(problem, kernel): plan} of what bench_hgemm would choose for the file's problems. Those it cannot read are left out."""
    command, found, of = [bench, *command_of(result["context"])], {}, {}
    for name in dict.fromkeys(row["problem"] for row in result["results"]):
        if read := PROBLEM.fullmatch(name):
            m, n, k, op_a, op_b, batch, experts, layout = read.groups()
            of.setdefault((layout, experts), []).append(f"{m},{n},{k},{int(op_a == 't')},{int(op_b == 't')},{batch or 1}\n")
    with tempfile.TemporaryDirectory() as folder:
        shapes = pathlib.Path(folder) / "shapes.csv"
        for (layout, experts), lines in of.items():
            shapes.write_text("m,n,k,trans_a,trans_b,batch\n" + "".join(lines))
            words = ["--shapes", shapes, "--layout", layout, *(["--experts", experts] if experts else [])]
            done = subprocess.run([*command, *words], capture_output=True, text=True)
            if done.returncode:
                raise ValueError(done.stderr.strip())
            found |= {(row["problem"], row["kernel"]): row["note"] for row in json.loads(done.stdout)["results"]}
    return found


def moved(result, bench):
    """Why the file is not of today's choices, a line each; none where all its rows are."""
    rows = [row for row in result["results"] if row.get("kernel", "").startswith("auto")]
    if not rows:
        return ["it has no rows that say what was chosen"]
    try:
        chosen = today(result, bench)
    except ValueError as why:
        return [str(why)]
    lines = []
    for row in rows:
        where, now = f"{row['problem']} {row['kernel']}", chosen.get((row["problem"], row["kernel"]))
        if not row.get("note"):
            lines.append(f"{where}: its plan is not in the file")
        elif not now:
            lines.append(f"{where}: cannot be asked for today")
        elif now != row["note"]:
            lines.append(f"{where}: was {row['note']}, is {now}")
    return lines
