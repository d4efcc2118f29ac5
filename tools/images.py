#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tools/evidence/images.txt, the hashes of all images, from a build: commit it together with what changed them.

    tools/images.py [BUILD]            default: build/release. A build of some kernels (HGEMM_KERNELS) changes their lines alone
    tools/images.py --check [BUILD]    changes nothing; names the images that are others, and exits with 1 if there are any, or with 77 if
                                       the list is of another nvcc, which makes other code of the same sources
"""
import argparse
import pathlib
import sys

from evidence import images
from results import ROOT


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--check", action="store_true", help="change nothing")
    options = parser.parse_args()
    before, (found, is_whole, nvcc) = images.listed(), images.compiled(options.build)
    if options.check and nvcc != images.nvcc_listed():
        print(f"{options.build} was compiled by nvcc {nvcc}, {images.LIST} is of {images.nvcc_listed()}: not compared")
        sys.exit(77)
    now = found if is_whole else before | found
    others = sorted(symbol for symbol in now.keys() | before.keys() if now.get(symbol) != before.get(symbol))
    for symbol in others:
        print(f"{symbol}: is not {'in the list' if symbol not in before else 'in the build' if symbol not in now else 'the code that is listed'}")
    if not options.check:
        (ROOT / images.LIST).write_text(images.written(now, nvcc))
    if others:
        print(f"{len(others)} of {len(now)} images: {'run tools/images.py, and commit what it writes' if options.check else 'rewritten'}")
    sys.exit(1 if others and options.check else 0)


if __name__ == "__main__":
    main()
