# SPDX-License-Identifier: MIT
"""What an H100 said of results: tests that ran there, and errors beside cuBLAS's."""
import re
import sys

import results
from evidence.words import origin

LIMITS = {("auto", "cublasHgemm"): 1.1 * 2 ** 0.5, ("auto_f32", "cublasGemmEx_f32"): 1.1}  # docs/contract.md


def tests():
    paths = [results.RESULTS / "h100" / name for name in ("tests.txt", "cases.txt")]
    ran = re.search(r"of (\d+) tests (?:(\d+) were finished [^;]*; )?all (?:\d+ )?passed", paths[0].read_text())
    cases = re.findall(r"^(\d+) cases, (\d+) failures$", paths[1].read_text(), re.M)  # of each seed, and of all
    if not ran or not cases or any(int(failures) for _, failures in cases):
        sys.exit("bench/results/h100: tests.txt or cases.txt does not say that all passed")
    finished = f"{ran[2]} of the {ran[1]} tests of kernels ended in the time that there was, and" if ran[2] else f"All {ran[1]} tests of kernels"
    gpu = results.read(paths[1])["context"]["gpu"].split(",")[0]
    return f"On an {gpu.removeprefix('NVIDIA ')} {int(cases[-1][0]):,} random cases passed. {finished} passed. {origin(*paths)}"


def beyond_cublas():
    """Shapes of the lists that are beyond the limits."""
    found, of = [], []
    for result in results.lists("h100").values():
        ours = []
        for problem, rows in results.by_problem(result).items():
            for (kernel, peer), limit in LIMITS.items():
                errors = [rows.get(name, {}).get("relative_error") for name in (kernel, peer)]
                if all(errors) and errors[0] > limit * errors[1]:
                    ours.append(f"{' '.join(problem.split()[:2])} ({errors[0] / errors[1]:.2f} times cuBLAS's error)")
        found += ours
        of += [result] if ours else []
    which = f"those beyond the limit are {' and '.join(found)}" if found else "none is beyond the limit"
    return f"Of the shapes in [performance.md](performance.md) {which}. {origin(*of)}"
