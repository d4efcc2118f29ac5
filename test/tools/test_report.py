#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What tools/report.py makes of results: ratios the right way round, nothing invented, nothing lost."""
import contextlib
import json
import pathlib
import re
import shutil
import struct
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import report  # noqa: E402
import results  # noqa: E402
from evidence import calibration, clock, figures, floats, images, inputs, ladder, products, rows as every_row, words  # noqa: E402


def row(problem, kernel, us, **more):
    m, n, k = (int(side) for side in problem.split()[0].split("x"))
    return {"problem": problem, "kernel": kernel, "median_us": us, "tflops": 2 * m * n * k / us * 1e-6, "us": [us], **more}


def result(rows, date="2026-01-01T00:00:00Z", commit="abc1234", witness="measured", repetitions="3"):
    return {"context": {"gpu": "a GPU", "clocks": "1 MHz", "driver": "1", "hgemm": f"0.2.0, commit {commit}, nvcc 13", "date": date,
                        "witness": witness, "mode": "burst", "alpha": "1", "beta": "0", "repetitions": repetitions,
                        "cutlass": "4, Sm75 kernels", "cublas": "13"}, "results": rows}


@contextlib.contextmanager
def machine(**files):
    """A folder of results that report.py then takes for all there are."""
    before = results.RESULTS
    with tempfile.TemporaryDirectory() as folder:
        results.RESULTS = pathlib.Path(folder)
        (results.RESULTS / "gpu").mkdir()
        for name, content in files.items():
            (results.RESULTS / "gpu" / f"{name}.json").write_text(json.dumps(content))
        try:
            yield "gpu"
        finally:
            results.RESULTS = before


SQUARE = "1024x1024x1024 nn row"


class Results(unittest.TestCase):
    def test_a_ratio_above_one_is_hgemm_being_faster(self):
        problems = results.by_problem(result([row(SQUARE, "auto", 10, note="k5_64x64"), row(SQUARE, "cutlass", 25)]))
        self.assertEqual(results.ratios(problems, "cutlass"), [2.5])
        self.assertEqual(words.against(problems[SQUARE]["auto"], problems[SQUARE]["cutlass"]), "2.50")

    def test_what_failed_does_not_count(self):
        wrong = {"problem": SQUARE, "kernel": "auto", "failure": "WRONG"}
        self.assertEqual(results.by_problem(result([wrong, row(SQUARE, "cutlass", 25)])), {SQUARE: {"cutlass": row(SQUARE, "cutlass", 25)}})

    def test_contestants_come_from_the_newest_file_that_has_all(self):
        old = result([row(SQUARE, "auto", 10), row(SQUARE, "cutlass", 20)])
        new = result([row(SQUARE, "auto", 5)], date="2026-02-01T00:00:00Z")
        apart = result([row(SQUARE, "auto", 1), row(SQUARE, "cutlass", 1)], date="2026-03-01T00:00:00Z")
        with machine(bench_squares=old, bench_sweep=new, bench_continuous=apart) as gpu:
            self.assertEqual(results.square(gpu, 1024, "auto")["auto"]["median_us"], 5)
            self.assertEqual(results.square(gpu, 1024, "auto", "cutlass")["auto"]["median_us"], 10)
            self.assertEqual(results.square(gpu, 2048, "auto"), {})

    def test_parts_of_a_list_are_joined_unless_they_contradict(self):
        other = "8x8x8 nn row"
        with machine(bench_random1=result([row(SQUARE, "auto", 1)]), bench_random2=result([row(other, "auto", 1)], commit="def5678")) as gpu:
            joined = results.lists(gpu)["bench_random"]
            self.assertEqual(len(joined["results"]), 2)
            self.assertIn("commit abc1234 and def5678", every_row.provenance(joined))
        with machine(bench_random1=result([row(SQUARE, "auto", 1)]), bench_random2=result([row(SQUARE, "auto", 1)])) as gpu:
            self.assertRaises(SystemExit, results.lists, gpu)
        with machine(bench_random1=result([row(SQUARE, "auto", 1)]), bench_random2=result([row(other, "auto", 1)], repetitions="5")) as gpu:
            self.assertRaises(SystemExit, results.lists, gpu)

    def test_a_batch_is_compared_with_the_function_for_batches(self):
        name = "64x64x64 nt row, batch 8"
        with machine(bench_attention=result([row(name, "auto_f32", 10, note="k5_64x64_f32"), row(name, "cublasGemmStridedBatchedEx_f32", 20),
                                             row(name, "cutlass_f32", 40)])) as gpu:
            self.assertIn("| 1 | 4.00 | 4.00 to 4.00 | 2.00 | 2.00 to 2.00 |", products.shape_lists(gpu))

    def test_small_products_stand_beside_the_better_cublas_or_a_copy(self):
        name = "16x16x16 nn batch 4096 row"
        ours = row(name, "auto_f32", 10, note="tiny_16x32", gb_per_s=110)
        with machine(bench_batches=result([ours, row(name, "cublasHgemm", 20), row(name, "cublasGemmEx_f32", 15)])) as gpu:
            self.assertIn("| 16x16x16 nn | 4096 | 10.0 | 110 | 1.50 | `tiny_16x32` |", products.batches(gpu))
        with machine(bench_batches=result([ours], witness="modelled")) as model:
            self.assertIn("| 16x16x16 nn | 4096 | 10.0 | 110 | 50 | `tiny_16x32` |", products.batches(model))  # of 220 GB/s

    def test_a_choice_loses_to_the_fastest_plan(self):
        rows = [row(SQUARE, "auto", 11, note="k5_a"), row(SQUARE, "plan k5_a", 11), row(SQUARE, "plan k5_b k/2", 10)]
        (choice,) = every_row.selection(result(rows))
        self.assertEqual((choice["fastest"], choice["plans"], round(choice["loss"], 3)), ("k5_b k/2", 2, 1.1))


    def test_an_epilogue_costs_what_it_takes_longer(self):
        rows = [row(SQUARE, "auto", 10), row(SQUARE, "auto+bias+relu", 11), row(SQUARE, "auto_f32+bias+relu", 30)]
        with machine(bench_epilogues=result(rows)) as gpu:
            self.assertIn("| bias, relu | 1.100, 1.10 |", products.epilogues(gpu))

    def test_experts_stand_beside_the_time_of_their_bytes(self):
        problem, rate = "4x64x32 nt experts 8:2 row", clock.constants()["dram_rate"].value * clock.MHZ / 1e3
        hit = (3 * 64 * 32 + 4 * 2 * (64 + 32)) * 2  # bytes of three experts' halves, of A and D
        rows = [row(problem, "auto_of_int4:128:none:f16", 2, note="weights_16x128", gb_per_s=rate / 1.5), row(problem, "auto_f32", 4, gb_per_s=hit / 4e3)]
        first = result([row(problem, "auto_of_int4:128:none:f16", 3, gb_per_s=rate)])
        first["context"]["mode"] = "first"
        with machine(bench_experts=result(rows), bench_experts_first=first) as gpu:
            self.assertIn("| 4x64x32 | 3 of 8 | 1 | 2.0, 1.50 | 3.0, 2.25 | 4.0 | `weights_16x128` |", products.experts(gpu))

    def test_a_contest_with_some_of_cutlass_says_so(self):
        of_some = result([])
        of_some["context"]["cutlass_only"] = "^64x64x32 align8$"
        with machine(bench_random=result([])) as gpu, self.subTest("all"):
            of_all = results.lists(gpu)["bench_random"]
            self.assertNotIn("took part", every_row.provenance(of_all))
        with machine(bench_random=of_some) as gpu:
            of_some = results.lists(gpu)["bench_random"]
            self.assertIn("CUTLASS 4, Sm75 kernels, of whose configurations some took part", every_row.provenance(of_some))

    def test_parts_of_a_list_may_each_have_the_configurations_that_were_fastest(self):
        def part(problem, configurations):
            of_some = result([row(problem, "auto", 10)])
            if configurations:
                of_some["context"]["cutlass_only"] = configurations
            return of_some
        with machine(bench_deepbench1=part(SQUARE, "^a$"), bench_deepbench2=part("8x8x8 nn row", "^b$")) as gpu:
            self.assertEqual(len(results.lists(gpu)["bench_deepbench"]["results"]), 2)
        with machine(bench_deepbench1=part(SQUARE, "^a$"), bench_deepbench2=part("8x8x8 nn row", None)) as gpu:
            self.assertRaisesRegex(SystemExit, "not under the conditions", results.lists, gpu)

    def test_invariance_costs_what_its_fastest_kernel_takes_longer(self):
        rows = [row(SQUARE, "auto", 10, note="k5_256x256"), row(SQUARE, "k5_64x64", 15), row(SQUARE, "k5_64x32", 20),
                row(SQUARE, "k5_128x128", 12), row(SQUARE, "k5_64x64_f32", 11)]
        with machine(bench_invariant=result(rows)) as gpu:
            self.assertIn("| FP16 | `k5_256x256` | 10.0 | `k5_64x64` | 15.0 | 1.50 |", products.invariance(gpu))


class Stale(unittest.TestCase):
    """A file whose inputs are not what they were says so under every table; what CI can make again fails the check."""

    def now(self, rows, witness="measured", gpu="a GPU", **changed):
        of = result(rows, witness=witness)
        of["context"]["gpu"] = gpu
        of["context"]["inputs"] = inputs.stamp(of, inputs.now()) | changed
        return of

    AUTO = row(SQUARE, "auto", 10, note="k5_64x64 k/2", images="k5_64x64_nn")
    RUNG = row(SQUARE, "k3_prefetch", 20, images="k3_prefetch_nn")

    def test_a_file_of_this_tree_is_not_stale(self):
        self.assertEqual(inputs.changed(self.now([self.AUTO, self.RUNG])), set())

    def test_a_file_depends_on_the_images_of_its_rows_alone(self):
        self.assertEqual(inputs.needed(result([self.RUNG, row(SQUARE, "cutlass", 20)])), {"k3_prefetch_nn"})
        of = result([self.AUTO, row(SQUARE, "auto_of_bf16_found", 20, images="scale k5_64x64_f32_nn_bf16 recompute")], witness="modelled")
        self.assertEqual(inputs.needed(of), {"k5_64x64_nn", "scale", "k5_64x64_f32_nn_bf16", "recompute", "selection", "clock"})
        of["context"]["depends"] = "k5_tuned"
        self.assertIn("k5_tuned", inputs.needed(of))

    def stale_of(self, text):
        """The files that are stale where the list of images is that text."""
        everything = result([])
        everything["context"]["depends"] = "images"
        everything["context"]["inputs"] = inputs.stamp(everything, inputs.now())
        files = {"all": everything, "t4": self.now([self.AUTO], "modelled", "Tesla T4"), "gpu": self.now([self.AUTO]), "rung": self.now([self.RUNG]),
                 "family": self.now([])}
        files["family"]["context"]["depends"] = "k5_tuned"
        files["family"]["context"]["inputs"] = inputs.stamp(files["family"], inputs.now())
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            shutil.copytree(results.ROOT / "src", root / "src")
            (root / images.LIST).parent.mkdir(parents=True)
            (root / images.LIST).write_text(text)
            tree = inputs.of_tree(root) | {part: inputs.now()[part] for part in ("door", "package", "call", "install")}
        with unittest.mock.patch.object(inputs, "now", lambda: tree):
            return {name: inputs.changed(file) for name, file in files.items() if inputs.changed(file)}

    def with_line(self, symbol, *others):
        """The list, where an image has other hashes: an "=" is as it was."""
        text = (results.ROOT / images.LIST).read_text()
        (line,) = re.findall(rf"^\S+ {symbol} \S+ \S+$", text, re.M)
        *head, on_t4, newer = line.split()
        return text.replace(line, " ".join([*head, *(was if other == "=" else other for was, other in zip((on_t4, newer), others))]))

    def test_an_image_makes_those_files_stale_that_timed_it(self):
        self.assertEqual(self.stale_of((results.ROOT / images.LIST).read_text()), {})
        self.assertEqual(self.stale_of(self.with_line("k5_64x64_nn", "0", "=")), {"t4": {"k5_64x64"}})
        self.assertEqual(self.stale_of(self.with_line("k5_64x64_nn", "=", "0")), {"all": {"images"}, "gpu": {"k5_64x64"}, "family": {"k5_tuned"}})
        self.assertEqual(self.stale_of(self.with_line("k5_64x64_nt", "0", "0")), {"all": {"images"}, "family": {"k5_tuned"}})
        self.assertEqual(self.stale_of(self.with_line("k3_prefetch_nn", "0", "0")), {"all": {"images"}, "rung": {"k3_prefetch"}})
        self.assertEqual(self.stale_of(self.with_line("thin_8x8_nn", "0", "0") + "other other_8x8_nn 0 0\n"), {"all": {"images"}})

    def test_an_activation_that_changes_no_image_makes_nothing_stale(self):
        """Of all that is committed."""
        before = {path: inputs.changed(results.read(path)) for path in results.every_path()}
        self.assertFalse(all(before.values()))
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for part in ("cmake", "python", "src", "tools"):
                shutil.copytree(results.ROOT / part, root / part)
            rows = root / "src" / "table" / "activations.def"
            rows.write_text(rows.read_text().replace("\n#undef ACTIVATION", "ACTIVATION(LEAKY_RELU, leaky_relu, EACH)\n\n#undef ACTIVATION"))
            self.assertIn("leaky_relu", rows.read_text())
            tree = inputs.of_tree(root)
        with unittest.mock.patch.object(inputs, "now", lambda: tree):
            self.assertEqual({path: inputs.changed(results.read(path)) for path in results.every_path()}, before)

    def test_an_image_that_was_not_recorded_is_another(self):
        self.assertEqual(inputs.changed(self.now([self.RUNG], k3_prefetch_nn=None)), {"k3_prefetch"})

    def test_what_changed_is_named_under_the_table(self):
        rows = [row(SQUARE, "auto", 10, note="k5_64x64"), row(SQUARE, "auto+bias", 10)]
        with machine(bench_epilogues=self.now(rows, selection="0")) as gpu:
            self.assertIn("(hgemm 0.2.0 commit abc1234). **Stale**: selection changed since.", products.epilogues(gpu))
            self.assertEqual(report.stale_files()[1], {"gpu/bench_epilogues.json": ["selection"]})
        with machine(bench_epilogues=self.now(rows)) as gpu:
            self.assertNotIn("Stale", products.epilogues(gpu))
            self.assertEqual(report.stale_files(), ({}, {}))

    def test_a_file_without_inputs_is_stale(self):
        self.assertEqual(inputs.changed(result([self.RUNG])), {"k3_prefetch"})

    def test_a_figure_of_other_rows_is_out_of_date(self):
        rows = [row(SQUARE, "auto", 10, note="k5_64x64")]

        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + bytes(4)

        with machine(bench_squares=self.now(rows)) as gpu:
            path, figure = results.RESULTS / gpu / "bench_squares.json", results.RESULTS / "figure.png"
            figure.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", bytes(13)) + chunk(b"tEXt", b"Comment\0" + figures.made_of([path]).encode()))
            self.assertEqual(figures.out_of_date([figure]), ({}, []))
            path.write_text(json.dumps(self.now(rows, selection="0")))
            self.assertEqual(figures.out_of_date([figure]), ({}, ["figure.png"]))
            path.write_text(json.dumps(self.now([row(SQUARE, "auto", 11, note="k5_64x64")])))
            self.assertEqual(figures.out_of_date([figure]), ({"figure.png": "bench_squares"}, []))
            figure.write_bytes(figure.read_bytes()[:8])
            self.assertEqual([*figures.out_of_date([figure])[0]], ["figure.png"])

    def test_comments_and_blanks_do_not_count(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.c"
            path.write_text("#pragma once\n#include <x.h>\n/* one\n */ int x; // two\n\n  int y;\n")
            self.assertEqual(inputs.code_of(path), "int x; int y;")

    def test_every_file_says_what_it_is_of(self):
        for path in results.every_path():
            context = results.read(path)["context"]
            self.assertIn(context["witness"], ("measured", "modelled", "emulated", "published"), path)
            if context["witness"] != "published":
                self.assertRegex(context["hgemm"], r"^\d+\.\d+\.\d+, commit [0-9a-f]{7,}(, |$)", path)
                self.assertIn("inputs", context, path)
                self.assertTrue(inputs.needed(results.read(path)), f"{path} depends on nothing")

    def test_a_text_is_stale_when_its_subject_changed(self):
        text = "hgemm 0.2.0, commit abc1234; a GPU\n\"inputs\": {\"package\": \"%s\"}\nshapes: passed\n"
        self.assertEqual(inputs.changed(results.parsed(text % inputs.now()["package"], "python.txt")), set())
        self.assertEqual(inputs.changed(results.parsed(text % "0", "python.txt")), {"package"})
        self.assertEqual(inputs.changed(results.parsed("hgemm 0.2.0, commit abc1234\n", "python.txt")), {"package"})


class Documents(unittest.TestCase):
    def test_empty_columns_are_left_out(self):
        self.assertEqual(words.table(["a", "b"], [["1", "-"], ["2", ""]]), "| a |\n|---|\n| 1 |\n| 2 |")

    def test_bfloat16_is_beside_fp16(self):
        rows = [row(SQUARE, "auto_f32", 10, note="k5"), row(SQUARE, "auto_of_bf16", 20, note="k5"), row(SQUARE, "auto_of_bf16_found", 40, note="k5")]
        with machine(bench_bf16=result(rows)) as gpu:
            self.assertIn("| 1024x1024x1024 nn | 50% | 25% | `k5` | `k5` |", products.bf16_share(gpu))

    def test_fp32_is_beside_its_peers_with_everyones_error(self):
        rows = [row(SQUARE, "auto_f32", 10, relative_error=3e-4), row(SQUARE, "auto_of_f32", 40, relative_error=1e-7),
                row(SQUARE, "cublasSgemm", 60, relative_error=2e-7), row(SQUARE, "cublasGemmEx_tf32", 20, relative_error=4e-4)]
        with machine(bench_f32=result(rows)) as gpu:
            self.assertIn("| 1024x1024x1024 nn | 53.7 | 25% | 1.50 | 0.50 | 1e-7 | 2e-7 | 4e-4 | 3e-4 |", products.f32_products(gpu))

    def test_sensitivity_is_the_change_of_time(self):
        def timed(change, kernel, us):
            return {"problem": SQUARE, "kernel": kernel, "note": "", "change": change, "median_us": us}

        rows = [timed("", "auto", 50), timed("", "k1_tiled", 100), timed("wave=2.2", "auto", 52), timed("wave=2.2", "k1_tiled", 91)]
        with machine(sensitivity=result(rows, witness="modelled")) as gpu:
            self.assertIn("| `wave` 2 -> 2.2 | +4.0% | -9.0% |", products.sensitivity(gpu))

    def test_every_rung_differs_from_the_one_before_and_has_evidence(self):
        rungs = results.rungs()
        self.assertEqual(len(rungs), 5)
        for rung in rungs:
            self.assertIn(f"`{rung}`", ladder.evidence(rung))
            self.assertNotIn("| - |", ladder.evidence(rung))
        for rung in rungs[1:]:
            self.assertRegex(ladder.diff(rung), r"(?m)^[+-] *\S")

    def test_each_rung_is_faster_than_the_one_before_in_what_was_modelled_and_measured(self):
        for machine in (words.MODEL, words.GPU):
            for size in (1024, 2048, 4096):
                rows, _ = ladder.rungs_at(machine, size)
                speeds = [rows[rung]["tflops"] for rung in (ladder.NAIVE, *results.rungs()) if rung in rows]
                self.assertEqual(len(speeds), 6 if machine == words.GPU else 5)
                self.assertEqual(speeds, sorted(speeds), f"{machine}, {size}")

    def test_the_swizzle_changes_two_lines(self):
        changed = [line for line in ladder.diff("k2_swizzled").splitlines() if line[:1] in "+-" and line]
        self.assertEqual(len(changed), 4)
        self.assertTrue(all("static DEVICE u32 place_" in line for line in changed))

    def test_a_quoted_function_is_whole(self):
        quoted = report.inference("linear")
        self.assertTrue(quoted.startswith("```c\n/* h = "))
        self.assertTrue(quoted.endswith("\n}\n```"))
        self.assertEqual(quoted.count("static "), 1)
        self.assertRaises(SystemExit, report.inference, "nonsense")

    def test_modelled_and_published_figures_say_so(self):
        for line in ladder.t4_ladder().split("\n\n")[0].splitlines()[2:]:
            self.assertRegex(line, r"^\| [^|]+ \| (modelled|\[published\]\(https://[^)]+\)) \|")

    def test_a_modelled_product_has_one_figure(self):
        """The family's, on the ladder's page and in README's table."""
        def cells(text, label):
            row = next(line for line in text.splitlines() if line.startswith(f"| {label} |"))
            return re.findall(r"\d+\.\d", row)[:3]
        self.assertEqual(cells(ladder.climb(), "`k5_tuned`"), cells(ladder.t4_ladder(), "**hgemm** (`k5_tuned`)"))

    def test_the_model_is_as_near_to_published_times_as_pages_say(self):
        """README, t4.md and emulator.md: within 5%, at 8192 within 12%."""
        found = calibration.errors()
        self.assertEqual(len(found), 12)
        for (kernel, size), error in found.items():
            self.assertLessEqual(abs(error), 0.12 if size == 8192 else 0.05, f"{kernel} {size}")

    def test_tables_of_measurements_are_few_enough_to_be_read(self):
        self.assertLessEqual(len(re.findall(r"^\|", (results.ROOT / "docs" / "performance.md").read_text(), re.M)), 90)

    def test_what_a_page_shows_of_a_list_is_in_it(self):
        for name, problems in products.SHOWN.items():
            timed = {problem.removesuffix(" row") for list_, result_ in results.lists(words.GPU).items() if list_.startswith(name)
                     for problem in results.by_problem(result_)}
            self.assertLessEqual({*problems}, timed, name)
        self.assertLessEqual({*floats.SHOWN}, {line[0] for line in floats.every_product()[1]})

    def test_what_is_read_whole_is_short(self):
        for page, most in (("README.md", 160), ("docs/ladder.md", 350)):
            self.assertLessEqual((results.ROOT / page).read_text().count("\n"), most, page)

    def test_every_file_of_the_kernels_has_its_place(self):
        """In CONTRIBUTING's table; and no file has more than 500 lines."""
        text = (results.ROOT / "CONTRIBUTING.md").read_text()
        for path in (results.ROOT / "ptx").iterdir():
            between = re.fullmatch(r"k[1-3]_\w+\.cu", path.name)  # k0 to k4
            self.assertTrue(between or f"`{path.name}`" in text, path.name)
            self.assertLessEqual(path.read_text().count("\n"), 500, path.name)

    def test_every_word_of_a_problem_is_explained(self):
        words = re.findall(r'^(?:WORDS|FLAG)\("(\w+)"', (results.ROOT / "src" / "select" / "problem_class.def").read_text(), re.M)
        self.assertGreater(len(words), 15)
        for page in ("docs/tuning.md", "src/select/problem_class.h"):
            text = (results.ROOT / page).read_text()
            for word in words:
                self.assertRegex(text, rf"[`* ]{word}\b", f"{page}: {word}")

    def test_every_test_is_in_the_readme_of_tests(self):
        text = (results.ROOT / "test" / "README.md").read_text()
        for path in (results.ROOT / "test").glob("*/test_*"):
            self.assertRegex(text, rf"\b{path.stem.removeprefix('test_')}\b", path)
        for folder in (path for path in (results.ROOT / "test").iterdir() if path.is_dir()):
            self.assertIn(f"| {folder.name}/ |", text)

    def test_anchors_are_those_of_headings(self):
        self.assertEqual(report.anchors("# A, b: `c_d`\n## E-f"), {"a-b-c_d", "e-f"})


if __name__ == "__main__":
    unittest.main()
