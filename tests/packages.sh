#!/bin/sh
# Installs what the build and the tests need on Debian 12, as root or through sudo. Nothing to do is quick.
set -eu
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }
packages="gcc clang libclang-rt-14-dev llvm cmake ninja-build pkg-config git libsystemd-dev uuid-dev libinih-dev libjansson-dev libsqlite3-dev libcmocka-dev
libplist-dev libfuse3-dev fuse3 bubblewrap dbus-user-session systemd sqlite3 python3 curl nginx-light redis-server util-linux procps strace cpio e2fsprogs
universal-ctags iproute2 uidmap scdoc man-db zsh fish bash-completion cppcheck clang-tidy valgrind
python3-pytest debootstrap lintian dpkg-dev"
# A node from elsewhere will do, and would be in the way of Debian's.
command -v npm >/dev/null || packages="$packages nodejs npm"
missing=$(for package in $packages; do dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || echo "$package"; done)
[ -n "$missing" ] || exit 0
as_root apt-get update -qq
# shellcheck disable=SC2086 # one word a package
as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $missing >/dev/null
