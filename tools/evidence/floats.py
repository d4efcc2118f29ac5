# SPDX-License-Identifier: MIT
"""Products whose A and B are FP32, bench/results/h100/float_products.json: speeds and errors beside cuBLAS's SGEMM."""
import results
from evidence.words import origin, table


def path():
    return results.RESULTS / "h100" / "float_products.json"


def rows():
    return results.read(path())["results"]


# What docs/performance.md shows: each kind of product once, those that fare worst among them. tools/report.py --rows has all.
SHOWN = ("1024x1024x1024 nn", "4096x4096x4096 nn", "4096x4096x4096 nt", "2048x2048x2048 tn", "2047x2047x2047 nn", "64x4096x4096 nt",
         "512x512x16384 nn", "64x64x16384 nn", "4096x4096x16384 nn")
LEVELS = ("hgemm", "16bits", "11bits")


def every_product():
    """A row for each product, with those of less accuracy beside: speeds and errors."""
    lines = [[f"{r['m']}x{r['n']}x{r['k']} {r['op']}", r["data"], f"{r['tflops']:.1f}",
              *(f"{r['us_' + peer] / r['us_' + level]:.2f}" if "us_" + level in r else "-" for level in LEVELS for peer in ("sgemm", "tf32")),
              *(f"{r['rms_' + level]:.0e}".replace("e-0", "e-") if "rms_" + level in r else "-" for level in (*LEVELS, "sgemm", "tf32"))] for r in rows()]
    speeds = [f"{of}speed / {peer}'s" for of in ("", "of 16 bits: ", "of 11 bits: ") for peer in ("SGEMM", "TF32")]
    return ["product", "data", "TFLOPS", *speeds, "error", "of 16 bits", "of 11 bits", "SGEMM's", "TF32's"], lines


def products():
    header, lines = every_product()
    return table(header, [line for line in lines if line[0] in SHOWN]) + f"\n\n{origin(path())}"


def span(values, form):
    low, high = (form.format(value).replace("e-0", "e-") for value in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def errors():
    """The ranges of errors, in a sentence."""
    said = []
    for data in dict.fromkeys(row["data"] for row in rows()):
        of = [row for row in rows() if row["data"] == data]
        said.append(f"{data} data {span([r['rms_hgemm'] for r in of], '{:.0e}')} where cuBLAS's SGEMM has "
                    f"{span([r['rms_sgemm'] for r in of], '{:.0e}')}")
    return f"Root mean squares of the errors over sum |a||b|, measured on an H100: {'; '.join(said)}.\n\n{origin(path())}"
