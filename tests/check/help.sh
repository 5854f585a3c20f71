#!/bin/sh
# `--help` of the program and of every verb is what tests/check/help holds. `help.sh --update` writes those files anew; look at the difference before
# it is committed. KIROCREW_POD_BIN names the program.
set -eu
: "${KIROCREW_POD_BIN:?names the program}"
golden=$(cd "$(dirname "$0")" && pwd)/help
scratch=$(mktemp -d "${TMPDIR:-/tmp}/help.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

verbs=$("$KIROCREW_POD_BIN" _complete -- '' | cut -f 1)
[ "$(echo "$verbs" | wc -l)" -gt 10 ] || { echo "only these verbs: $verbs"; exit 1; }
"$KIROCREW_POD_BIN" --help >"$scratch/all.txt"
for verb in $verbs; do
	"$KIROCREW_POD_BIN" "$verb" --help >"$scratch/$verb.txt"
	"$KIROCREW_POD_BIN" "$verb" -h | cmp - "$scratch/$verb.txt"
	grep -q "^  $verb " "$scratch/all.txt" || { echo "--help does not name $verb"; exit 1; }
done
if [ "${1:-}" = --update ]; then
	mkdir -p "$golden"
	rm -f "$golden"/*.txt
	cp "$scratch"/*.txt "$golden"
	exit 0
fi
diff -ru "$golden" "$scratch" || { echo "--help is not as in tests/check/help; tests/check/help.sh --update makes it so"; exit 1; }
echo "help: $(echo "$verbs" | wc -l) verbs"
