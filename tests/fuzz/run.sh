#!/usr/bin/env bash
# Every fuzz target for a while, each from its corpus, as many at once as there are processors: tests/fuzz/run.sh TREE BUILD-DIRECTORY [SECONDS].
# Builds them with clang, libFuzzer and the sanitizers. What a target finds is kept in BUILD-DIRECTORY/found, and is to become a file of its corpus.
# A planted fault must be found first.
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

# With what time nobody else wants: niceness counts within a session only (sched(7), autogroup).
idly() { setsid --wait setpriv --pdeathsig KILL bash -c '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec nice -n 19 "$@"' idly "$@"; }

fuzz() { # NAME
	mkdir -p "$build/inputs/$1"
	local status=0 executed
	idly "$build/tests/fuzz/fuzz_$1" -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="$build/found/$1-" \
		"$build/inputs/$1" "$tree/tests/fuzz/corpus/$1" >"$build/$1.log" 2>&1 || { tail -n 40 "$build/$1.log"; status=1; }
	executed=$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$1.log")
	printf 'fuzz %-16s %10s executions\n' "$1" "${executed:-none}"
	[ "${executed:-0}" -gt 0 ] || status=1
	return $status
}
export -f fuzz idly
export tree build seconds
printf '%s\0' "${names[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c 'fuzz "$1"' fuzz
