#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What pages name exists: files, options of our commands, functions, variables, presets, and names of the Python package. Their relative
clauses have heads.

What readers make themselves is in THEIRS. Links are checked by tools/report.py.
"""
import ast
import json
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from evidence import api  # noqa: E402

PAGES = [path for pattern in ("*.md", "docs/*.md", "python/README.md", "test/README.md", "bench/shapes/*.md") for path in sorted(ROOT.glob(pattern))]
SOURCES = [path for folder in ("bench", "cmake", "examples", "include", "ptx", "python", "src", "test", "tools") for path in sorted((ROOT / folder).rglob("*"))
           if path.suffix in (".c", ".cc", ".cmake", ".cu", ".cuh", ".def", ".h", ".in", ".py", ".sh", ".toml") and "results" not in path.parts]
SOURCES += [ROOT / "CMakeLists.txt", ROOT / "CMakePresets.json", *sorted(ROOT.glob("*/CMakeLists.txt")), *sorted(ROOT.glob("src/*/CMakeLists.txt"))]
# Where a command of ours has its options. Those of others' commands are not checked.
COMMANDS = {"bench_hgemm": "bench/options.c", "hgemm": "tools/hgemm/*.c", "turing": "tools/turing*.c", "hgemm.cublas": "python/hgemm/cublas.py"}
COMMAND = re.compile(r"(?<![\w./-])(?:[\w./]*/)?(bench_hgemm|hgemm|turing|hgemm\.cublas|(?:tools|test|python)/[\w./]+\.(?:py|sh))(?= )")
THEIRS = {"HGEMM_CONST", "hgemm_verb", "hgemm_thing_t", "hgemm_report.json", "desc.c", "race.cu", "program.py", "your_program.py", "model.py",
          "my_numba_program.py"}
# Marks of clauses without a head, and of comparisons that hang on one: so many at most in a thousand words.
CLAUSES, MOST_CLAUSES = re.compile(r"\b(?:of which|that of|those of|is what|beside|in times)\b", re.I), 3
FOLDERS = r"(?:\.github|bench|cmake|docs|examples|include|ptx|python|src|test|tools)"


def text_of(paths):
    return "\n".join(path.read_text(errors="replace") for path in paths)


def code_of(page):
    """Code spans and blocks of a page, a line each: a long command is one line."""
    text = re.sub(r"<!--.*?-->", "", page.read_text(), flags=re.S)
    blocks = re.findall(r"^```[^\n]*\n(.*?)^```", text, re.S | re.M) + re.findall(r"(?:^    [^\n]*\n)+", text, re.M)
    spans = re.findall(r"(?<!`)`([^`]+)`(?!`)", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M))
    return [line for piece in blocks for line in re.sub(r"\\\n", " ", piece).split("\n")] + [" ".join(span.split()) for span in spans]


def prose_of(page):
    """A page's own words, without blocks of code and what is generated; of a header those of its comments."""
    text = page.read_text()
    if page.suffix == ".h":
        return re.sub(r"\n \* ?", "\n", "\n".join(re.findall(r"/\*(.*?)\*/", text, re.S)))
    return re.sub(r"^```.*?^```|<!-- generated: .*?<!-- end -->", "", text, flags=re.S | re.M)


def clauses_in(text):
    """How many, in a thousand words."""
    return 1000 * len(CLAUSES.findall(" ".join(text.split()))) / max(1, len(text.split()))


class Pages(unittest.TestCase):
    def test_relative_clauses_have_a_head(self):
        self.assertEqual([clauses_in("word " * 996 + last) for last in ("of what is beside", "that\nof those OF", "is whatever in time")], [1, 2, 0])
        many = {str(page.relative_to(ROOT)): round(count, 1) for page in [*PAGES, ROOT / "include" / "hgemm.h"]
                if (count := clauses_in(prose_of(page))) > MOST_CLAUSES}
        self.assertEqual(many, {})

    def each(self, pattern, found_in):
        """Fails with every place of a page's code that matches and is not found."""
        lost = [f"{page.relative_to(ROOT)}: {name}" for page in PAGES for line in code_of(page) for name in re.findall(pattern, line)
                if name not in THEIRS and not found_in(name)]
        self.assertEqual(lost, [])

    def test_there_is_something_to_check(self):
        self.assertGreater(len(PAGES), 20)
        self.assertGreater(sum(len(COMMAND.findall(line)) for page in PAGES for line in code_of(page)), 50)

    def test_names_of_the_library_and_of_the_build_exist(self):
        words = set(re.findall(r"\w+", text_of(SOURCES)))
        starts = {word[:end.start()] for word in words if word.startswith(("hgemm_", "HGEMM_")) for end in re.finditer(r"(?<=_)", word)}
        self.each(r"(?<![\w/.])(?:hgemm|HGEMM)_\w+", lambda name: name in words or name in starts)

    def test_files_exist(self):
        names = {path.name for path in SOURCES}
        self.each(rf"(?<![\w./<>-]){FOLDERS}/[\w./*-]*\w(?![\w./*$<-])", lambda name: any(ROOT.glob(name)))
        self.each(r"(?<![\w./*<>-])[\w-]+\.(?:c|h|cu|cuh|def|cmake|py|sh)\b(?![\w(])", names.__contains__)

    def test_options_are_those_of_their_command(self):
        lost = []
        for page in PAGES:
            for line in code_of(page):
                commands = [*COMMAND.finditer(line.split("  #")[0])]
                for this, following in zip(commands, [*commands[1:], None]):
                    end = re.search(r" [|;&]|&&|$", line[this.end():]).start() + this.end()
                    words = line[this.end():min(end, following.start() if following else end)]
                    sources = text_of(ROOT.glob(COMMANDS.get(this[1], this[1])))
                    for option in re.findall(r"(?<= --)[a-z][\w-]*", words):
                        if not re.search(rf'"{option}"|--{option}\b', sources):
                            lost.append(f"{page.relative_to(ROOT)}: {this[1]} --{option}")
        self.assertEqual(lost, [])

    def test_presets_exist(self):
        presets = {preset["name"] for preset in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]}
        self.each(r"(?<=--preset )\w+", presets.__contains__)

    def test_names_of_the_python_package_exist(self):
        words = set(re.findall(r"\w+", text_of((ROOT / "python" / "hgemm").rglob("*.py"))))
        self.each(r"(?<![\w./-])hgemm\.(?!(?:h|sh)\b)([a-z_]\w*)", words.__contains__)

    def test_arguments_of_the_python_package_are_those_of_the_page(self):
        """Of the three functions whose keywords docs/python.md lists, in their order."""
        page = (ROOT / "docs" / "python.md").read_text()
        for function, source, name in (("hgemm.matmul", "_functions.py", "matmul"), ("hgemm.grouped", "_functions.py", "grouped"),
                                       ("hgemm.torch.enable", "_enable.py", "enable")):
            shown = next(found for found in re.findall(rf"{function}\(((?:[^()]|\([^()]*\))*)\)", page) if found.count(",") > 3)
            module = ast.parse((ROOT / "python" / "hgemm" / source).read_text())
            found = next(node for node in module.body if getattr(node, "name", "") == name)
            if isinstance(found, ast.ClassDef):
                found = next(node for node in found.body if getattr(node, "name", "") == "__init__")
            has = [argument.arg for argument in found.args.args + found.args.kwonlyargs if argument.arg != "self"]
            self.assertEqual(re.findall(r"[a-z]\w*(?=\s*(?:,|=|$))", re.sub(r'"\w+"|\([^()]*\)|None|True|False', "", shown)), has, function)

    def test_every_public_name_stands_in_api_md_with_an_example(self):
        page = ROOT / "docs" / "api.md"
        for generated, tasks, make, language in (("c_functions", api.C_TASKS, api.c_table, "c"), ("python_names", api.PYTHON_TASKS, api.python_table, "python")):
            examples = "\n".join(re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.S | re.M))
            for task, names in tasks.items():
                part = re.search(rf"<!-- generated: {generated} {task} -->\n(.*?)\n<!-- end -->", page.read_text(), re.S)
                self.assertTrue(part and part[1] == make(task), f"docs/api.md: {task} is out of date, run tools/report.py")
                self.assertEqual([name for name in names if not re.search(rf"\b{re.escape(name)}\b", examples)], [], "have no example")

    def test_a_public_name_without_a_task_or_words_is_found(self):
        api.complete(api.C_TASKS, api.c_functions(), "include/hgemm.h")
        with self.assertRaisesRegex(SystemExit, "hgemm_new has no task"):
            api.complete(api.C_TASKS, {**api.c_functions(), "hgemm_new": "Is new."}, "include/hgemm.h")
        with self.assertRaisesRegex(SystemExit, "hgemm_destroy is no public name"):
            api.complete(api.C_TASKS, set(api.c_functions()) - {"hgemm_destroy"}, "include/hgemm.h")
        self.assertEqual(api.c_functions("/* Is\n * new. More. */\nHGEMM_API const char *hgemm_new(int\n"), {"hgemm_new": "Is new."})
        with self.assertRaisesRegex(SystemExit, "hgemm_new has no contract"):
            api.c_functions("\nHGEMM_API int hgemm_new(void);\n")

    def test_every_list_of_the_t4_model_can_be_made_again(self):
        """By a line of docs/t4.md; parts of a list are joined (tools/results.py)."""
        text = (ROOT / "docs" / "t4.md").read_text()
        made = set(re.findall(r"\bmodel ([a-z]\w*)(?=[ $])", text)) | set(re.findall(r"\bexperts (experts\w*)", text))
        made |= {f"weights_{name}{first}" for name in re.findall(r"(?m)^ +packed (\w+)", text) for first in ("", "_first")}
        made |= {f"plans_weights_{name}" for name in re.findall(r"(?m)^ +chosen (\w+)", text)}
        for path in sorted((ROOT / "bench" / "results" / "t4model").glob("bench_*.json")):
            name = path.stem.removeprefix("bench_")
            self.assertTrue(name in made or f"{name}1" in made or f"`{name}`" in text, f"{path.name}: docs/t4.md does not say how it was made")


if __name__ == "__main__":
    unittest.main()
