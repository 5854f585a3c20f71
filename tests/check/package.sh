#!/usr/bin/env bash
# The Debian package as a newcomer meets it: built, judged by lintian, installed by apt in a clean Debian tree, the README's example run there as a plain
# user, and removed again. Needs root, debootstrap, lintian and the package mirror that this machine's apt is set up with. It takes some minutes; everything
# is below a temporary directory and goes with it. Usage: package.sh [TREE]
set -euo pipefail
tree=$(cd "${1:-$(dirname "$0")/../..}" && pwd)
[ "$(id -u)" = 0 ] || exec sudo "$0" "$tree"
for program in debootstrap lintian dpkg-deb scdoc; do
	command -v "$program" >/dev/null || { echo "package: $program is not installed; tests/packages.sh installs it"; exit 1; }
done
work=$(mktemp -d /var/tmp/kirocrew-pod-package.XXXXXX)
chmod 0755 "$work"
trap 'rm -rf --one-file-system "$work"' EXIT

echo "== the package"
cmake -G Ninja -S "$tree" -B "$work/build" -DTESTS=OFF -DSHARED_LIBRARIES=ON -DCMAKE_INSTALL_PREFIX=/usr >"$work/log" 2>&1 && ninja -C "$work/build" >>"$work/log" 2>&1 &&
	(cd "$work/build" && cpack) >>"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }
deb=$(echo "$work"/build/kirocrew-pod_*.deb)
version=$(sed -n 's/^project(kirocrew-pod VERSION \([0-9.]*\) .*/\1/p' "$tree/CMakeLists.txt")
[ "$(dpkg-deb -f "$deb" Version)" = "$version" ]
depends=$(dpkg-deb -f "$deb" Depends)
for library in bubblewrap libc6 libinih1 libjansson4 libsqlite3-0 libsystemd0 libuuid1; do
	case ", $depends," in *", $library,"* | *", $library ("*) ;; *) echo "package: it does not depend on $library: $depends"; exit 1 ;; esac
done
dpkg-deb -f "$deb" Recommends | grep -qw dbus-user-session
lintian --allow-root --fail-on error "$deb"

echo "== a clean Debian"
# The mirror of this machine, whatever it is.
read -r site release < <(apt-get indextargets --format '$(SITE) $(RELEASE)' 'Created-By: Packages' | grep -m 1 ' bookworm$')
clean=$work/clean
debootstrap --variant=minbase "$release" "$clean" "$site" >"$work/log" 2>&1 || { tail -n 20 "$work/log"; exit 1; }
cp "$deb" "$clean/srv/kirocrew-pod.deb"
rm -f "$clean/etc/resolv.conf" && cp -L /etc/resolv.conf "$clean/etc/resolv.conf"
for file in /etc/apt/apt.conf.d/*proxy*; do [ ! -f "$file" ] || cp "$file" "$clean/etc/apt/apt.conf.d/"; done

# The README's example: the lines that begin with a $ in the first block of "Use it".
awk '/^## /{on = ($0 == "## Use it")} on && /^    \$ /{print substr($0, 7); seen = 1; next} on && seen && !/^    /{exit}' "$tree/README.md" >"$clean/srv/example"
[ "$(wc -l <"$clean/srv/example")" -ge 5 ] && grep -q '^kirocrew-pod up demo' "$clean/srv/example" || { echo "package: the README has no example"; exit 1; }

# inside NETWORK COMMAND…: as PID 1 of the tree, which is the root of its mount namespace as on any machine (a chroot may make no user namespaces).
inside() {
	local net=()
	[ "$1" = online ] || net=(--net)
	shift
	unshare --mount --pid --ipc --uts --fork --kill-child --propagation private "${net[@]}" /bin/bash -ec '
		tree=$1
		shift
		ip link set lo up
		mount --rbind "$tree" "$tree"
		mount -t proc proc "$tree/proc"
		mount -t tmpfs -o mode=1777 tmpfs "$tree/tmp"
		mount --rbind /dev "$tree/dev"
		cd "$tree"
		pivot_root . mnt
		cd /
		umount -l /mnt
		exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/srv LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive "$@"
	' inside "$clean" "$@"
}
echo "== installed by apt"
inside online /bin/sh -ec '
	apt-get update -qq
	apt-get install -y -qq /srv/kirocrew-pod.deb >/srv/apt.log 2>&1 || { tail -n 20 /srv/apt.log; exit 1; }
	apt-get install -y -qq --no-install-recommends python3 curl python3-pytest >/srv/apt.log 2>&1 || { tail -n 20 /srv/apt.log; exit 1; }
	dpkg -s bubblewrap dbus-user-session git >/dev/null
	useradd --create-home --shell /bin/bash ann
	install -o ann /srv/example /home/ann/example'

echo "== the README's example, as a plain user without network"
inside offline su - ann -c '
	set -eu
	kirocrew-pod --version
	kirocrew-pod doctor || { echo "package: doctor finds a problem on a clean Debian"; exit 1; }
	while read -r line; do
		printf "\n$ %s\n" "$line"
		eval "$line" </dev/null
	done <example | tee said
	for words in "demo is up at http://127.0.0.1:" "Directory listing for" "demo  *up " "demo in /home/ann/.kirocrew-pods/demo/workspace" "demo: gone"; do
		grep -q -- "$words" said || { echo "package: the example did not say \"$words\""; exit 1; }
	done
	[ "$(kirocrew-pod ls --json)" = "[]" ] || { echo "package: a pod is left"; exit 1; }
	[ "$(ls -A .kirocrew-pods)" = .e2e-artifacts ] || { echo "package: a home is left"; ls -A .kirocrew-pods; exit 1; }
	echo "== a refusal, and what it says to do"
	status=0
	kirocrew-pod up site --port 5476 -- python3 -m http.server {port} --bind 127.0.0.1 2>said || status=$?
	cat said
	[ "$status" = 70 ] && grep -q "choose another with --port" said
	kirocrew-pod up site --port 5477 -- python3 -m http.server {port} --bind 127.0.0.1
	kirocrew-pod down site
	echo "== the examples that came with it"
	cp -r /usr/share/doc/kirocrew-pod/examples .
	examples/bash/test.sh
	(cd examples/pytest && pytest-3 -q -p no:cacheprovider)
	echo "== a seed and its MCP servers"
	kirocrew-pod up crew --seed connections-two -- python3 -m http.server {port} --bind 127.0.0.1
	kirocrew-pod probe crew
	kirocrew-pod down crew'

echo "== removed again"
inside online /bin/sh -ec '
	dpkg -L kirocrew-pod >/srv/files
	apt-get purge -y -qq kirocrew-pod >/dev/null 2>&1
	while read -r file; do
		[ -d "$file" ] || [ ! -e "$file" ] || { echo "package: $file was left"; exit 1; }
	done </srv/files'
echo "package: $(basename "$deb") is well"
