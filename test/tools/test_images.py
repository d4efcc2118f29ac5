#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tools/evidence/images.py: what changes the hashes of an image, and what does not. The argument is an image."""
import pathlib
import re
import struct
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
from evidence import images  # noqa: E402

IMAGE = pathlib.Path(sys.argv.pop(1)).read_bytes()
WALK = ("4", "1")
T4, NEWER = images.hashes(IMAGE, WALK)


def parts():
    """[(header, content)] of the image: the cubin, the PTX."""
    at, found = 16, []
    while at < len(IMAGE):
        head, size = struct.unpack_from("<IQ", IMAGE, at + 4)
        found.append((IMAGE[at:at + head], IMAGE[at + head:at + head + size]))
        at += head + size
    return found


def image_of(cubin, ptx):
    (head, _), (head_ptx, _) = parts()
    pieces = [IMAGE[:16]]
    for before, content in ((head, cubin), (head_ptx, ptx)):
        pieces += [before[:8], struct.pack("<Q", len(content)), before[16:], content]
    return b"".join(pieces)


CUBIN, PTX = (content for _, content in parts())


def flipped(name, at=0x20):
    """The cubin with another bit in the section of that name."""
    table, = struct.unpack_from("<Q", CUBIN, 0x28)
    count, of_names = struct.unpack_from("<HH", CUBIN, 0x3c)
    sections = [struct.unpack_from("<IIQQQQ", CUBIN, table + 64 * i) for i in range(count)]
    (place,) = [where for key, _, _, _, where, _ in sections if CUBIN[sections[of_names][4] + key:].split(b"\0")[0] == name]
    changed = bytearray(CUBIN)
    changed[place + at] ^= 1
    return bytes(changed)


class Hashes(unittest.TestCase):
    def test_an_image_that_is_put_together_anew_is_the_same(self):
        self.assertEqual(image_of(CUBIN, PTX), IMAGE)

    def test_an_instruction_is_of_those_who_run_it(self):
        on_t4, newer = images.hashes(image_of(flipped(b".text.k1_tiled_nn"), PTX), WALK)
        self.assertTrue(on_t4 != T4 and newer == NEWER)
        (mma, *_) = re.findall(rb"mma\.sync[^;]*;", PTX)
        on_t4, newer = images.hashes(image_of(CUBIN, PTX.replace(mma, b"", 1)), WALK)
        self.assertTrue(on_t4 == T4 and newer != NEWER)

    def test_parameters_and_registers_count(self):
        self.assertNotEqual(images.hashes(image_of(flipped(b".nv.info.k1_tiled_nn"), PTX), WALK)[0], T4)
        self.assertNotEqual(images.hashes(image_of(CUBIN, PTX.replace(b".maxntid", b".minnctapersm 1\n.maxntid")), WALK)[1], NEWER)

    def test_what_no_gpu_reads_does_not(self):
        for name in (b".note.nv.tkinfo", b".debug_frame", b".strtab"):
            self.assertEqual(images.hashes(image_of(flipped(name), PTX), WALK), (T4, NEWER), name)
        lines = PTX.replace(b"\n{", b"\n// of /home/who/k.cu\n\n   {", 1).replace(b"ret;", b"\n.loc 1 7 3\nret; // the end", 1)
        lines = lines.rstrip(b"\0") + b'.file 1 "/home/who/k.cu"\n.section .debug_str\n{\n.b8 47\n}\n\0\0'
        self.assertEqual(images.hashes(image_of(CUBIN, lines), WALK), (T4, NEWER))

    def test_the_rows_that_are_walked_together_count_where_they_are(self):
        on_t4, newer = images.hashes(IMAGE, ("2", "1"))
        self.assertTrue(on_t4 != T4 and newer == NEWER)
        on_t4, newer = images.hashes(IMAGE, ("4", "2"))
        self.assertTrue(on_t4 == T4 and newer != NEWER)
        self.assertEqual(images.rows()["single16_256x128"][0], "single")
        self.assertNotEqual(*images.rows()["single16_256x128"][1])

    def test_a_kernel_is_told_from_its_variants(self):
        for symbol, kernel in (("k5_64x64_f32_nt_any_bf16", "k5_64x64_f32"), ("weights_teams_64x128_nt_packed", "weights_teams_64x128"),
                               ("thin_8x8_tt", "thin_8x8"), ("pack_weights", "pack_weights"), ("ceiling_f16", "ceiling_f16")):
            self.assertEqual(images.kernel_of(symbol), kernel)
        self.assertEqual({images.kernel_of(symbol) for symbol in images.listed()} & images.rows().keys(), images.rows().keys())


if __name__ == "__main__":
    unittest.main()
