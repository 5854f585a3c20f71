#!/bin/sh
# Who includes whom (DESIGN: cmd → lifecycle → system → model → fsops, never back): the tree must pass, and a copy of it with one planted
# violation must not. Usage: layers.sh [TREE]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
tree=$(cd "${1:-$here/../..}" && pwd)
scratch=$(mktemp -d "${TMPDIR:-/tmp}/layers.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

judge() {
	(cd "$1" && find fsops pod cmd -name '*.[ch]' | sort | xargs awk -f "$here/layers.awk")
}

# plant FILE LINE WORD…: a copy in which LINE stands at the end of FILE is found fault with, in the words given.
plant() {
	file=$1
	line=$2
	words=$3
	rm -rf "$scratch/copy"
	mkdir "$scratch/copy"
	cp -R "$tree/fsops" "$tree/pod" "$tree/cmd" "$scratch/copy"
	mkdir -p "$(dirname "$scratch/copy/$file")"
	printf '\n%s\n' "$line" >>"$scratch/copy/$file"
	if judge "$scratch/copy" >"$scratch/said"; then
		echo "control: nobody noticed '$line' in $file"
		exit 1
	fi
	if ! grep -qF -- "$words" "$scratch/said"; then
		echo "control: '$line' in $file was called something else than '$words':"
		cat "$scratch/said"
		exit 1
	fi
	controls=$((controls + 1))
}

files=$(cd "$tree" && find fsops pod cmd -name '*.[ch]' | wc -l)
[ "$files" -gt 40 ] || { echo "only $files files below $tree"; exit 1; }
judge "$tree"

controls=0
plant fsops/err.c '#include "pod/model/name.h"' 'a lower layer looks up'
plant pod/model/name.c '#include "pod/system/records.h"' 'a lower layer looks up'
plant pod/system/records.c '#include "pod/lifecycle/planted.h"' 'no header of a layer'
plant pod/system/records.c '#include "pod/system/network.h"' 'a sibling that is not shared'
plant fsops/err.h '#include "fsops/pin.h"' 'includes itself'
plant pod/system/records.c '#include <jansson.h>' 'not by one .c alone'
plant pod/system/records.h '#include <sqlite3.h>' 'not by one .c alone'
plant pod/model/name.c '#include <unistd.h>' 'the model knows no I/O'
plant pod/model/name.c 'static const char *planted(void) { return getenv("HOME"); }' 'the model is pure'
plant pod/model/name.c 'static void planted(void) { fputs("x", stderr); }' 'the model is pure'
plant pod/model/new.c '#include <time.h>' 'the model knows no I/O'
plant pod/system/records.c 'static void planted(DIR *dir) { while (readdir(dir)) ; }' 'directories are read through'
echo "layers: $files files in order, $controls planted violations found"
