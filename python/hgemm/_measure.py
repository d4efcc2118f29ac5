# SPDX-License-Identifier: MIT
"""info, bench and report: what is here, how fast it is, and what a maintainer needs to know of it."""
from __future__ import annotations

import datetime
import hashlib
import importlib
import json
import math
import numbers
import pathlib
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from . import _c, _device
from ._device_array import DeviceArray, upload
from ._functions import matmul
from ._words import shown

LADDER = ("k1_tiled", "k2_swizzled", "k3_prefetch", "k4_fastindex", "auto")
GPU_SHAPES = ("256", "512", "1024", "2048", "4096", "1023", "2047", "1x4096x4096", "16x4096x4096", "64x4096x4096", "64x64x16384")
EMULATED_SHAPES = ("64", "96x64x128", "65x33x47")
MODEL_CLOCK_MHZ = 1590


# ---- what is here ------------------------------------------------------------------------------------------------


class Info(dict[str, Any]):
    def __repr__(self) -> str:
        width = max(map(len, self))
        return "\n".join(f"{key:<{width}}  {value}" for key, value in self.items())


def info(device: str | None = None) -> Info:
    """The library and a device: by default the one that arrays in host memory are copied to."""
    handle = _device.handle_for(device)
    found = handle.info()
    cuda = f"{found.driver_version // 1000}.{found.driver_version % 1000 // 10}" if found.driver_version else "no driver"
    name = found.name.decode()
    return Info({
        "hgemm": _c.version_text(),
        "library": str(_c.path),
        "device": name,
        "kind": found.kind.decode(),
        "emulated": handle.emulated,
        "note": found.fallback.decode() or ("the CPU executes the kernels: right results, no speed" if handle.emulated else ""),
        "compute capability": f"{found.compute_major}.{found.compute_minor}",
        "multiprocessors": found.multiprocessors,
        "clock MHz": found.clock_khz // 1000,
        "memory MiB": found.memory_bytes >> 20,
        "L2 KiB": found.l2_bytes >> 10,
        "driver's CUDA": cuda,
        "is a T4": not handle.emulated and "T4" in name and (found.compute_major, found.compute_minor) == (7, 5),
    })


# ---- what the T4's model says ------------------------------------------------------------------------------------


# How the names of lists begin whose products are taken where no other list has them; those of the last two are of other plans.
_APART = ("bench_bf16", "bench_continuous", "bench_energy", "bench_experts", "bench_f32", "bench_invariant", "bench_weights", "bench_parts", "bench_plans")


def predictions(events: bool = False) -> dict[tuple[str, str, str], float]:
    """{(shape, kernel, accumulate): microseconds} for row-major products without transposes: the timing model's word for a T4 at
    1590 MHz. Not measured. They are those of the kernel alone or, with `events`, what a T4 that is timed by a pair of CUDA events
    after a pause would say, of products of which that is known. The model is not yet judged on times that were kept back."""
    folder = pathlib.Path(__file__).with_name("t4model")
    if not folder.exists():  # not installed: used from a clone
        folder = pathlib.Path(__file__).parents[2] / "bench" / "results" / "t4model"
    found = {}
    files = [(not path.stem.startswith(_APART), json.loads(path.read_text())) for path in folder.glob("bench_*.json")
             if not path.stem.startswith(_APART[-2:])]
    # Of a product in several, the newest; one that does not say is the oldest.
    for _, file in sorted(files, key=lambda one: (one[0], one[1]["context"].get("date", ""))):
        for row in file["results"]:
            shape, ops, layout = row["problem"].split()[:3]
            if (ops, layout) == ("nn", "row") and ("events_us" if events else "median_us") in row:
                kernel, single = re.subn(r"^auto_f32$", "auto", row["kernel"])
                if kernel in LADDER:
                    found[shape, kernel, "float32" if single else "float16"] = row["events_us" if events else "median_us"]
    return found


# ---- timing ------------------------------------------------------------------------------------------------------


class _Events:
    """Times of single launches by CUDA events. The GPU is kept busy while they are enqueued, so the host's time does not count."""

    said = "CUDA events around single launches, contestants in turn"

    def __init__(self, torch):
        self.torch = torch

    def array(self, host):
        return self.torch.from_numpy(host).cuda()

    def empty(self, dtype, *shape):
        return self.torch.empty(shape, dtype=getattr(self.torch, dtype), device="cuda")

    def time(self, run):
        begin, end = (self.torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.torch.cuda._sleep(400_000)
        begin.record()
        run()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) * 1000

    def error(self, a, b, d):
        rows = self.torch.linspace(0, len(a) - 1, min(len(a), 32), device="cuda").long()
        exact = a[rows].double() @ b.double()
        norm = exact.norm().item()
        return (d[rows].double() - exact).norm().item() / norm if norm else 0.0


class _Clock:
    """Times by the host's clock, where there is no torch: of many launches in a row. None on the emulated T4, where time says nothing."""

    said = "the host's clock around launches in a row"

    def __init__(self, handle):
        self.handle = handle

    def array(self, host):
        return upload(host, self.handle)

    def empty(self, dtype, *shape):
        return DeviceArray.empty(shape, dtype, self.handle)

    def time(self, run):
        if self.handle.emulated:
            run()
            return None
        self.handle.synchronize()
        begin = time.perf_counter()
        for _ in range(20):
            run()
        self.handle.synchronize()
        return (time.perf_counter() - begin) / 20 * 1e6

    def error(self, a, b, d):
        rows = np.linspace(0, a.shape[0] - 1, min(a.shape[0], 32)).astype(int)
        exact = a.numpy()[rows].astype(np.float64) @ b.numpy().astype(np.float64)
        norm = np.linalg.norm(exact)
        return float(np.linalg.norm(d.numpy()[rows] - exact) / norm) if norm else 0.0


def _torch_with_gpu():
    try:
        import torch
    except ImportError:
        return None
    return torch if torch.cuda.is_available() else None


class _Watch:
    """nvidia-smi's samples of clock, power and temperature while it is entered."""

    FIELDS = "clocks.sm,power.draw,temperature.gpu,clocks_throttle_reasons.active"

    def __enter__(self):
        self.samples = []
        try:
            self.process = subprocess.Popen(["nvidia-smi", f"--query-gpu={self.FIELDS}", "--format=csv,noheader,nounits", "-lms", "100",
                                             "--id=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        except OSError:
            self.process = None
        return self

    def __exit__(self, *exception):
        if self.process is None:
            return
        self.process.terminate()
        for line in self.process.communicate()[0].splitlines():
            values = [value.strip() for value in line.split(",")]
            if len(values) == 4:
                self.samples.append(dict(zip(self.FIELDS.split(","), values)))

    def clock(self):
        clocks = [int(sample["clocks.sm"]) for sample in self.samples if sample["clocks.sm"].isdigit()]
        return statistics.median(clocks) if clocks else None


# ---- bench -------------------------------------------------------------------------------------------------------


def _shape(text):
    found = re.fullmatch(r"(\d{1,9})(?:x(\d{1,9})x(\d{1,9}))?", text) if isinstance(text, str) else None
    sizes = tuple(int(size or found[1]) for size in found.groups()) if found else (int(text),) * 3 if isinstance(text, numbers.Integral) else (0,)
    if not 0 < min(sizes) <= max(sizes) < 2**31:
        raise ValueError(f'shapes: {shown(text)} is neither "N" nor "MxNxK"')
    return sizes


def _shapes_of(given):
    """The shapes as sizes, or None where none are given."""
    if given is None:
        return None
    return [_shape(text) for text in _sequence("shapes", given, (str, numbers.Integral), '"N" or "MxNxK"')]


def _sequence(argument, given, kinds, what):
    """What is given, one or several."""
    if isinstance(given, kinds):
        return given,
    if isinstance(given, (list, tuple, dict, set, Iterator)):
        return tuple(given)
    raise TypeError(f"{argument}: {shown(given)} is no sequence of {what}")


def _check_repetitions(repetitions):
    if not isinstance(repetitions, int) or repetitions < 1:
        raise ValueError(f"repetitions: {shown(repetitions)} is no number from 1 on")


class Bench:
    """Rows of a table, in order. `rows` has all figures, each with every repetition; `context` says where they are from."""

    def __init__(self, context: dict[str, Any], rows: list[dict[str, Any]]) -> None:
        self.context, self.rows = context, rows

    def __repr__(self):
        columns = [("shape", "shape", "{}"), ("kernel", "kernel", "{}"), ("sums", "accumulate", "{}"), ("us", "us", "{:.1f}"),
                   ("TFLOPS", "tflops", "{:.1f}"), ("% of torch", "percent_torch", "{:.0f}"), ("T4 model: us", "model_us", "{:.1f}"),
                   ("measured / model", "measured_per_model", "{:.2f}"), ("relative error", "relative_error", "{:.1e}")]
        columns = [column for column in columns if any(row.get(column[1]) is not None for row in self.rows)]
        cells = [[title for title, _, _ in columns]]
        cells += [[form.format(row[key]) if row.get(key) is not None else "-" for _, key, form in columns] for row in self.rows]
        widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells]
        return "\n".join([f"{self.context['device']}: {self.context['timing']}"] + lines)

    def plot(self, path: str | pathlib.Path | None = None) -> Any:
        """Bars of TFLOPS for each shape; ticks across them where the T4's model has a figure. Returns matplotlib's figure."""
        try:
            from matplotlib.figure import Figure
        except ImportError:
            raise ImportError("matplotlib is needed to plot: pip install matplotlib") from None
        shapes = list(dict.fromkeys(row["shape"] for row in self.rows))
        names = list(dict.fromkeys((row["kernel"], row["accumulate"]) for row in self.rows))
        figure = Figure(figsize=(max(6, 1.3 * len(shapes) + 2), 4), layout="constrained")
        axes = figure.subplots()
        width = 0.8 / len(names)
        for i, (kernel, accumulate) in enumerate(names):
            rows = {row["shape"]: row for row in self.rows if (row["kernel"], row["accumulate"]) == (kernel, accumulate)}
            at = [x - 0.4 + width * (i + 0.5) for x in range(len(shapes))]
            measured = [rows.get(shape, {}).get("tflops") or 0 for shape in shapes]
            axes.bar(at, measured, width, label=f"{kernel}, {accumulate} sums", color=f"C{i}")
            marks = [(x, rows[shape]["model_tflops"]) for x, shape in zip(at, shapes) if rows.get(shape, {}).get("model_tflops")]
            if marks:
                axes.scatter([x for x, _ in marks], [y for _, y in marks], marker="_", s=200, color="black", zorder=3, label="what the T4's model says" if i == 0 else None)
        axes.set_xticks(range(len(shapes)), shapes, rotation=30, ha="right", fontsize=8)
        axes.set_ylabel("TFLOPS")
        axes.set_title(f"{self.context['device']}: {self.context['timing']}", fontsize=9)
        axes.legend(fontsize=7)
        if path is not None:
            figure.savefig(path, dpi=150)
        return figure


def _contestants(kernels, accumulates, dtype, a, b, d, torch):
    """{(name, accumulate): what runs it}. torch's mm is cuBLAS; with half sums only where this torch can ask for them, and of floats
    without TF32."""
    found = {}
    for accumulate in accumulates:
        for name in kernels:
            if name != "auto" and accumulate != "float16" and dtype == "float16":
                continue  # the rungs below k5 have half sums
            kernel = None if name == "auto" else name
            found[name, accumulate] = lambda kernel=kernel, accumulate=accumulate: matmul(a, b, out=d, accumulate=accumulate, kernel=kernel)
        if torch is not None and (accumulate == "float32" or hasattr(torch.backends.cuda.matmul, "allow_fp16_accumulation")):
            def by_torch(half=accumulate == "float16"):
                switch, name = torch.backends.cuda.matmul, "allow_fp16_accumulation" if half else "allow_tf32"
                before = getattr(switch, name)
                setattr(switch, name, half)
                try:
                    return torch.mm(a, b, out=d)
                finally:
                    setattr(switch, name, before)
            found["torch", accumulate] = by_torch
    return found


def _quartile(samples, q):
    return float(np.percentile(samples, 25 * q))


def bench(shapes: str | int | Iterable[str | int] | None = None, *, kernels: str | Iterable[str] = ("auto",),
          accumulate: str | Iterable[str] | None = None, dtype: str = "float16", repetitions: int = 21, progress: bool = True) -> Bench:
    """Speed on this GPU beside torch's (which is cuBLAS's) and, on a T4, beside what the T4's model says. Returns a table with
    `.rows` and `.plot()`.

    shapes       "N" or "MxNxK", of row-major products with alpha 1 and beta 0
    kernels      "auto", and names of hgemm.kernels(); "ladder" for the rungs, those below the last where rows are aligned
    accumulate   "float16", "float32" or both, the default for float16; for float32 there is float32 alone
    dtype        of the operands and the result: "float16", or "float32", beside which torch's own is cuBLAS's SGEMM, without TF32
    Results are compared with double precision. On an emulated T4 nothing is timed: its rows have the model's figures, as such."""
    sizes, is_ladder = _shapes_of(shapes), isinstance(kernels, str) and kernels == "ladder"
    kernels = LADDER if is_ladder else _sequence("kernels", kernels, str, "names")
    if not isinstance(dtype, str) or dtype not in ("float16", "float32"):
        raise ValueError(f'dtype: {shown(dtype)} is neither "float16" nor "float32"')
    accumulates = _sequence("accumulate", (("float16", "float32") if dtype == "float16" else "float32") if accumulate is None else accumulate, str, "types")
    for sums in accumulates:
        if not isinstance(sums, str) or sums not in _c.ACCUMULATE:
            raise ValueError(f'accumulate: {shown(sums)} is neither "float32" nor "float16"')
    if dtype == "float32" and (is_ladder or "float16" in accumulates):
        raise ValueError("dtype: the ladder, by kernels, and sums in float16, by accumulate, are for float16")
    _check_repetitions(repetitions)
    for name in kernels:
        if name != "auto":
            _c.kernel_number(name, "kernels")
    about = info()
    handle = _device.handle_for(None)
    torch = None if handle.emulated else _torch_with_gpu()
    tools = _Events(torch) if torch else _Clock(handle)
    if handle.emulated:
        repetitions = 1
    modelled = predictions() if dtype == "float16" and (about["is a T4"] or handle.emulated) else {}
    sizes = sizes or _shapes_of(EMULATED_SHAPES if handle.emulated else GPU_SHAPES)
    rng = np.random.default_rng(2026)
    rows = []
    with _Watch() as watch:
        for number, (m, n, k) in enumerate(sizes, 1):
            shape = f"{m}x{n}x{k}"
            if progress:
                print(f"[{number}/{len(sizes)}] {shape}", file=sys.stderr, flush=True)
            a, b = (tools.array(rng.uniform(-1, 1, size).astype(dtype)) for size in ((m, k), (k, n)))
            d = tools.empty(dtype, m, n)
            contestants = _contestants(kernels, accumulates, dtype, a, b, d, torch)
            timed = {}
            for key, run in contestants.items():
                try:
                    run()
                except _c.NotSupportedError:
                    if not is_ladder:
                        raise
                    continue  # a rung that takes aligned rows alone
                timed[key] = {"us": [], "error": tools.error(a, b, d)}
            for _ in range(repetitions):
                for key in timed:
                    timed[key]["us"].append(tools.time(contestants[key]))
            for (kernel, sums), of in timed.items():
                rows.append(_row(shape, kernel, sums, of, 2e-6 * m * n * k, modelled, timed.get(("torch", sums))))
    timing = f"{dtype}, " + ("emulated: not timed" if handle.emulated else f"measured: {tools.said}, medians of {repetitions}")
    context = {"device": about["device"], "timing": timing, "witness": "emulator" if handle.emulated else "measured",
               "dtype": dtype, "clock_mhz": watch.clock(), "samples": watch.samples, "repetitions": repetitions}
    if context["clock_mhz"]:
        for row in rows:
            if row["measured_per_model"]:
                row["measured_per_model_in_cycles"] = row["measured_per_model"] * context["clock_mhz"] / MODEL_CLOCK_MHZ
    return Bench(context, rows)


def _row(shape, kernel, sums, timed, mflop, modelled, torchs):
    samples = [us for us in timed["us"] if us is not None]
    us = statistics.median(samples) if samples else None
    model_us = modelled.get((shape, kernel, sums))
    row = {"shape": shape, "kernel": kernel, "accumulate": sums, "us": us, "tflops": mflop / us if us else None,
           "q1_us": _quartile(samples, 1) if samples else None, "q3_us": _quartile(samples, 3) if samples else None,
           "percent_torch": None, "model_us": model_us, "model_tflops": mflop / model_us if model_us else None,
           "measured_per_model": us / model_us if us and model_us else None, "relative_error": timed["error"], "samples_us": samples}
    if us and torchs and kernel != "torch":
        row["percent_torch"] = 100 * statistics.median(torchs["us"]) / us
    return row


# ---- report ------------------------------------------------------------------------------------------------------


def _checks():
    """Products of small integers, each exact: what does not match bit for bit is a fault of the library or the device."""
    rng = np.random.default_rng()
    found = []
    for dtype, accumulate in (("float16", "float16"), ("float16", "float32"), ("float32", "float32")):
        for m, n, k, transpose_a, transpose_b in ((64, 64, 64, 0, 0), (65, 33, 47, 1, 0), (1, 256, 64, 0, 1), (128, 7, 96, 1, 1), (200, 120, 8, 0, 0)):
            most = 2 if dtype == "float16" else 2**13  # of a: more bits than one half has
            a, b = rng.integers(-most, most + 1, (m, k)).astype(dtype), rng.integers(-2, 3, (k, n)).astype(dtype)
            stored = [np.asfortranarray(x) if transposed else x for x, transposed in ((a, transpose_a), (b, transpose_b))]
            wrong = int((matmul(*stored, accumulate=accumulate) != a.astype(np.float32) @ b.astype(np.float32)).sum())
            found.append({"problem": f"{m}x{n}x{k} {'nt'[transpose_a]}{'nt'[transpose_b]}", "dtype": dtype, "accumulate": accumulate,
                          "wrong_elements": wrong})
    return found


def _nvidia_smi():
    fields = ("name,driver_version,vbios_version,pstate,persistence_mode,compute_mode,ecc.mode.current,clocks.max.sm,clocks.max.memory,"
              "clocks.applications.graphics,power.limit,power.max_limit,temperature.gpu,pcie.link.gen.current,pcie.link.width.current,"
              "memory.total,memory.used")
    try:
        done = subprocess.run(["nvidia-smi", f"--query-gpu={fields}", "--format=csv,noheader"], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        return {"not available": str(error)}
    if done.returncode:
        return {"not available": (done.stderr or done.stdout).strip()}
    return [dict(zip(fields.split(","), (value.strip() for value in line.split(",")))) for line in done.stdout.splitlines()]


def _software():
    found = {"python": platform.python_version(), "system": platform.platform(), "machine": platform.machine(), "numpy": np.__version__}
    for name in ("torch", "cupy", "transformers"):
        if name in sys.modules:
            found[name] = importlib.import_module(name).__version__
    torch = _torch_with_gpu()
    if torch:
        found["torch's CUDA"], found["torch"] = torch.version.cuda, torch.__version__
    return found


def _commit():
    """The commit that the wheel was built from; "unknown" in a clone."""
    path = pathlib.Path(__file__).with_name("commit.txt")
    return path.read_text().strip() if path.exists() else "unknown"


def _mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else None


def _check_writable(path):
    """Raises OSError for a file that could not be written. One that is there stays as it is."""
    is_new = not path.exists()
    path.open("a").close()
    if is_new:
        path.unlink()


def report(path: str | pathlib.Path = "hgemm_report.json", *, shapes: str | int | Iterable[str | int] | None = None, repetitions: int = 21,
           progress: bool = True) -> dict[str, Any]:
    """Checks and measures the library on this GPU and writes a JSON file that a maintainer can read: the GPU, its clocks while it
    was measured, driver and software; exact products; the ladder and products of float32, with every repetition, beside torch; and,
    on a T4, how far each time is from what the T4's model said. It holds no serial number and no name of a user or a machine. Returns
    what it wrote."""
    path = pathlib.Path(path)
    _shapes_of(shapes)
    _check_repetitions(repetitions)
    _check_writable(path)
    about = info()
    checks = _checks()
    floats = bench(shapes, dtype="float32", repetitions=repetitions, progress=progress)
    if shapes is None and not about["emulated"]:
        shapes = list(dict.fromkeys(shape for shape, _, _ in predictions() if max(_shape(shape)) <= 16384))[:60]
    table = bench(shapes, kernels="ladder", repetitions=repetitions, progress=progress)
    errors: dict[str, list[float]] = {}
    for row in table.rows:
        if row["measured_per_model"]:
            errors.setdefault(f"{row['kernel']}, {row['accumulate']} sums", []).append(row["measured_per_model"])
    written = {
        "what": "hgemm report 1",
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "hgemm": {"version": _c.version_text(), "commit": _commit(), "sha256": hashlib.sha256(_c.path.read_bytes()).hexdigest(), "kernels": len(_c.kernels())},
        "device": {key: value for key, value in about.items() if key not in ("hgemm", "library")},
        "gpu": _nvidia_smi(),
        "software": _software(),
        "exact_products": checks,
        "bench": {"context": table.context, "rows": table.rows},
        "bench_float32": {"context": floats.context, "rows": floats.rows},
        "model": {"clock_mhz": MODEL_CLOCK_MHZ,
                  "measured_per_model": {name: {"shapes": len(of), "geometric_mean": _mean(of), "min": min(of), "max": max(of)}
                                         for name, of in errors.items()}},
    }
    path.write_text(json.dumps(written, indent=1) + "\n")
    if progress:
        wrong = sum(check["wrong_elements"] > 0 for check in checks)
        print(f"{path}: {len(checks) - wrong} of {len(checks)} exact products are right, {len(table.rows)} rows", file=sys.stderr)
    return written
