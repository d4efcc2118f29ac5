# SPDX-License-Identifier: MIT
"""Paths that the dynamic linker takes as they are."""
import hashlib
import os
import tempfile

LOADED, PRELOADED = "$", " :$"  # what dlopen replaces ($LIB, $ORIGIN, $PLATFORM), and with it where LD_PRELOAD ends a name


def linked(path, special):
    """A file's path without special characters: through a link of this user's to its folder, where it has some."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(_link_to(folder, special) if _has(special, folder) else folder, name)


def _has(special, path):
    return any(character in path for character in special)


def _link_to(folder, special):
    places = [os.path.abspath(tempfile.gettempdir()), "/tmp", "/var/tmp", "/dev/shm"]
    place = next((place for place in places if not _has(special, place) and os.access(place, os.W_OK | os.X_OK)), None)
    if place is None:
        raise OSError(f"the dynamic linker cannot name {folder}, for one of the characters {special!r}, and there is nowhere to put a link to "
                      f"it: name a folder without these by TMPDIR, which is {places[0]}")
    link = os.path.join(place, f"hgemm-{os.getuid()}-{hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]}")
    try:
        os.symlink(folder, link)
    except FileExistsError:
        if os.lstat(link).st_uid != os.getuid() or os.readlink(link) != folder:
            raise FileExistsError(f"{link} is no link of yours to {folder}") from None
    return link
