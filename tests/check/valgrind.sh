#!/usr/bin/env bash
# The unit tests of what parses and decides, and the corpora of the fuzz targets, below valgrind memcheck: it sees reads of what was never written, which
# the sanitizers do not. Tests of processes, mounts and races are left out: valgrind 3.19 knows neither openat2 nor pidfd_open and is too slow for races.
# Usage: valgrind.sh TREE BUILD
set -uo pipefail
tree=$(cd "$1" && pwd)
build=$(cd "$2" && pwd)
units=(floor homes http ini json jsonrpc keeper_message keeper_table launchd_print logfile model_memory name plane port record scratch service
	temp text unit_map unit_plist unit_template unit_text)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/valgrind.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
export TEST_PROGRAMS=$build/tests/programs TEST_SOURCE=$tree KIROCREW_POD_BIN=$build/kirocrew-pod

below() {
	valgrind --quiet --error-exitcode=99 --leak-check=full --show-leak-kinds=definite --errors-for-leak-kinds=definite "$@"
}
one() { # NAME, command…: what it said is printed if it failed
	local name=$1
	shift
	below "$@" >"$scratch/$name" 2>&1 || { grep -v "^--" "$scratch/$name"; echo "valgrind: $name"; return 1; }
}
export -f below one
export scratch

gcc -g -O0 "$tree/tests/check/planted/valgrind.c" -o "$scratch/planted" || exit 1
if below "$scratch/planted" 2>"$scratch/said" || ! grep -q 'depends on uninitialised' "$scratch/said"; then
	echo "control: valgrind did not find what was planted:"
	cat "$scratch/said"
	exit 1
fi

for unit in "${units[@]}"; do
	printf 'one %q %q\0' "unit/$unit" "$build/tests/unit_test_$unit"
done >"$scratch/jobs"
mkdir "$scratch/unit" "$scratch/fuzz"
for corpus in "$tree"/tests/fuzz/corpus/*/; do
	target=$(basename "$corpus")
	printf 'one %q %q %q\0' "fuzz/$target" "$build/tests/fuzz/fuzz_$target" "$corpus"
done >>"$scratch/jobs"
xargs -0 -P "$(nproc)" -n 1 bash -c 'eval "$0"' <"$scratch/jobs" || exit 1
echo "valgrind: $(tr -dc '\0' <"$scratch/jobs" | wc -c) programs, and the planted fault was found"
