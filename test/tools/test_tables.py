#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the Python package knows of types, codes and activations is what the library's tables say: src/table/*.def."""
import ast
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PYTHON_TYPES = {"f16": "float16", "f32": "float32", "bf16": "bfloat16"}  # by the table's names


def rows(table, macro):
    """The columns of each row of a table, as text."""
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "src" / "table" / table).read_text(), flags=re.S)
    return [[column.strip() for column in row.split(",")] for row in re.findall(rf"^{macro}\((.*?)\)", text, flags=re.M)]


def assigned(module, name):
    """What a module of the package assigns to a name: the expression, unevaluated."""
    for statement in ast.parse((ROOT / "python" / "hgemm" / module).read_text()).body:
        if isinstance(statement, ast.Assign) and any(getattr(target, "id", None) == name for target in statement.targets):
            return statement.value
    raise AssertionError(f"python/hgemm/{module} assigns nothing to {name}")


class Tables(unittest.TestCase):
    def test_types(self):
        names = [PYTHON_TYPES[name] for _, name, *_ in rows("types.def", "TYPE")]
        self.assertEqual(ast.literal_eval(assigned("_c.py", "TYPE")), {name: value for value, name in enumerate(names)})

    def test_codes(self):
        codes = rows("codes.def", "CODE")
        self.assertEqual(ast.literal_eval(assigned("_c.py", "CODE")), {name: value for value, (_, name, *_) in enumerate(codes)})
        self.assertEqual(ast.literal_eval(assigned("_weights.py", "BITS")), {name: int(bits) for _, name, bits, *_ in codes})
        self.assertEqual(ast.literal_eval(assigned("_weights.py", "_RANGES")),
                         {name: (int(lowest), int(highest)) for _, name, _, _, lowest, highest, _ in codes})
        self.assertEqual(ast.literal_eval(assigned("_weights.py", "_ZERO_RANGES")),  # of 4 bits also one past the highest
                         {name: (int(lowest), int(highest) + (bits == "4")) for _, name, bits, _, lowest, highest, zeros in codes if zeros == "1"})

    def test_activations(self):
        python = assigned("_activations.py", "ACTIVATIONS").values
        self.assertEqual([ast.literal_eval(ast.List(row.args[:2], ast.Load())) for row in python],
                         [[value, name] for value, (_, name, _) in enumerate(rows("activations.def", "ACTIVATION"))])

    def test_every_table_has_rows(self):
        for table, macro in (("types.def", "TYPE"), ("codes.def", "CODE"), ("activations.def", "ACTIVATION")):
            self.assertGreater(len(rows(table, macro)), 2)


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    unittest.main()
