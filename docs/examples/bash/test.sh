#!/bin/bash
# A test with a pod of its own: made, tried, and gone at the end, however this script ends: by itself, by a failure, or killed (its pod has it as
# --owner).
set -euo pipefail
pod=${KIROCREW_POD_BIN:-kirocrew-pod}

plane=$(mktemp -d)
export KIROCREW_POD_ROOT=$plane/pods KIROCREW_POD_ENV_DIR=$plane/registry KIROCREW_POD_BACKEND=embedded
trap '"$pod" down --all && rm -rf "$plane"' EXIT

mkdir "$plane/site"
echo "hello from the pod" >"$plane/site/hello.txt"
"$pod" up web --owner $$ -- python3 -m http.server {port} --bind 127.0.0.1 --directory "$plane/site"
url=$("$pod" url web)

answer=$(curl -fsS "$url/hello.txt")
[ "$answer" = "hello from the pod" ] || { echo "FAILED: $answer"; exit 1; }
if curl -fsS "$url/no-such-file" 2>/dev/null; then
	echo "FAILED: a file that is not there was served"
	exit 1
fi
echo "passed"
