#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Times the first use of hgemm on a machine without CUDA, a compiler or Python packages: a folder that debootstrap fills
# with Debian 12, Python and git. As root; needs debootstrap and the network.
#
#   tools/clean_root.sh FOLDER WHEEL [PART]...
#
# FOLDER is made, unless it is there, and stays. WHEEL is of python/wheel.sh. PART, default all:
#   numpy      the wheel, numpy and a product on the emulated T4
#   notebook   the wheel, Jupyter, and examples/colab.ipynb executed on the emulated T4
#   preload    the wheel, torch, and a program of torch's behind the cuBLAS door; without a GPU that takes nothing
#   c          tools/run.sh in a clone of what is committed here
# Prints for each how many seconds it took, and how many of a processor; ends with 1 where one fails.
set -eu
case ${1:-} in
    -h | --help) sed -n '4,/^set /s/^# \{0,1\}//p' "$0"; exit 0 ;;
esac
refuse() { echo "clean_root: $1. Try --help." >&2; exit 2; }
case ${1:-} in
    '') refuse "needs a folder and a wheel" ;;
    -*) refuse "takes no $1" ;;
esac
[ -f "${2:-}" ] || refuse "needs a wheel; '${2:-}' is none"
here=$(cd "$(dirname "$0")/.." && pwd)
folder=$1 wheel=$2
shift 2
[ $# -gt 0 ] || set -- numpy notebook preload c

if [ ! -x "$folder/usr/bin/python3" ]; then
    debootstrap --variant=minbase --include=ca-certificates,git,python3,python3-venv bookworm "$folder" >&2
fi
root=$(cd "$folder" && pwd)
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" # of a network that has authorities of its own
for place in proc dev; do mkdir -p "$root/$place" && mount --bind "/$place" "$root/$place"; done
trap 'umount "$root/proc" "$root/dev"' EXIT

inside() { chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 sh -euc "cd /root/$part; $1"; }
# Sets `spent`: the processor's seconds of all commands so far. (A subshell would have its own.)
measure() { times >"$root/root/times"; spent=$(awk -F '[ms ]+' 'END { printf "%d", 60 * ($1 + $3) + $2 + $4 }' "$root/root/times"); }
for part in "$@"; do
    rm -rf "$root/root/$part"
    mkdir -p "$root/root/$part"
    cp "$wheel" "$here/examples/colab.ipynb" "$root/root/$part"
    # shellcheck disable=SC2016 # it expands in the root
    venv='python3 -m venv venv; PATH=$PWD/venv/bin:$PATH; pip install -q hgemm-*.whl'
    case $part in
        numpy) command="$venv; python -c 'import hgemm, numpy as np; print(hgemm.matmul(np.ones((64, 128), np.float16), np.ones((128, 32), np.float16)))'" ;;
        notebook) command="$venv matplotlib nbconvert ipykernel; jupyter nbconvert --to notebook --execute --output done.ipynb colab.ipynb; ls -l hgemm_report.json" ;;
        preload) command="$venv torch; HGEMM_CUBLAS_SUMMARY=1 python -m hgemm.cublas -c 'import torch; a = torch.ones(64, 64).half(); print(a @ a)'" ;;
        c) git clone -q "$here" "$root/root/c/a clone" && command="cd 'a clone'; tools/run.sh" ;;
        *) refuse "no part is called $part" ;;
    esac
    measure
    began=$(date +%s) before=$spent
    inside "$command" >"$root/root/$part/log" 2>&1 || { tail -n 20 "$root/root/$part/log" >&2; echo "FAILED: $part"; exit 1; }
    measure
    echo "$part: $(($(date +%s) - began)) s, $((spent - before)) s of a processor"
done
