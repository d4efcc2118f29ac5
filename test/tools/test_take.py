#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/take.py: which reports of a T4 are evidence, and what pages then show."""
import copy
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import report  # noqa: E402
import results  # noqa: E402
import take  # noqa: E402
from evidence import images, measured  # noqa: E402


def commit():
    done = subprocess.run(["git", "-C", results.ROOT, "rev-parse", "HEAD"], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def row(size, kernel, accumulate, us):
    return {"shape": f"{size}x{size}x{size}", "kernel": kernel, "accumulate": accumulate, "us": us, "q1_us": us - 1, "q3_us": us + 1,
            "tflops": 2e-6 * size**3 / us, "relative_error": 1e-3, "samples_us": [us - 1, us, us + 1]}


# No T4 ever wrote this.
MADE_UP = {
    "what": "hgemm report 1", "made_up": "by test_take.py", "date": "2026-01-01T00:00:00+00:00",
    "hgemm": {"version": "0.2.0", "commit": commit() or "0" * 12, "sha256": "0" * 64, "kernels": 40},
    "device": {"device": "Tesla T4", "emulated": False, "is a T4": True},
    "gpu": [{"name": "Tesla T4", "driver_version": "550.54.15", "power.limit": "70.00 W"}],
    "software": {"torch": "2.0"},
    "exact_products": [{"problem": "64x64x64 nn", "accumulate": "float16", "wrong_elements": 0}],
    "bench": {"context": {"device": "Tesla T4", "timing": "measured: CUDA events, medians of 3", "witness": "measured", "clock_mhz": 1500,
                          "repetitions": 3},
              "rows": [row(2048, "auto", "float16", 400.0), row(2048, "auto", "float32", 410.0), row(2048, "torch", "float32", 500.0)]},
    "bench_float32": {"rows": [row(2048, "auto", "float32", 900.0)]},
}


def changed(**parts):
    """The report without the confession, and with other parts."""
    other = copy.deepcopy(MADE_UP)
    del other["made_up"]
    for path, value in parts.items():
        *keys, last = path.split("__")
        at = other
        for key in keys:
            at = at[int(key) if key.isdigit() else key]
        at[last] = value
    return other


class Reports(unittest.TestCase):
    def refused(self, report_, why):
        with self.assertRaisesRegex(take.Refused, why):
            take.from_report(report_)

    def test_one_that_says_that_it_is_made_up_is_no_evidence(self):
        self.refused(MADE_UP, "says that it is made up")

    def test_one_that_contradicts_itself_is_refused(self):
        self.refused(changed(device__emulated=True), "not of a T4")
        self.refused(changed(gpu__0__name="NVIDIA H100"), "no T4 there")
        self.refused(changed(exact_products=[]), "wrong products")
        self.refused(changed(exact_products__0__wrong_elements=1), "wrong products")
        self.refused(changed(bench__rows__0__us=300.0), "not the median of its samples")
        self.refused(changed(bench__rows__0__tflops=60.0), "TFLOPS are not")
        fast = row(2048, "auto", "float16", 100.0)
        self.refused(changed(bench__rows=[fast]), "more than a T4")
        self.refused(changed(bench__rows__1__relative_error=0.5), "relative error")
        self.refused(changed(what="something"), "no report")

    def test_a_file_of_an_unknown_or_unclean_commit_is_refused(self):
        for hgemm, why in (("0.2.0", "does not say"), ("0.2.0, commit abc1234-dirty, nvcc 13", "not committed"),
                           ("0.2.0, commit " + "0" * 12, "git does not know")):
            with self.assertRaisesRegex(take.Refused, why):
                take.stamp(json.dumps({"context": {"hgemm": hgemm, "witness": "measured"}, "results": []}), "a.json")
            with self.assertRaisesRegex(take.Refused, why):
                take.stamp(f"hgemm {hgemm}; a GPU\n", "python.txt")

    @unittest.skipUnless(commit(), "not in a repository")
    def test_a_file_says_which_images_ran(self):
        def file(**of_row):
            context = {"gpu": "Tesla T4", "hgemm": f"0.2.0, commit {commit()}", "witness": "measured"}
            return json.dumps({"context": context, "results": [{"problem": "64x64x64 nn row", "kernel": "plan k5_64x64 k/2", "median_us": 1.0} | of_row]})

        for kernel in ("plan k5_64x64 k/2", "auto_of_bf16", "auto+bias+relu", "k3_prefetch"):
            with self.assertRaisesRegex(take.Refused, "which images its rows ran"):
                take.stamp(file(kernel=kernel), "a.json")
        take.stamp(file(kernel="cutlass"), "a.json")
        stamped = json.loads(take.stamp(file(images="realign k5_64x64_nn"), "a.json"))
        listed = images.listed()
        self.assertEqual(stamped["context"]["inputs"], {symbol: listed[symbol][1] for symbol in ("k5_64x64_nn", "realign")})

    @unittest.skipUnless(commit(), "not in a repository")
    def test_a_text_says_on_what_it_ran_and_is_stamped_once(self):
        head = f"hgemm 0.2.0, commit {commit()}"
        with self.assertRaisesRegex(take.Refused, "first line"):
            take.stamp(f"{head}\nshapes: passed\n", "python.txt")
        with self.assertRaisesRegex(take.Refused, "is no text of"):
            take.stamp(f"{head}; a GPU\n", "something.txt")
        stamped = take.stamp(f"{head}; a GPU\nshapes: passed\n", "python.txt")
        self.assertRegex(stamped, rf'^{head}; a GPU\n"inputs": {{"package": "[0-9a-f]{{12}}"}}\nshapes: passed\n$')
        self.assertEqual(take.stamp(stamped, "python.txt"), stamped)

    @unittest.skipUnless(commit(), "not in a repository")
    def test_pages_show_a_report_beside_the_model_and_say_that_it_is_made_up(self):
        before = results.RESULTS
        with tempfile.TemporaryDirectory() as folder:
            results.RESULTS = pathlib.Path(folder) / "results"
            try:
                (results.RESULTS / "t4model").mkdir(parents=True)
                for name in ("bench_ladder.json",):
                    (results.RESULTS / "t4model" / name).write_text((before / "t4model" / name).read_text())
                self.assertIn("No report of a T4", measured.beside_model())
                file = pathlib.Path(folder) / "hgemm_report.json"
                file.write_text(json.dumps(MADE_UP))
                taken = take.take(file, None, may_be_made_up=True)
                self.assertEqual(taken, results.RESULTS / "t4" / "bench_report.json")
                shown = measured.beside_model()
                self.assertIn("us, **MADE UP**", shown)
                self.assertRegex(shown, r"\| 2048x2048x2048 \| \*\*hgemm\*\* \(`k5_tuned`\) \| 400\.0 \| 3\d\d\.\d \| 1\.\d\d \|")
                self.assertEqual(measured.ladder_rows([1024, 2048])[0], ["**hgemm** (`k5_tuned`)", "**MADE UP**", "-", "42.9"])
                self.assertIn(["**hgemm**, A and B of FP32", "**MADE UP**", "-", "19.1"], measured.ladder_rows([1024, 2048]))
                self.assertEqual(report.made_up(), [taken])
            finally:
                results.RESULTS = before


if __name__ == "__main__":
    unittest.main()
