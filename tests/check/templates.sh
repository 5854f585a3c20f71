#!/bin/sh
# The step that embeds the templates takes ours and refuses what does not agree with the list of placeholders.
# Usage: templates.sh [TREE]; CMAKE names cmake.
set -eu
tree=$(cd "${1:-$(dirname "$0")/../..}" && pwd)
cmake=${CMAKE:-cmake}
scratch=$(mktemp -d "${TMPDIR:-/tmp}/templates.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# A fresh copy of the real templates, to be spoiled.
fresh() {
	rm -rf "$scratch/t" "$scratch/out.h"
	cp -R "$tree/unit-templates" "$scratch/t"
}

embed() {
	files=
	for file in "$scratch"/t/*.in; do
		files="$files${files:+;}$file"
	done
	"$cmake" -D "OUT=$scratch/out.h" -D "FILES=$files" -P "$scratch/t/embed.cmake" >"$scratch/said" 2>&1
}

takes() {
	embed || { echo "$1: refused"; cat "$scratch/said"; exit 1; }
	[ -s "$scratch/out.h" ] || { echo "$1: nothing was written"; exit 1; }
	count=$((count + 1))
}

# refuses WHAT WORD: with a message that holds WORD, and without output
refuses() {
	if embed; then
		echo "$1: taken"
		exit 1
	fi
	if ! tr -s ' \n' ' ' <"$scratch/said" | grep -qF -- "$2"; then
		echo "$1: refused, but not for '$2'"
		cat "$scratch/said"
		exit 1
	fi
	[ ! -e "$scratch/out.h" ] || { echo "$1: a header was written all the same"; exit 1; }
	count=$((count + 1))
}

count=0
fresh
takes "the templates as they are"
grep -q SERVICE_PLACEHOLDER_PROGRAM "$scratch/out.h"

fresh
echo 'Nice=@nice@' >>"$scratch/t/service.in"
refuses "an unknown placeholder" "@nice@ is unknown"

fresh
echo 'Nice=@label@' >>"$scratch/t/service.in"
refuses "a placeholder of another template" "@label@ is unknown"

fresh
echo 'service nice number' >>"$scratch/t/placeholders.txt"
refuses "an unused placeholder" "@nice@ is listed"

fresh
sed '/@stop-secs@/d' "$tree/unit-templates/service.in" >"$scratch/t/service.in"
refuses "a placeholder whose line is gone" "@stop-secs@ is listed"

fresh
echo 'service nice cookie' >>"$scratch/t/placeholders.txt"
refuses "an unknown type" "unknown type cookie"

fresh
echo 'service program exec-program' >>"$scratch/t/placeholders.txt"
refuses "a placeholder listed twice" "listed twice"

fresh
echo 'service program' >>"$scratch/t/placeholders.txt"
refuses "a line that says nothing" "neither a type nor a placeholder"

fresh
echo 'timer program exec-program' >>"$scratch/t/placeholders.txt"
refuses "a template that is not there" "there is no template timer.in"

fresh
echo 'Nice=a@b' >>"$scratch/t/service.in"
refuses "a lone @" "begins no placeholder"

fresh
echo 'plain text; with a [bracket' >"$scratch/t/other.in"
takes "a template without placeholders"
grep -q template_other "$scratch/out.h"
echo "templates: $count cases"
