#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/take.py --confirm: which results outlive a change of how plans are chosen. The argument is bench_hgemm."""
import copy
import json
import pathlib
import re
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import take  # noqa: E402
from evidence import choices, inputs  # noqa: E402

BENCH = sys.argv.pop(1)
T4 = "compute capability 7.5, 40 multiprocessors, 15360 MiB of memory, 4096 KiB of L2 cache"
H100 = "compute capability 9.0, 132 multiprocessors, 81079 MiB of memory, 51200 KiB of L2 cache"
# Of every kind that a file of results has.
HALVES = ["96x128x64 nn row", "2048x16x2048 tn col", "1x4096x4096 nt row", "4096x4096x4096 nn row", "64x64x512 nt batch 384 row", "16x16x16 nn batch 4096 row"]
OPERANDS = {"f16": HALVES, "bf16": HALVES, "f32": HALVES, "int4:128:none:f16": ["16x4096x4096 nt row", "64x1024x512 nt experts 8:2 row"],
            "bf16_int4:128:none:f16": ["16x4096x4096 nt row"], "nf4:64:none:f16": ["1x4096x4096 nt row"]}


def file_of(problems, kernels, device=T4, operands="f16"):
    """What a run would have written, with today's plans, and the stamp of another choice."""
    context = {"gpu": "a GPU", "device": device, "hgemm": "0.2.0, commit abc1234, nvcc 13", "witness": "measured", "alpha": "1", "beta": "0"}
    if operands != "f16":
        context["operands"] = operands
    rows = [{"problem": problem, "kernel": kernel, "median_us": 1.0} for problem in problems for kernel in kernels]
    result = {"context": context, "results": rows}
    chosen = choices.today(result, BENCH)
    for row in rows:
        row["note"] = chosen[row["problem"], row["kernel"]]
    context["inputs"] = inputs.stamp(result, inputs.now()) | {"selection": "0"}
    return result


class Confirm(unittest.TestCase):
    def confirm(self, result):
        """(why it stays stale, the file afterwards)."""
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "bench_x.json"
            path.write_text(json.dumps(result, indent=1))
            return take.confirm(path, BENCH), json.loads(path.read_text())

    def stays(self, result, why):
        lines, after = self.confirm(result)
        self.assertEqual(len(lines), 1)
        self.assertRegex(lines[0], why)
        self.assertEqual(after, result)

    def test_a_file_whose_plans_are_todays_is_stamped(self):
        for operands, problems in OPERANDS.items():
            kernels = {"f16": ["auto", "auto_f32", "auto+bias+relu"], "bf16": ["auto_f32", "auto_of_bf16", "auto_of_bf16_found"],
                       "f32": ["auto_f32", "auto_of_f32", "auto_of_f32_11bits"]}.get(operands, ["auto_f32", f"auto_of_{operands}"])
            for device in (T4, H100):
                with self.subTest(operands=operands, device=device):
                    stale = file_of(problems, kernels, device, operands)
                    stale["context"]["inputs"]["k5_64x64_nn"] = "0"
                    why, after = self.confirm(stale)
                    self.assertEqual(why, [])
                    self.assertEqual(after["results"], stale["results"])
                    self.assertNotIn("selection", inputs.changed(after))
                    stale["context"]["inputs"]["selection"] = inputs.now()["selection"]
                    self.assertEqual(after["context"], stale["context"])  # an image that changed is stale as before

    def test_a_file_with_a_plan_that_moved_stays_stale(self):
        for note in ("k5_64x64", "k5_128x128 k/2", "k5_256x256 tail 1x2048+2048"):
            stale = file_of(HALVES, ["auto", "auto_f32"])
            stale["results"][6]["note"] = note
            self.stays(stale, rf"^4096x4096x4096 nn row auto: was {re.escape(note)}, is k5_")

    def test_plans_are_those_of_the_gpu_that_the_file_is_of(self):
        on_h100 = file_of(["4096x4096x4096 nn row"], ["auto"], H100)
        on_h100["context"]["device"] = T4
        self.stays(on_h100, "was k5_256x256, is k5_")

    def test_what_cannot_be_asked_is_not_confirmed(self):
        stale = file_of(HALVES, ["auto"])
        for row, why in (({"problem": "64x64x64 nn split row"}, "cannot be asked"), ({"kernel": "auto+bias+tanh"}, "cannot be asked"),
                         ({"kernel": "auto_of_f32"}, "cannot be asked"), ({"note": ""}, "plan is not in the file")):
            other = copy.deepcopy(stale)
            other["results"][0] |= row
            with self.subTest(row):
                self.stays(other, why)
        for context, why in (({"device": "a GPU"}, "takes what results say of their device"), ({"operands": "fp8"}, "operands are not known"),
                             ({"operands": "int4:7:none:f16"}, "."), ({"beta": "many"}, "not a number")):
            with self.subTest(context):
                self.stays(stale | {"context": stale["context"] | context}, why)
        for key in ("device", "alpha", "beta"):
            with self.subTest(key):
                self.stays(stale | {"context": {name: value for name, value in stale["context"].items() if name != key}}, f"which {key}")
        nothing = copy.deepcopy(stale)
        nothing["context"]["depends"], nothing["results"] = "selection", []
        self.stays(nothing, "no rows")

    def test_a_file_that_is_not_older_is_left_alone(self):
        fresh = file_of(HALVES, ["auto"])
        fresh["context"]["inputs"]["selection"] = inputs.now()["selection"]
        fresh["results"][0]["note"] = "k5_64x64 k/7"
        why, after = self.confirm(fresh)
        self.assertIsNone(why)
        self.assertEqual(after, fresh)


if __name__ == "__main__":
    unittest.main()
