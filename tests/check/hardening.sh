#!/bin/sh
# What the compiler and the linker were to put around the program (CMakeLists.txt) is in the binary, and is missed in one that was made without.
# Usage: hardening.sh BINARY
set -eu
binary=$1
here=$(cd "$(dirname "$0")" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/hardening.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# want WORDS PATTERN: a line of what readelf says of the binary.
want() {
	grep -qE "$2" "$scratch/seen" || echo "$1"
}
# One line for each thing that a binary lacks.
lacks() {
	readelf -hldW --dyn-syms "$1" >"$scratch/seen"
	want 'position independence' 'Type: +DYN'
	want 'relocations made read-only' 'GNU_RELRO'
	want 'symbols bound at once' 'FLAGS_1.* NOW'
	want 'a stack that cannot be executed' 'GNU_STACK.* RW '
	want 'a protected stack' '__stack_chk_fail'
	want 'fortified calls' '__[a-z]+_chk(@|$)'
}

missing=$(lacks "$binary")
if [ -n "$missing" ]; then
	printf '%s lacks:\n%s\n' "$binary" "$missing"
	exit 1
fi

gcc -O2 -U_FORTIFY_SOURCE -fno-stack-protector -fno-pie -no-pie -Wl,-z,norelro,-z,lazy,-z,execstack "$here/planted/hardening.c" -o "$scratch/soft" 2>"$scratch/said" ||
	{ cat "$scratch/said"; exit 1; }
found=$(lacks "$scratch/soft" | wc -l)
[ "$found" = 6 ] || { echo "control: a binary without any of the six lacks only $found:"; lacks "$scratch/soft"; exit 1; }
echo "hardening: six things are in $binary, and missed where they are not"
