#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How far the timing model's times move with its constants, each changed by itself to another value that is published or plausible.

    tools/sensitivity.py BENCH_HGEMM OUT.json [--jobs N]      about two minutes of one core

docs/emulator.md shows the table (tools/report.py).
"""
import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import tempfile

CHANGES = ("", "dram_rate=150.94", "dram_latency=320", "dram_open=0", "barrier=40", "shared_latency=23", "block=1200", "wave=2.2", "queue=3",
           "l2_hit=236", "port=32")
PRODUCTS = (("^auto$", "1024"), ("^auto$", "2048"), ("^auto$", "16x4096x4096"), ("^k1_tiled$", "1024"), ("^k4_fastindex$", "1024"))


def run(bench, change, kernel, shape):
    """bench_hgemm's file for a product with a constant changed."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "one.json"
        command = [bench, "--device", "t4emu:time,dry", "--peers", "none", "--reps", "1", "--kernel", kernel, "--format", "json", "--out", out, shape]
        subprocess.run([*command, *(["--clock", change] if change else [])], check=True, capture_output=True)
        return json.loads(out.read_text())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    asked = [(change, *product) for change in CHANGES for product in PRODUCTS]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        files = list(pool.map(lambda one: run(options.bench, *one), asked))
    rows = [{"problem": row["problem"], "kernel": row["kernel"], "note": row.get("note", ""), "images": row["images"], "change": change, "median_us": row["median_us"]}
            for (change, _, _), file in zip(asked, files) for row in file["results"]]
    lines = ",\n".join(map(json.dumps, rows))
    options.out.write_text(f'{{\n"context": {json.dumps(files[0]["context"], indent=2)},\n"results": [\n{lines}\n]\n}}\n')


if __name__ == "__main__":
    main()
