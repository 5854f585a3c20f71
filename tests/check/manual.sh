#!/usr/bin/env bash
# The manual page is clean and names every verb, flag, setting, state and exit status that the program knows. Usage: manual.sh PAGE TREE;
# KIROCREW_POD_BIN names the program. Without scdoc there is no page: a skip, and a failure with MUST_WORK=1.
set -euo pipefail
page=$1 tree=$2
if [ ! -f "$page" ]; then
	echo "there is no manual page: scdoc was not there when it was built"
	[ "${MUST_WORK:-0}" = 1 ] && exit 1
	exit 77
fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/manual.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
MANWIDTH=200 LC_ALL=C.UTF-8 man --warnings -E UTF-8 -l "$page" >"$scratch/page" 2>"$scratch/said"
sed -i 's/.\x08//g; s/\x1b\[[0-9;]*m//g' "$scratch/page"
[ ! -s "$scratch/said" ] || { cat "$scratch/said"; exit 1; }

# has PAGE WHAT WORD…: each stands there by itself.
has() {
	local at=$1 what=$2 word
	shift 2
	for word; do
		grep -qE -- "(^|[^A-Za-z0-9_-])$word([^A-Za-z0-9_-]|\$)" "$at" || { echo "the page does not name the $what $word"; return 1; }
		count=$((count + 1))
	done
}
# The lines below the heading of a verb.
section() { awk -v verb="$2" '/^ ? ? ?[A-Za-z]/ { inside = $0 ~ "^   " verb "( |$)"; next } inside' "$1"; }

mapfile -t verbs < <("$KIROCREW_POD_BIN" _complete -- '' | cut -f 1)
[ ${#verbs[@]} -gt 10 ]
settings=$(grep -oE '"KIROCREW_POD_[A-Z_]+"' "$tree/pod/model/plane.c" | tr -d '"')
states=$(grep -oE 'enum pod_state \{[^}]*' "$tree/pod/model/facts.h" | grep -oE 'POD_[A-Z]+' | grep -v POD_STATES | sed s/POD_// | tr '[:upper:]' '[:lower:]')
statuses=$(grep -oE 'EXIT_[A-Z_]+ = [0-9]+' "$tree/pod/model/refusal.h" | grep -oE '[0-9]+$')

judge() {
	local at=$1 verb flag
	for verb in "${verbs[@]}"; do
		grep -qE "^   $verb( |\$)" "$at" || { echo "the page has no section of $verb"; return 1; }
		section "$at" "$verb" >"$scratch/section"
		for flag in $("$KIROCREW_POD_BIN" "$verb" --help | grep -oE -- '^  (-., |    )--[a-z-]+' | grep -oE -- '--[a-z-]+'); do
			[ "$flag" = --help ] || grep -qE -- "^ +(-., )?$flag( |\$)" "$scratch/section" || { echo "the section of $verb does not name $flag"; return 1; }
			count=$((count + 1))
		done
	done
	# shellcheck disable=SC2086 # one word each
	has "$at" "global option" --config --version --help && has "$at" setting $settings && has "$at" state $states && has "$at" "exit status" $statuses
}

count=0
judge "$scratch/page"
names=$count
for word in '^   prune' '^ *--dry-run' unfinished KIROCREW_POD_REPO 75; do
	sed "s/$word/xxx/g" "$scratch/page" >"$scratch/planted"
	if judge "$scratch/planted" >/dev/null; then
		echo "control: nobody missed $word"
		exit 1
	fi
done
echo "manual: ${#verbs[@]} verbs, $names names"
