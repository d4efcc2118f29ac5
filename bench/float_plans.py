# SPDX-License-Identifier: MIT
"""Plans of products of floats: what they take and what hgemm's cost model expects of them, beside cuBLAS's SGEMM. Needs PyTorch and a GPU.

    HGEMM_LIBRARY=LIBHGEMM.so python3 bench/float_plans.py OUT.json COMMIT [SECONDS] [all] [small | large]     in a clone

With `all`, every float kernel takes part, with k in several numbers of parts; else only hgemm's own choice. With `small`, only products whose
short k, or whose rows that are not aligned, leave tensor cores little to gain; with `large`, those of 128 rows and columns and more, for each
accuracy, by kernels for that, and with tails of tiles in parts.
"""
import sys
import time
from ctypes import byref, c_void_p, create_string_buffer

from float_calls import PlanInfo, _c, by_torch, errors, lib, open_gpu, product, random_shapes, write
from trains import medians_us

KERNELS = ["single_128x64", "single_32x64", "few_16x64", "few_64x16", "fma_64x64", "fma_32x32"]
LARGE = {"float32": ["single_128x64", "single_128x128"], "16bits": ["single_128x64", "single16_256x128"],
         "11bits": ["single_128x64", "single11_128x128"]}
BLOCK_K = {kernel: {"few": 128, "fma": 16}.get(kernel[:3], 32) for kernel in sum(LARGE.values(), KERNELS)}
SPLITS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)


def shapes():
    """m, n, k, transposes, batch, elements that rows are longer than they are wide."""
    for m in (1, 2, 4, 8, 16, 32, 64, 128, 256):
        yield from ((m, n, k, 0, 1, 1, 0) for n, k in ((4096, 4096), (11008, 4096), (4096, 11008)))
    yield from ((64, 64, 16384, 0, 0, 1, 0), (512, 512, 16384, 0, 0, 1, 0), (1, 4096, 4096, 0, 0, 1, 0), (16, 4096, 4096, 0, 0, 1, 0),
                (4096, 1, 4096, 0, 0, 1, 0), (4096, 1, 4096, 1, 0, 1, 0), (4096, 8, 4096, 0, 0, 1, 0), (4096, 16, 4096, 1, 1, 1, 0),
                (1, 4096, 4096, 0, 1, 1, 1), (8, 4096, 4096, 0, 0, 1, 1), (32, 4096, 4096, 0, 1, 1, 1), (1023, 1023, 1023, 0, 0, 1, 0),
                (1, 512, 512, 0, 1, 64, 0), (16, 128, 64, 0, 1, 96, 0), (8, 64, 2048, 0, 0, 96, 0), (64, 64, 64, 0, 1, 256, 0),
                (32, 4096, 4096, 0, 0, 1, 0), (48, 4096, 4096, 0, 1, 1, 0), (4096, 32, 4096, 0, 0, 1, 0), (1, 32000, 4096, 0, 1, 1, 0))
    yield from (shape + (0,) for shape in random_shapes())
    yield from ((s, s, s, 0, 0, 1, 0) for s in (128, 256, 512, 1024, 2048, 4096))
    yield from ((m, n, k, 0, 1, 1, 0) for m in (128, 512, 2048) for n, k in ((768, 768), (3072, 768), (768, 3072)))


def large_shapes():
    """The same."""
    yield from ((s, s, s, op_a, op_b, 1, 0) for s in (512, 768, 1024, 1536, 2048) for op_a, op_b in ((0, 0), (1, 1)))
    yield from ((s, s, s, 0, 1, 1, 0) for s in (1023, 1280, 2047, 3072, 3624, 4096))
    yield from ((m, n, k, 0, 1, 1, 0) for m in (128, 256, 512, 1024, 2048) for n, k in ((4096, 4096), (768, 3072), (3072, 768)))
    yield from ((m, n, k, 0, op_b, 1, 0) for m, n, k in ((512, 512, 16384), (1024, 1024, 4096), (1024, 1024, 2048), (4096, 1024, 256), (4096, 4096, 512),
                                                         (8192, 2048, 128), (256, 8192, 2048), (1536, 6144, 1024), (640, 640, 8192)) for op_b in (0, 1))
    yield from ((m, n, k, 1, 0, 1, 0) for m, n, k in ((808, 4200, 1168), (837, 3632, 2194), (602, 5102, 2239), (1320, 4432, 296), (3424, 1600, 1080)))
    yield from ((s, s, k, 0, 0, batch, 0) for s, k, batch in ((256, 256, 32), (512, 512, 8), (384, 1024, 16), (1024, 256, 8)))


def plan_of(handle, desc, kernel, splits, mp=0):
    """A plan, its text and what it says; None where there is none. With `mp` multiprocessors only the tiles are cut that do not fill them."""
    plan, info, text = c_void_p(), PlanInfo(), create_string_buffer(768)
    desc.kernel = lib.hgemm_find_kernel(kernel.encode()) if kernel else 0
    if lib.hgemm_plan_create(byref(plan), handle, byref(desc)):
        return None
    lib.hgemm_plan_get_text(plan, text)
    lib.hgemm_plan_get_info(plan, byref(info))
    if splits > 1:
        part = -(-desc.k // splits)
        part = -(-part // BLOCK_K[kernel]) * BLOCK_K[kernel]
        own, whole = text.value.decode(), info.tiles // mp * mp if mp else 0
        lib.hgemm_plan_destroy(plan)
        if -(-desc.k // part) != splits or whole == info.tiles or (mp and not whole):
            return None
        if lib.hgemm_plan_from_text(byref(plan), handle, byref(desc), f"{own} whole {whole} splits {splits} k {part}".encode()):
            return None
        lib.hgemm_plan_get_text(plan, text)
        lib.hgemm_plan_get_info(plan, byref(info))
    return plan, text.value.decode(), info


def small_shapes():
    """The same."""
    for m, n in ((512, 512), (1024, 1024), (2048, 2048), (4096, 4096), (4096, 256), (16384, 64)):
        yield from ((m, n, k, op, op, 1, 0) for k in (16, 32, 64, 128, 192, 256, 384) for op in (0, 1))
    yield from ((s, s, k, 0, 1, batch, 0) for s, batch in ((32, 1024), (64, 256), (128, 128), (256, 32)) for k in (32, 64, 128, 256))
    yield from ((1792, 272, 248, 1, 1, 1, 0), (4024, 88, 72, 1, 0, 1, 0), (2872, 192, 128, 1, 0, 1, 0), (688, 800, 160, 0, 1, 1, 0), (16, 128, 64, 0, 1, 96, 0),
                (64, 1646, 1174, 1, 0, 1, 0), (144, 352, 136, 0, 1, 1, 0), (4096, 32, 4096, 0, 0, 1, 0), (749, 749, 749, 0, 1, 1, 0),
                (1, 4096, 4096, 0, 0, 1, 0), (4096, 1, 4096, 1, 0, 1, 0), (1, 512, 512, 0, 1, 64, 0), (128, 2893, 6680, 0, 0, 1, 0))
    for m in (1, 4, 16, 32, 64, 128):
        yield from ((m, 4096, 4096, 0, op_b, 1, 1) for op_b in (0, 1))
        yield from ((m, n, k, 0, 1, 1, 0) for n, k in ((4095, 4096), (4096, 4095)))
    yield from ((s, s, s, 0, op_b, 1, 0) for s in (255, 511, 1023) for op_b in (0, 1))


def measure(handle, with_all, shape, level, mp):
    desc, x, y, d = product(*shape)
    m, n, k, batch = *shape[:3], shape[5]
    desc.accuracy = _c.ACCURACY[level or "float32"]
    plans = [("auto", plan_of(handle, desc, None, 1))]
    for kernel in LARGE[level] if level and with_all else []:
        plans += [(kernel, plan_of(handle, desc, kernel, splits)) for splits in SPLITS[:9] if splits == 1 or (m * n * batch * splits < 300 * 128 * 128 and k // splits >= 64)]
        plans += [(kernel, plan_of(handle, desc, kernel, splits, mp)) for splits in (2, 3, 4, 8) if batch == 1 and k // splits >= 64]
    if with_all and not level:
        for kernel in KERNELS:
            if kernel.startswith("few") and (m if kernel == "few_16x64" else n) > 32 and k > 512 and shape[6] == n % 4 == k % 4 == 0:
                continue
            plans += [(kernel, plan_of(handle, desc, kernel, splits)) for splits in SPLITS if splits == 1 or k // splits >= 2 * BLOCK_K[kernel]
                      and (kernel != "few_16x64" or n * batch * splits < 64 * 132 * 5) and (kernel != "few_64x16" or m * batch * splits < 64 * 132 * 5)]
    plans = [(name, plan) for name, plan in plans if plan]

    def run_plan(plan, kernel):  # a plan is for the call that it was made for, the kernel included
        number = lib.hgemm_find_kernel(kernel.encode()) if kernel != "auto" else 0

        def run():
            desc.kernel = number
            _c.check(lib.hgemm_plan_run(plan, handle, byref(desc)), handle)
        return run

    runs = [by_torch(x, y, d)] + [run_plan(plan[0], name) for name, plan in plans]
    found = []
    for run in runs:
        d.fill_(float("nan"))
        run()
        found.append(errors(d[0], x[0], y[0]))
    us = medians_us(dict(enumerate(runs)), 3 if with_all else 5)
    rows = []
    for i, (name, (plan, text, info)) in enumerate(plans):
        rows.append({"kernel": name, "plan": text.split(": ")[-1][-70:], "splits": info.splits, "us": round(us[i + 1], 2),
                     "expected_us": round(info.seconds * 1e6, 2), "rms": found[i + 1][0], "worst_units": round(found[i + 1][1], 2)})
        lib.hgemm_plan_destroy(plan)
    return {"m": m, "n": n, "k": k, **({"accuracy": level} if level else {}), "op": "nt"[shape[3]] + "nt"[shape[4]], "batch": batch, "pad": shape[6], "sgemm_us": round(us[0], 2),
            "sgemm_rms": found[0][0], "plans": rows}


def main():
    handle, info = open_gpu()
    arguments = sys.argv[3:]
    seconds = next((float(word) for word in arguments if word[0].isdigit()), 1e9)
    stop, rows = time.time() + seconds, []
    asked = small_shapes() if "small" in arguments else shapes()
    problems = [(shape, level) for shape in large_shapes() for level in LARGE] if "large" in arguments else [(shape, None) for shape in asked]
    for shape, level in problems:
        if time.time() > stop:
            print("stopped for time")
            break
        try:
            rows.append(measure(handle, "all" in arguments, shape, level, info.multiprocessors))
        except Exception as error:
            print(shape, error, flush=True)
            continue
        row = rows[-1]
        auto, best = row["plans"][0], min(row["plans"], key=lambda plan: plan["us"])
        print(f"{row['m']}x{row['n']}x{row['k']} {row.get('accuracy', '')} {row['op']} b{row['batch']} pad {row['pad']}: sgemm {row['sgemm_us']} auto {auto['us']} "
              f"({row['sgemm_us'] / auto['us']:.2f}, expected {auto['expected_us']}) {auto['plan'][-45:]} | best {best['us']} {best['kernel']} k/{best['splits']}"
              f" | rms {auto['rms']:.2g} {row['sgemm_rms']:.2g}", flush=True)
    write(sys.argv[1], rows, info, sys.argv[2], "single few fma selection",
          "Products of floats, us: hgemm's choice (auto), other plans, and cuBLAS's SGEMM (torch.mm) in turns, medians of trains of launches that "
          "wait until they are enqueued.")


if __name__ == "__main__":
    main()
