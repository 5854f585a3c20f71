#!/usr/bin/env bash
# Looks at the tool's code without running it: gcc -fanalyzer, cppcheck, clang-tidy (.clang-tidy). Each must find what is planted for it.
# Usage: static.sh TREE BUILD: BUILD is made
set -uo pipefail
tree=$(cd "$1" && pwd)
mkdir -p "$2"
build=$(cd "$2" && pwd)
planted=$tree/tests/check/planted/static.c
failed=0

fault() {
	echo "static: $*"
	failed=1
}
# finds TOOL WORDS…: the tool fails over the planted file, in these words
finds() {
	local tool=$1 said
	shift
	said=$("$tool" "$planted" 2>&1) && fault "control: $tool found no fault in $planted"
	for words; do
		grep -qF -- "$words" <<<"$said" || fault "control: $tool did not say $words of $planted: $said"
	done
}

# It does not see that an output is written whenever 0 is returned, nor that `return -errno` is never 0: leaks, NULL and what was not written are left
# to the sanitizers and valgrind.
analyzer=(-fanalyzer -Wno-analyzer-malloc-leak -Wno-analyzer-null-argument -Wno-analyzer-null-dereference -Wno-analyzer-use-of-uninitialized-value)
analyze_one() { gcc -std=gnu17 "${analyzer[@]}" -Werror -c "$1" -o "$build/planted.o"; }
cmake -G Ninja -S "$tree" -B "$build/gcc" -DTESTS=OFF -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_COMPILER=gcc -DCMAKE_C_FLAGS="${analyzer[*]}" >/dev/null || exit 1
ninja -C "$build/gcc" >"$build/said" 2>&1 || { cat "$build/said"; fault "gcc -fanalyzer"; }
finds analyze_one analyzer-double-free

cmake -G Ninja -S "$tree" -B "$build/clang" -DTESTS=OFF -DCMAKE_C_COMPILER=clang >/dev/null && ninja -C "$build/clang" unit_templates >/dev/null || exit 1
commands=$build/clang/compile_commands.json
files=$(grep -c '"file":' "$commands")
[ "$files" -gt 100 ] || fault "only $files files"

# It does not know __attribute__((cleanup)), nor that a value which is only read after success was written then; the sanitizers and the compilers do.
suppressed=(--suppress=memleak --suppress=uninitvar --suppress=autoVariables --suppress=varFuncNullUB --suppress=missingIncludeSystem)
look=(cppcheck --quiet --std=c11 --error-exitcode=1 --enable=warning,performance,portability "${suppressed[@]}" '--template={file}:{line}: {message} [{id}]')
cppcheck_one() { "${look[@]}" "$1"; }
"${look[@]}" -j "$(nproc)" --project="$commands" || fault cppcheck
finds cppcheck_one doubleFree arrayIndexOutOfBounds

tidy_one() { clang-tidy --quiet --config-file="$tree/.clang-tidy" "$1" -- -std=gnu17; }
sed -n 's/^ *"file": "\(.*\)",*$/\1/p' "$commands" | xargs -P "$(nproc)" -n 8 clang-tidy --quiet -p "$build/clang" 2>/dev/null || fault clang-tidy
finds tidy_one clang-analyzer-core.StackAddressEscape bugprone-implicit-widening-of-multiplication-result

[ $failed = 0 ] && echo "static: $files files, and each of three tools finds what was planted for it"
exit $failed
