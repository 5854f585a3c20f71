#!/bin/sh
# What `cmake --install` puts where, that the program works from there, and that its version is said in one place only.
# Usage: install.sh BUILD TREE; CMAKE names cmake.
set -eu
build=$1 tree=$2
scratch=$(mktemp -d "${TMPDIR:-/tmp}/install.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
"${CMAKE:-cmake}" --install "$build" --prefix "$scratch/usr" >"$scratch/log"

for file in bin/kirocrew-pod share/kirocrew-pod/scenarios/minimal/fixture.yaml share/bash-completion/completions/kirocrew-pod \
	share/zsh/site-functions/_kirocrew-pod share/fish/vendor_completions.d/kirocrew-pod.fish share/doc/kirocrew-pod/README.md share/doc/kirocrew-pod/TROUBLESHOOTING.md \
	share/doc/kirocrew-pod/examples/bash/test.sh; do
	[ -f "$scratch/usr/$file" ] || { echo "$file was not installed"; cat "$scratch/log"; exit 1; }
done
if command -v scdoc >/dev/null; then
	[ -f "$scratch/usr/share/man/man1/kirocrew-pod.1" ] || { echo "the manual page was not installed"; exit 1; }
fi

version=$("$scratch/usr/bin/kirocrew-pod" --version)
wanted=$(sed -n 's/^project(kirocrew-pod VERSION \([0-9.]*\) .*/\1/p' "$tree/CMakeLists.txt")
[ -n "$wanted" ] && [ "$version" = "kirocrew-pod $wanted" ] || { echo "$version, but the project is $wanted"; exit 1; }
top=$(sed -n 's/^## //p' "$tree/CHANGELOG.md" | head -n 1)
[ "$top" = "$wanted" ] || { echo "CHANGELOG.md begins with $top, but the project is $wanted"; exit 1; }
# Nobody else says it.
if grep -rnE "(^|[^0-9.])$(echo "$wanted" | sed 's/[.]/\\./g')([^0-9.]|\$)" "$tree/cmd" "$tree/pod" "$tree/fsops" "$tree/packaging" "$tree/completion" "$tree/docs"/*.scd; then
	echo "the version is said above as well"
	exit 1
fi
"$scratch/usr/bin/kirocrew-pod" scenarios | grep -q '^minimal ' || { echo "the installed program does not find its scenarios"; exit 1; }
# Not installed, it finds them beside itself, wherever it is built.
mkdir "$scratch/built"
cp -a "$build/kirocrew-pod" "$build/share" "$scratch/built"
"$scratch/built/kirocrew-pod" scenarios | grep -q '^minimal ' || { echo "the program in a build directory does not find its scenarios"; exit 1; }
# And what a package is made of holds no path of the place where it was built.
strip -o "$scratch/stripped" "$scratch/usr/bin/kirocrew-pod"
if grep -qF -e "$tree" -e "$build" "$scratch/stripped"; then
	echo "the program holds the path of its tree or build directory"
	exit 1
fi
# Moved as a whole, it still does.
mv "$scratch/usr" "$scratch/moved"
"$scratch/moved/bin/kirocrew-pod" scenarios | grep -q '^minimal '
echo "install: version $wanted"
