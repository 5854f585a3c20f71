#!/usr/bin/env bash
# Branches and lines that the tests pass through, with targets (coverage.py): unit tests, the corpora of the fuzz targets, and those lifecycle tests that
# reach what they do not. The build is the one with sanitizers; clang counts in the source's own terms, so there is no branch that a compiler has made.
# Usage: coverage.sh TREE BUILD [words for ctest…]: BUILD is made if it is not there, and what was counted in it before counts, too
set -euo pipefail
tree=$(cd "$1" && pwd)
mkdir -p "$2"
build=$(cd "$2" && pwd)
shift 2
tests='^(unit|fuzz)/|^check/(help|manual|completion)$|^lifecycle/embedded/(smoke|input|values|probe|boot|doctor|first_hour|launchd|listing|mcp|rollback|run|watch)$|^lifecycle/systemd/(smoke|listing)$|^real/systemd_backend$'

# What a process counts before it is killed, exits at once or becomes another program is not lost; what nobody passes through is not taken for passed.
control() {
	local planted=$build/planted said
	rm -rf "$planted" && mkdir "$planted"
	clang -O1 -fprofile-instr-generate="$planted/%m%c.profraw" -fprofile-update=atomic -fcoverage-mapping -mllvm -runtime-counter-relocation \
		"$tree/tests/check/planted/coverage.c" -o "$planted/planted"
	"$planted/planted"
	said=$(python3 -B "$tree/tests/check/coverage.py" "$tree" "$planted" --of "$planted/planted" choose)
	[ "$said" = 5/6 ] || { echo "coverage: control: 5 of 6 branches were taken, and $said is what was counted"; exit 1; }
}

grep -qs '^COVERAGE:BOOL=ON$' "$build/CMakeCache.txt" ||
	cmake -G Ninja -S "$tree" -B "$build" -DCMAKE_C_COMPILER=clang -DSANITIZE=ON -DCOVERAGE=ON -DMUST_WORK="${MUST_WORK:-0}" >/dev/null
ninja -C "$build" >"$build/coverage.log" || { tail -n 60 "$build/coverage.log"; exit 1; }
control
ctest --test-dir "$build" --output-on-failure --no-tests=error --repeat until-pass:3 -j "${JOBS:-$(($(nproc) * 2))}" -R "$tests" "$@"
exec python3 -B "$tree/tests/check/coverage.py" "$tree" "$build"
