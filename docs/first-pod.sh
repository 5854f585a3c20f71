#!/bin/sh
# Installs what the build needs, builds, and shows a pod come, answer, be listed and go. Works as root or through sudo.
set -eu
cd "$(dirname "$0")/.."
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

packages="gcc cmake ninja-build pkg-config libsystemd-dev uuid-dev libinih-dev libjansson-dev libsqlite3-dev bubblewrap dbus-user-session python3 curl"
missing=$(for package in $packages; do dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || echo "$package"; done)
if [ -n "$missing" ]; then
	echo "installing:" $missing >&2
	as_root apt-get update -qq
	# shellcheck disable=SC2086 # one word a package
	as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
fi

echo "building, which takes a minute or two" >&2
said=$(cmake -G Ninja -B build -DCMAKE_BUILD_TYPE=RelWithDebInfo -DTESTS=OFF 2>&1 && ninja -C build 2>&1) || { printf '%s\n' "$said" >&2; exit 1; }
pod=build/kirocrew-pod

show() { printf '\n$ %s\n' "kirocrew-pod $*"; "$pod" "$@"; }
# A pod of that name may be yours already: this one is taken down at the end, whatever happens.
name=demo
if "$pod" status "$name" >/dev/null 2>&1; then name=demo-$$; fi
trap '"$pod" down "$name" >/dev/null 2>&1' EXIT
show up "$name" -- python3 -m http.server '{port}' --bind 127.0.0.1
show ls
show status "$name" --json
printf '\n$ curl %s\n' "$("$pod" url "$name")"
curl -fsS --max-time 5 "$("$pod" url "$name")" | head -n 3
show down "$name"
show ls
