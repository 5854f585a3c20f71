#!/bin/sh
# The figures that DESIGN section 2 names, to look at and not to game; never fails. Usage: sizes.sh [TREE]
tree=$(cd "${1:-$(dirname "$0")/../..}" && pwd) || exit 0
cd "$tree" || exit 0

# distribution NAME: of the numbers on stdin
distribution() {
	sort -n | awk -v name="$1" '{ v[NR] = $1 } END {
		if (NR)
			printf "%-28s n %-5d median %-5d p90 %-5d max %d\n", name, NR, v[int((NR + 1) / 2)], v[int((NR * 9 + 9) / 10)], v[NR]
	}'
}
sources() { find fsops pod cmd -name "$1"; }
line_counts() { xargs wc -l | awk '$2 != "total" { print $1 }'; }
total() { awk '{ n += $1 } END { print n + 0 }'; }

for layer in fsops pod/model pod/system pod/lifecycle cmd; do
	[ -d "$layer" ] && find "$layer" -name '*.c' | line_counts | distribution "lines per .c, $layer"
done
sources '*.c' | line_counts | distribution "lines per .c, all"
sources '*.c' | xargs grep -c '^#include "' | sed 's/.*://' | distribution "own headers seen by a .c"

if command -v ctags >/dev/null && ctags --version 2>/dev/null | grep -q Universal; then
	sources '*.c' | ctags -L - -f - --fields=+ne --c-kinds=f 2>/dev/null |
		awk '{ if (match($0, /line:[0-9]+/)) first = substr($0, RSTART + 5, RLENGTH - 5); if (match($0, /end:[0-9]+/)) print substr($0, RSTART + 4, RLENGTH - 4) - first + 1 }' |
		distribution "lines per function"
else
	echo "lines per function           not known: needs Universal Ctags"
fi

code=$({ sources '*.c'; sources '*.h'; } | line_counts | total)
tests=$(find tests -name '*.[ch]' -o -name '*.sh' -o -name '*.py' -o -name '*.awk' | line_counts | total)
awk -v code="$code" -v tests="$tests" 'BEGIN { printf "test lines per code line      %d / %d = %.2f\n", tests, code, code ? tests / code : 0 }'
exit 0
