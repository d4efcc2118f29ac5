#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_calibrate.py TURING CUBIN: tools/calibrate.py finds the constants by which times were made up, and judges a time by
constants that were fitted without it. The kernels are those of turing_people.cu."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import calibrate  # noqa: E402
import results  # noqa: E402

TURING, CUBIN = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
RUNS = {
    ("flag", 1): "kernel flag_last\nbuffer a i32 32 ramp\nbuffer d i32 32 none\narg a\narg d\narg u8 1\ntime\n",
    ("flag", 64): "kernel flag_last\ngrid 64\nbuffer a i32 2048 ramp\nbuffer d i32 2048 none\narg a\narg d\narg u8 1\ntime\n",
    ("weights", 64): "kernel module_variables\ngrid 64\nbuffer d f32 2048 none\narg d\ntime\n"}


class Calibrate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.files = {}
        for (kernel, size), text in RUNS.items():
            self.files[kernel, size] = self.folder / f"{kernel}_{size}.txt"
            self.files[kernel, size].write_text(f"cubin {CUBIN}\n{text}")

    def made_up(self, choice, event=0.0, longer=("none", 1)):
        times = {key: (calibrate.modelled(TURING, path, choice) + event) * (longer[1] if key[0] == longer[0] else 1)
                 for key, path in self.files.items()}
        rows = [f"{kernel},{size},x,{us!r}" for (kernel, size), us in times.items()] + ["absent,64,x,7"]
        (self.folder / "times.csv").write_text("\n".join(["kernel,N,note,published_us", *rows]) + "\n")

    def run_it(self, *more, files=None):
        return subprocess.run([sys.executable, "-B", TOOLS / "calibrate.py", self.folder / "times.csv",
                               *(files or self.files.values()), "--turing", TURING, *more], capture_output=True, text=True)

    def test_finds_what_made_the_times(self):
        self.made_up((("dram_latency", 400.0),), 3)
        run = self.run_it("--try", "dram_latency=280,400,500", "--try", "l2_hit=188,236", "--event", "0,3")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("3 of 4 times, by dram_latency=400 l2_hit=188 event=3\n", run.stdout)
        self.assertIn("mean 0.00%, most 0.00%, signed mean +0.00%, pairs ranked right 1 of 1", run.stdout)
        times = run.stdout.split("without one time\n")[1]
        self.assertEqual(len(re.findall("without .* dram_latency=400 l2_hit=188 event=3: ", times)), 3)

    def test_judges_by_what_was_left_out(self):
        self.made_up((), 0, ("weights", 2))
        run = self.run_it("--event", "0,1,2,3,4")
        self.assertEqual(run.returncode, 0, run.stderr)
        kernel = run.stdout.split("without one kernel\n")[1].split("without one time\n")[0]
        self.assertRegex(kernel, r"without weights +event=0: -50\.00%\n")

    def test_says_the_model_as_it_is(self):
        self.made_up((), 5, ("flag", 0.5))
        run = self.run_it()
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("3 of 4 times, by event=5\n", run.stdout)
        self.assertEqual(len(re.findall(r"  flag \d+: published [\d.]+, modelled [\d.]+ us, \+100.00%\n", run.stdout)), 2)
        self.assertNotIn("without", run.stdout)

    @unittest.skipUnless((results.ROOT / ".git").exists(), "not in a repository")
    def test_writes_what_the_model_says_and_takes_parts(self):
        self.made_up((), 5)
        path = self.files["flag", 64]
        path.write_text(path.read_text() + "# times 3\n")
        run = self.run_it("--out", self.folder / "out.json")
        self.assertEqual(run.returncode, 0, run.stderr)
        rows = {(row["kernel"], row["size"]): row for row in json.loads((self.folder / "out.json").read_text())["results"]}
        self.assertAlmostEqual(rows["flag", 1]["events_us"], rows["flag", 1]["published_us"], delta=0.01)
        self.assertTrue(rows["flag", 64]["part"] and not rows["flag", 1]["part"])
        self.assertGreater(rows["flag", 64]["events_us"], 1.1 * rows["flag", 64]["published_us"])
        self.assertEqual(self.run_it("--out", self.folder / "out.json", "--event", "1").returncode, 2)

    def test_refuses(self):
        self.made_up(())
        other, bad = self.folder / "other_64.txt", self.files["flag", 1]
        other.write_text("")
        for words, more, files in (("no constant latency", ["--try", "latency=3"], None),
                                   ("dram_latency=90 is outside of 200 to 700", ["--try", "dram_latency=90"], None),
                                   ("other_64.txt: .*no time of it", [], [other])):
            with self.subTest(words):
                run = self.run_it(*more, files=files)
                self.assertEqual((run.returncode, run.stdout), (1, ""))
                self.assertRegex(run.stderr, words)
        bad.write_text(bad.read_text().replace("time\n", ""))
        self.assertRegex(self.run_it().stderr, "flag_1.txt: no time")
        bad.write_text(bad.read_text() + "arg u8 x y\n")
        self.assertRegex(self.run_it().stderr, "flag_1.txt: turing: ")

    def test_ranks(self):
        times = {("a", 1): 2.0, ("b", 1): 4.0, ("c", 1): 4.0, ("a", 2): 1.0}
        self.assertEqual(calibrate.ranks(times, {("a", 1): 0.0, ("b", 1): -0.6, ("c", 1): 0.0, ("a", 2): 9.0}), (1, 2))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
