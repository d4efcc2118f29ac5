# SPDX-License-Identifier: MIT
"""Products whose A and B are FP32, bench/results/h100/float_products.json: speeds and errors beside cuBLAS's SGEMM."""
import results
from evidence.words import origin, table


def path():
    return results.RESULTS / "h100" / "float_products.json"


def rows():
    return results.read(path())["results"]


def products():
    """A row for each product that was timed."""
    lines = [[f"{r['m']}x{r['n']}x{r['k']} {r['op']}", r["data"], f"{r['tflops']:.1f}", f"{r['speed_over_sgemm']:.2f}", f"{r['us_tf32'] / r['us_hgemm']:.2f}",
              f"{r['rms_hgemm']:.0e}", f"{r['rms_sgemm']:.0e}"] for r in rows()]
    return table(["product", "data", "TFLOPS", "speed / SGEMM's", "speed / TF32's", "error", "SGEMM's error"], lines) + f"\n\n{origin(path())}"


def levels():
    """The same for less accuracy, of the products that have been timed so."""
    def of(r, name):
        return [f"{r['us_sgemm'] / r['us_' + name]:.2f}", f"{r['us_tf32'] / r['us_' + name]:.2f}", f"{r['rms_' + name]:.0e}"]

    lines = [[f"{r['m']}x{r['n']}x{r['k']} {r['op']}", r["data"], *of(r, "16bits"), *of(r, "11bits"), f"{r['rms_tf32']:.0e}"] for r in rows() if "us_16bits" in r]
    heads = [f"{name} bits: {what}" for name in ("16", "11") for what in ("speed / SGEMM's", "speed / TF32's", "error")]
    return table(["product", "data", *heads, "TF32's error"], lines) + f"\n\n{origin(path())}"


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
