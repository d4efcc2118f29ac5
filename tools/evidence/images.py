# SPDX-License-Identifier: MIT
"""What images are, by hashes of their code: images.txt lists today's, and a file of results carries the hashes of those that it timed.

An image has two hashes. The first is of what a T4 runs: of the cubin those sections that become machine code, constants, and memory
(CODE), without notes, symbols and what debuggers read. The second is of what a newer GPU's driver compiles: the PTX without
blanks, comments and lines of sources. Neither has a path or a compiler's name in it, so that another folder, and options such as
-lineinfo, change none. One thing that decides how fast a kernel is lies in no code: how many rows of tiles are walked together, the
table's column WALK, which the host turns into arguments. Either hash has it, too.
"""
import functools
import hashlib
import json
import os
import pathlib
import re
import struct
import subprocess

from results import ROOT

LIST = "tools/evidence/images.txt"
HEAD = """\
# The hashes of all images: source, symbol, what a T4 runs, what newer GPUs compile (tools/evidence/images.py).
# Written by tools/images.py; compiled by nvcc {}.
"""
CODE = re.compile(rb"\.(rela?\.)?(text|nv\.(info\.|constant|shared|global|local))")  # .nv.info alone has numbers of symbols
ELF, PTX, NO_BITS = 2, 1, 8  # kinds in a fatbin; a section's type


def digest(*pieces):
    return hashlib.sha256(b"\n".join(pieces)).hexdigest()[:12]


def code_of_cubin(cubin):
    """The sections of an ELF file that a GPU loads: name, size, registers of a thread (a text's), and content, where there is one."""
    table, = struct.unpack_from("<Q", cubin, 0x28)
    count, of_names = struct.unpack_from("<HH", cubin, 0x3c)
    sections = [struct.unpack_from("<IIQQQQII", cubin, table + 64 * i) for i in range(count)]
    names = sections[of_names][4]
    for name, kind, _, _, at, size, _, info in sections:
        name = cubin[names + name:cubin.index(b"\0", names + name)]
        if CODE.match(name):
            yield name + b" %d %d " % (size, info >> 24) + (b"" if kind == NO_BITS else cubin[at:at + size])


def code_of_ptx(text):
    lines = (line.split(b"//")[0].strip() for line in text.rstrip(b"\0").split(b"\n.section")[0].splitlines())
    return b"\n".join(line for line in lines if line and not re.match(rb"\.(loc|file)\b", line))


def hashes(fatbin, walk):
    """(what a T4 runs, what newer GPUs compile) of an image's bytes; `walk` are the rows of tiles that either walks together."""
    at, found = struct.unpack_from("<H", fatbin, 6)[0], {}
    while at < len(fatbin):
        kind, _, head, size = struct.unpack_from("<HHIQ", fatbin, at)
        found[kind] = fatbin[at + head:at + head + size]
        at += head + size
    return digest(*code_of_cubin(found[ELF]), walk[0].encode()), digest(code_of_ptx(found[PTX]), walk[1].encode())


@functools.cache
def rows():
    """{kernel: (its source, rows of tiles that are walked together (on a T4, on newer GPUs))} of the table."""
    row = "#define HGEMM_KERNEL(rung, name, columns, ...) [#rung, #name, #columns, #__VA_ARGS__],"
    command = [os.environ.get("CC", "cc"), "-E", "-P", "-x", "c", f"-I{ROOT / 'src' / 'table'}", "-"]
    text = subprocess.run(command, input=f'{row}\n[\n#include "kernels.def"\nnull]\n', check=True, capture_output=True, text=True).stdout

    def walk(*texts):
        return next((found[1] for text in texts if (found := re.search(r"\bWALK\((\d+)", text))), "")
    return {kernel: (source, (walk(on_t4, columns), walk(columns))) for source, kernel, columns, on_t4 in json.loads(text)[:-1]}


def kernel_of(symbol):
    """A variant's kernel; an image of no row is its own."""
    return re.sub(r"_(nn|nt|tn|tt)(_[a-z]\w*)?$", "", symbol)


def parsed(text):
    """{symbol: (source, hash on a T4, hash on newer GPUs)} of a list."""
    return {symbol: (source, on_t4, newer) for source, symbol, on_t4, newer in (line.split() for line in text.splitlines() if line[:1] != "#")}


def written(found, nvcc):
    """A list's text."""
    return HEAD.format(nvcc) + "".join(f"{source} {symbol} {on_t4} {newer}\n" for symbol, (source, on_t4, newer) in sorted(found.items()))


def listed():
    return parsed((ROOT / LIST).read_text())


def nvcc_listed():
    return re.search(r"by nvcc ([\d.]+)\.$", (ROOT / LIST).read_text(), re.M)[1]


def compiled(build):
    """(the same of a build, whether it has all images, the version of nvcc that compiled them)."""
    cache = (build / "CMakeCache.txt").read_text()
    given, kernels = (re.search(rf"^{name}:\w+=(.*)$", cache, re.M)[1] for name in ("HGEMM_IMAGE_DIR", "HGEMM_KERNELS"))
    folder, found = pathlib.Path(given or build / "kernels"), {}
    lists = [path for path in (build / "images.c.list", build / "bench" / "bench_images.c.list") if path.exists()]  # cmake/kernels.cmake
    for symbol in (line.split()[-1] for path in lists for line in path.read_text().splitlines()):
        source, walk = rows().get(kernel_of(symbol), (symbol, ("", "")))
        found[symbol] = (source, *hashes((folder / f"{symbol}.fatbin").read_bytes(), walk))
    return found, kernels == ".*" and len(lists) == 2, (folder / "nvcc_version").read_text().strip()
