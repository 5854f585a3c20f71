#!/usr/bin/env bash
# Every fuzz target for a while, each from its corpus: tests/fuzz/run.sh TREE BUILD-DIRECTORY [SECONDS]. Builds them with clang, libFuzzer and the
# sanitizers. What a target finds is kept in BUILD-DIRECTORY/found, and is to become a file of its corpus. A planted fault must be found first.
set -euo pipefail
tree=$1 build=$2 seconds=${3:-60}
names=()
for source in "$tree"/tests/fuzz/fuzz_*.c; do
	name=${source##*/fuzz_}
	names+=("${name%.c}")
done
mkdir -p "$build/found"
cmake -G Ninja -S "$tree" -B "$build" -DCMAKE_C_COMPILER=clang -DFUZZ=ON >"$build/log" 2>&1 && ninja -C "$build" "${names[@]/#/fuzz_}" >>"$build/log" 2>&1 ||
	{ tail -n 40 "$build/log"; exit 1; }
clang -g -fsanitize=fuzzer,address "$tree/tests/check/planted/fuzz.c" -o "$build/planted"
if "$build/planted" -max_total_time=60 -artifact_prefix="$build/planted-" >"$build/planted.log" 2>&1 || ! grep -q heap-buffer-overflow "$build/planted.log"; then
	echo "fuzz: the planted fault was not found"
	exit 1
fi

status=0
for name in "${names[@]}"; do
	mkdir -p "$build/inputs/$name"
	"$build/tests/fuzz/fuzz_$name" -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="$build/found/$name-" \
		"$build/inputs/$name" "$tree/tests/fuzz/corpus/$name" >"$build/$name.log" 2>&1 || { tail -n 40 "$build/$name.log"; status=1; }
	executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$name.log")
	printf 'fuzz %-16s %10s executions\n' "$name" "${executed:-none}"
	[ "${executed:-0}" -gt 0 ] || status=1
done
exit $status
