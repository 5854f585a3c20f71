#!/bin/sh
# Snapshots of a live database beside `sqlite3 SRC ".backup DST"`, alternating, in one run. Prints medians, ratios and peaks of memory; judges nothing.
# usage: snapshot.sh [-n ROUNDS] [-m MIB] [-w] PROGRAM   (PROGRAM: the built tests/programs/snapshot_once)
# The owner is connected and its last commits are in the WAL. With -w it goes on to commit every few milliseconds: `sqlite3 .backup` then begins
# anew at each commit and may never end, so every way has 10 s.
# Needs sqlite3(1) and GNU time as /usr/bin/time.
set -eu

rounds=9 mib=200 writes=
while getopts n:m:w option; do
	case $option in
	n) rounds=$OPTARG ;;
	m) mib=$OPTARG ;;
	w) writes=1 ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
once=${1:?usage: snapshot.sh [-n ROUNDS] [-m MIB] PROGRAM}

dir=$(mktemp -d "${TMPDIR:-/tmp}/kp-bench-XXXXXX")
writer=
trap 'exec 3>&-; [ -z "$writer" ] || wait "$writer" 2>/dev/null || :; rm -rf "$dir"' EXIT
trap 'exit 1' INT TERM
src=$dir/src.sqlite3

sqlite3 "$src" "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT, c BLOB);
CREATE INDEX i ON t(b);
WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < $((mib * 900))) INSERT INTO t(b, c) SELECT hex(randomblob(16)), randomblob(1000) FROM n;
PRAGMA wal_checkpoint(TRUNCATE);" >"$dir/made"

# One connection that commits every few milliseconds for as long as the run lasts.
mkfifo "$dir/feed"
sqlite3 "$src" <"$dir/feed" >/dev/null 2>"$dir/writer-errors" &
writer=$!
exec 3>"$dir/feed"
echo "PRAGMA busy_timeout=0; PRAGMA synchronous=NORMAL;" >&3
feed() {
	commit="INSERT INTO t(b, c) VALUES(hex(randomblob(16)), randomblob(1000));"
	for _ in 1 2 3 4 5 6 7 8 9; do echo "$commit" >&3; done
	while [ "$writes" ] && [ -e "$dir/run" ]; do
		echo "$commit" >&3
		sleep 0.005
	done
}
: >"$dir/run"
feed &
feeder=$!
sleep 0.5

measure() {
	rm -f "$dir/dst" "$dir/dst-wal" "$dir/dst-shm" "$dir/dst-journal"
	case $1 in
	cli) /usr/bin/time -f '%e %M' -o "$dir/time" timeout 10 sqlite3 "$src" ".backup $dir/dst" && awk '{printf "%.1f %d\n", $1 * 1000, $2}' "$dir/time" ;;
	process) /usr/bin/time -f '%e %M' -o "$dir/time" timeout 10 "$once" ours "$src" "$dir/dst" >/dev/null && awk '{printf "%.1f %d\n", $1 * 1000, $2}' "$dir/time" ;;
	*) timeout 10 "$once" "$1" "$src" "$dir/dst" ;;
	esac >>"$dir/result-$1" || echo "$1 failed" >>"$dir/failures"
}

ways='process cli ours backup transaction write-locks copy'
i=0
while [ "$i" -lt "$rounds" ]; do
	for way in $ways; do measure "$way"; done
	i=$((i + 1))
done
rm -f "$dir/run"
wait "$feeder"

median() { sort -n "$dir/result-$1" | awk -v k="$2" '{v[NR] = $k} END {print v[int((NR + 1) / 2)]}'; }
printf 'database %s MiB, %s rounds, owner %s, load %s\n' "$(($(wc -c <"$src") >> 20))" "$rounds" "$([ "$writes" ] && echo writes || echo is quiet)" "$(cut -d' ' -f1 /proc/loadavg 2>/dev/null || echo unknown)"
printf '%-14s %12s %12s\n' way 'median ms' 'peak KiB'
for way in $ways; do
	[ -s "$dir/result-$way" ] || continue
	printf '%-14s %12s %12s\n' "$way" "$(median "$way" 1)" "$(sort -n -k2 "$dir/result-$way" | awk 'END {print $2}')"
done
[ ! -s "$dir/result-cli" ] ||
	awk -v a="$(median process 1)" -v b="$(median cli 1)" 'BEGIN {printf "whole process, ours / sqlite3 .backup: %.2f\n", a / b}'
[ ! -s "$dir/result-backup" ] || awk -v a="$(median ours 1)" -v b="$(median backup 1)" 'BEGIN {printf "call alone, ours / backup API: %.2f\n", a / b}'
[ ! -s "$dir/failures" ] || sort "$dir/failures" | uniq -c
if [ -s "$dir/writer-errors" ]; then
	printf 'commits of the writer that failed: %s\n' "$(wc -l <"$dir/writer-errors")"
else
	echo 'commits of the writer that failed: 0'
fi
