# SPDX-License-Identifier: MIT
"""What a T4's report said (tools/take.py), beside what the timing model says of the same products."""
import results
from evidence.words import origin, table

MACHINE, MODEL = "t4", "t4model"
NAMES = {"auto": "**hgemm** (`k5_tuned`)", "auto_f32": "**hgemm**, FP32 sums", "torch.mm": "torch.mm", "torch.mm_f32": "torch.mm, FP32 sums",
         "auto of FP32": "**hgemm**, A and B of FP32", "torch.mm of FP32": "torch.mm, A and B of FP32"}


def paths():
    path = results.RESULTS / MACHINE / "bench_report.json"
    return [path] if path.exists() else []


def report():
    return results.read(paths()[0]) if paths() else None


def witness():
    return {"made up": "**MADE UP**"}.get(report()["context"]["witness"], "measured")


def ladder_rows(sizes):
    """Rows of the table of squares, if there is a report."""
    if not report():
        return []
    named = results.by_problem(report())
    kernels = dict.fromkeys(kernel for rows in named.values() for kernel in rows)
    lines = []
    for kernel in kernels:
        cells = [named.get(f"{size}x{size}x{size} nn row", {}).get(kernel) for size in sizes]
        if any(cells):
            lines.append([NAMES.get(kernel, f"`{kernel}`"), witness(), *(f"{cell['tflops']:.1f}" if cell else "-" for cell in cells)])
    return lines


def beside_model():
    """Every product of the report that the model has a time of."""
    if not report():
        return "No report of a T4 has come yet. `hgemm.report()` writes one on a T4, and `tools/take.py hgemm_report.json` puts it here."
    context, lines = report()["context"], []
    for problem, named in results.by_problem(report()).items():
        for kernel, row in named.items():
            modelled = results.newest(MODEL, problem, kernel)[0].get(kernel)
            if modelled:
                lines.append([problem.split()[0], NAMES.get(kernel, f"`{kernel}`"), f"{row['median_us']:.1f}", f"{modelled['median_us']:.1f}",
                              f"{row['median_us'] / modelled['median_us']:.2f}"])
    return table(["product", "", f"us, {witness()}", "us, modelled", "measured / modelled"], lines) + (
        f"\n\n{context['gpu']}, {context['clocks']}, driver {context['driver']}: {witness()}; {context['mode']}. {origin(*paths())}")
