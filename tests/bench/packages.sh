#!/usr/bin/env bash
# packages.sh [DIR]: fetches what tests/bench/run sets beside ours into DIR (default: ${XDG_CACHE_HOME:-~/.cache}/kirocrew-pod-bench): Debian's supervisor
# and podman, npm's pm2 and @modelcontextprotocol/inspector. Debian packages are unpacked there, not installed, so that no service of theirs starts and
# root is not needed; what the host has already is left out. DIR cannot be moved afterwards. What fails is named, here with status 1 and, by
# DIR/why/NAME, in the table. Nothing to do is quick; removing DIR takes all of it away.
set -uo pipefail
dir=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/kirocrew-pod-bench}
mkdir -p "$dir/debian" "$dir/why" && dir=$(cd "$dir" && pwd) || exit 1
scratch=$(mktemp -d "${TMPDIR:-/tmp}/bench-packages.XXXXXX") || exit 1
trap 'rm -rf "$scratch"' EXIT
failed=0

# attempt PEER COMMAND…: the last line that a failure says is why.
attempt() {
	local peer=$1
	shift
	rm -f "$dir/why/$peer"
	"$@" >"$scratch/said" 2>&1 && return
	failed=1
	grep . "$scratch/said" | tail -n 1 | tee "$dir/why/$peer" | sed "s/^/packages.sh: $peer: /" >&2
}

# missing_packages PACKAGE…: those and what they depend on, as far as the host does not have it.
missing_packages() { apt-get -s install --no-install-recommends "$@" >"$scratch/plan" && awk '$1 == "Inst" { print $2 }' "$scratch/plan"; }

unpack() {
	local packages package
	command -v apt-get >/dev/null || { echo "there is no apt-get; install it by other means, and it is found on PATH"; return 1; }
	packages=$(missing_packages "$@") || { [ "$(id -u)" = 0 ] && apt-get update -qq && packages=$(missing_packages "$@"); } || return 1
	rm -rf "$scratch/debs" && mkdir "$scratch/debs" && cd "$scratch/debs" || return 1
	# shellcheck disable=SC2086 # one word a package
	[ -z "$packages" ] || apt-get download -qq $packages || return 1
	for package in *.deb; do
		[ ! -e "$package" ] || dpkg -x "$package" "$dir/debian" || return 1
	done
}

get_supervisor() {
	unpack supervisor || return 1
	# As the package's own installation does; without, each supervisorctl would compile what it loads.
	[ ! -d "$dir/debian/usr/lib/python3" ] || /usr/bin/python3 -m compileall -q "$dir/debian/usr/lib/python3/dist-packages/supervisor"
}

# crun executes itself from memory, and conmon and podman start each other with an environment of their own: the libraries' place is written into them.
get_podman() {
	local library program
	unpack podman crun conmon netavark patchelf || return 1
	library=$(echo "$dir"/debian/usr/lib/*-linux-gnu*)
	for program in podman crun conmon; do
		program=$dir/debian/usr/bin/$program
		[ ! -e "$program" ] || PATH=$dir/debian/usr/bin:$PATH patchelf --set-rpath "$library" "$program" || return 1
	done
}

# Each has a tree of its own: pm2's libraries on top would be taken by the inspector for its own.
get_from_npm() {
	command -v npm >/dev/null || { echo "there is no npm"; return 1; }
	mkdir -p "$dir/$2" && cd "$dir/$2" && npm install --prefix "$dir/$2" --ignore-scripts --no-audit --no-fund --no-update-notifier --loglevel error "$1"
}

has() { [ -x "$dir/debian/usr/bin/$1" ] || [ -x "$dir/pm2/node_modules/.bin/$1" ] || [ -x "$dir/inspector/node_modules/.bin/$1" ] || command -v "$1" >/dev/null; }
has supervisord || attempt supervisor get_supervisor
has podman || attempt podman get_podman
has pm2 || attempt pm2 get_from_npm pm2 pm2
has mcp-inspector || attempt inspector get_from_npm @modelcontextprotocol/inspector inspector
exit $failed
