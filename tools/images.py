#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes tools/evidence/images.txt, the hashes of all images, from a build: commit it together with what changed them.

    tools/images.py [BUILD]            default: build/release. A build of some kernels (HGEMM_KERNELS) changes their lines alone
    tools/images.py --check [BUILD]    changes nothing; names the images that are others, and exits with 1 if there are any
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
    before = images.listed() if (ROOT / images.LIST).exists() else {}
    found, is_whole = images.compiled(options.build)
    now = found if is_whole else before | found
    others = sorted(symbol for symbol in now.keys() | before.keys() if now.get(symbol) != before.get(symbol))
    if others and not options.check:
        (ROOT / images.LIST).write_text(images.HEAD + "".join(f"{' '.join([of[0], symbol, *of[1:]])}\n" for symbol, of in sorted(now.items())))
    for symbol in others:
        print(f"{symbol}: {'not in the list' if symbol not in before else 'not in the build' if symbol not in now else 'is other code than'}"
              f"{' listed' if symbol in before and symbol in now else ''}")
    if others:
        print(f"{len(others)} of {len(now)} images: {'run tools/images.py, and commit what it writes' if options.check else 'rewritten'}")
    sys.exit(1 if others and options.check else 0)


if __name__ == "__main__":
    main()
