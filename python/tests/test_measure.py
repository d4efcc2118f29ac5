# SPDX-License-Identifier: MIT
"""info, bench and report, on a device that is not timed; and what they compute from times, on times that are made up."""
import json
import pathlib
import warnings

import numpy as np
import pytest

import hgemm
from hgemm import _c, _device, _measure


def test_info():
    about = hgemm.info()
    assert about["hgemm"] == hgemm.__version__ and about["kind"] in str(about)
    assert about["emulated"] and not about["is a T4"] and about["compute capability"] == "7.5"


def test_predictions_are_what_pages_show(monkeypatch):
    tools = pathlib.Path(__file__).parents[2] / "tools"
    monkeypatch.syspath_prepend(str(tools))
    import results
    assert set(results.APART) == set(_measure._APART)
    shown = 0
    for (shape, kernel, accumulate), us in hgemm.predictions().items():
        name = kernel + ("_f32" if kernel == "auto" and accumulate == "float32" else "")
        rows, _ = results.newest("t4model", f"{shape} nn row", name)
        shown += bool(rows)
        assert not rows or rows[name]["median_us"] == us, (shape, kernel, accumulate)
    assert shown > 50


def test_bench_times_nothing_on_an_emulated_device(capsys, tmp_path):
    table = hgemm.bench(["16", "24x8x40"], kernels="ladder")
    assert [(row["shape"], row["kernel"], row["accumulate"]) for row in table.rows] == [
        (shape, *key) for shape in ("16x16x16", "24x8x40")
        for key in [(name, "float16") for name in _measure.LADDER] + [("auto", "float32")]]
    assert all(row["us"] is None and 0 <= row["relative_error"] < 2e-3 for row in table.rows)
    assert "not timed" in str(table) and "TFLOPS" not in str(table)
    assert capsys.readouterr().err == "[1/2] 16x16x16\n[2/2] 24x8x40\n"
    assert {row["shape"] for row in hgemm.bench("16", progress=False).rows} == {"16x16x16"}
    assert {row["kernel"] for row in hgemm.bench("17", kernels="ladder", progress=False).rows} == {"auto"}  # rows are not aligned
    with pytest.raises(hgemm.NotSupportedError):
        hgemm.bench("17", kernels="k1_tiled", progress=False)
    for fault in ("1x2", [0], ["ten"], ["1x2x3x4"]):
        with pytest.raises(ValueError):
            hgemm.bench(fault, progress=False)
    with pytest.raises(ValueError, match="kernels: none is called"):
        hgemm.bench(["16"], kernels="k9")


def test_bench_of_float32():
    table = hgemm.bench("16", dtype="float32", progress=False)
    assert [(row["kernel"], row["accumulate"], row["model_us"]) for row in table.rows] == [("auto", "float32", None)]
    assert 0 < table.rows[0]["relative_error"] < 1e-6 and table.context["dtype"] == "float32"
    for options in ({"dtype": "float64"}, {"dtype": "float32", "kernels": "ladder"}, {"dtype": "float32", "accumulate": "float16"}):
        with pytest.raises(ValueError, match="dtype: "):
            hgemm.bench("16", progress=False, **options)


def test_a_wrong_product_shows(monkeypatch):
    def wrong(a, b, out, **options):
        out.copy_from(np.zeros(out.shape, np.float16))
    monkeypatch.setattr(_measure, "matmul", wrong)
    assert hgemm.bench(["16"], progress=False).rows[0]["relative_error"] == 1


def test_predictions_are_the_models():
    found = _measure.predictions()
    assert found["1024x1024x1024", "auto", "float16"] < found["1024x1024x1024", "k1_tiled", "float16"]
    assert ("1024x1024x1024", "auto", "float32") in found and ("1x4096x4096", "auto", "float16") in found
    shown = _measure.predictions(events=True)
    assert shown.keys() == found.keys() and all(2 < us - found[key] < 60 for key, us in shown.items())
    assert not any("plan" in kernel or "cutlass" in kernel for _, kernel, _ in found)


def test_arithmetic_of_a_row():
    timed = {"us": [40.0, 50.0, 60.0], "error": 1e-3}
    row = _measure._row("100x100x100", "auto", "float16", timed, 2e-6 * 100**3, {("100x100x100", "auto", "float16"): 25.0},
                        {"us": [100.0], "error": 0})
    assert row["us"] == 50 and row["tflops"] == pytest.approx(0.04) and row["percent_torch"] == 200
    assert row["measured_per_model"] == 2 and row["model_tflops"] == pytest.approx(0.08)
    table = _measure.Bench({"device": "made up", "timing": "measured"}, [row])
    assert "2.00" in str(table) and "200" in str(table)
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    assert len(table.plot().axes[0].patches) == 1


def test_report(tmp_path):
    path = tmp_path / "report.json"
    written = hgemm.report(path, shapes=["16"], progress=False)
    assert json.loads(path.read_text()) == json.loads(json.dumps(written))
    assert len(written["exact_products"]) == 15 and not any(check["wrong_elements"] for check in written["exact_products"])
    assert written["device"]["emulated"] and written["hgemm"]["version"] == hgemm.__version__ and "gpu" in written
    assert len(written["bench"]["rows"]) == 6 and len(written["bench_float32"]["rows"]) == 1 and written["model"]["measured_per_model"] == {}


def test_a_report_that_cannot_be_written_is_not_measured(tmp_path, monkeypatch):
    monkeypatch.setattr(_measure, "bench", lambda *arguments, **options: pytest.fail("it was measured"))
    monkeypatch.setattr(_measure, "_checks", lambda: pytest.fail("it was checked"))
    for path in (tmp_path, tmp_path / "none" / "report.json"):
        with pytest.raises(OSError):
            hgemm.report(path)
    former = tmp_path / "report.json"
    former.write_text("former")
    with pytest.raises(pytest.fail.Exception):
        hgemm.report(former)
    with pytest.raises(pytest.fail.Exception):
        hgemm.report(str(tmp_path / "new.json"))
    assert former.read_text() == "former" and list(tmp_path.iterdir()) == [former]


def test_a_fallback_is_said(monkeypatch):
    with pytest.warns(UserWarning, match="an emulated T4: the driver is too old"):
        info = _c.DeviceInfo(kind=b"t4emu", fallback=b"the driver is too old")
        monkeypatch.setattr(_device.Handle, "info", lambda self: info)
        monkeypatch.setattr(_device, "_handles", {})
        _device.handle_for("t4emu")


def test_a_fallback_is_said_once(monkeypatch):
    """As an error, too: the handle is kept, and what comes next is computed."""
    info = _c.DeviceInfo(kind=b"t4emu", fallback=b"the driver is too old")
    monkeypatch.setattr(_device.Handle, "info", lambda self: info)
    monkeypatch.setattr(_device, "_handles", {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="an emulated T4"):
            _device.handle_for("t4emu")
        assert _device.handle_for("t4emu") is _device.handle_for("t4emu")


@pytest.mark.parametrize("repetitions", (0, -1, 1.5, None))
def test_repetitions_are_counted_from_1(repetitions):
    with pytest.raises(ValueError, match="repetitions: .* is no number from 1 on"):
        hgemm.bench("64", repetitions=repetitions, progress=False)
