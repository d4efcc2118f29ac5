#!/bin/sh
# SPDX-License-Identifier: MIT
#
# gate.sh TURING PROGRAM STATIC - the exit statuses and files of turing exec, with PROGRAM (runtime.cu) and a program that
# NVIDIA's runtime is linked into.
set -u
turing=$1 program=$2 static=$3
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
bad=0

# gives STATUS COMMAND...: its words are in $work/said
gives() {
    wanted=$1
    shift
    "$@" >"$work/said" 2>&1
    status=$?
    [ "$status" -eq "$wanted" ] || { echo "$*: status $status, not $wanted"; cat "$work/said"; bad=1; }
}
says() { grep -q -- "$1" "$work/said" || { echo "nothing says $1:"; cat "$work/said"; bad=1; }; }
silent() { ! grep -q -- "$1" "$work/said" || { echo "something says $1:"; cat "$work/said"; bad=1; }; }

gives 7 "$turing" exec sh -c 'exit 7'
gives 143 "$turing" exec sh -c 'kill -TERM $$'
gives 0 "$turing" exec --check "$program"
# shellcheck disable=SC2016 # for sh -c
# A program that ignores its errors, and one that ends by another status.
gives 99 "$turing" exec --check sh -c '"$0" race; exit 0' "$program"
says 'cudaErrorLaunchFailure'
# shellcheck disable=SC2016
gives 99 "$turing" exec --check sh -c '"$0" race; exit 5' "$program"
# What is found is no error to the program, which goes on.
gives 99 "$turing" exec --check --keep-going --write-allow "$work/allow" --junit "$work/junit" "$program" race
silent cudaError
says 'turing: race:'
grep -q '^race	_Z7reverse[^	]*	runtime\.cu:[0-9]*$' "$work/allow" || { echo "no race is listed"; cat "$work/allow"; bad=1; }
python3 - "$work/junit" <<'EOF' || bad=1
import sys, xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1]).getroot()
failed = [case for case in suite.iter("testcase") if case.find("failure") is not None]
assert failed and len(failed) == int(suite.get("failures")), (len(failed), suite.attrib)
assert any(case.get("name").startswith("race, _Z7reverse") for case in failed), [case.attrib for case in failed]
EOF
# All of it is allowed; then one line is not; then a list that is none.
gives 0 "$turing" exec --check --allow "$work/allow" "$program" race
silent 'turing: race:'
says '0 found'
sed 's/runtime\.cu:[0-9]*/runtime.cu:1/' "$work/allow" >"$work/other"
gives 99 "$turing" exec --check --allow "$work/other" "$program" race
gives 99 "$turing" exec --check --allow "$work/allow" "$program" bounds
gives 2 "$turing" exec --check --allow "$work/nowhere" "$program"
# NVIDIA's own runtime cannot run here.
gives 2 "$turing" exec "$static"
says 'link with nvcc -cudart shared'
gives 2 "$turing" exec --nothing "$program"
gives 0 "$turing" exec --help
says --write-allow
exit $bad
