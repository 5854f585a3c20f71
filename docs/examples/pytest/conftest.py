"""One pod for a whole pytest run, in a plane of its own: `up` returns when it answers, and at the end nothing of it is left. A run that is
killed takes its pod along, as its owner."""

import json
import os
import subprocess
import sys

import pytest

TOOL = os.environ.get("KIROCREW_POD_BIN", "kirocrew-pod")


@pytest.fixture(scope="session")
def pod(tmp_path_factory):
    plane = tmp_path_factory.mktemp("plane")
    site = tmp_path_factory.mktemp("site")
    (site / "hello.txt").write_text("hello from the pod\n")
    environment = {
        **os.environ,
        "KIROCREW_POD_ROOT": str(plane / "pods"),
        "KIROCREW_POD_ENV_DIR": str(plane / "registry"),
        "KIROCREW_POD_BACKEND": "embedded",
    }

    def tool(*words):
        return subprocess.run([TOOL, *words], env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout

    server = [sys.executable, "-m", "http.server", "{port}", "--bind", "127.0.0.1", "--directory", str(site)]
    try:
        yield json.loads(tool("up", "web", "--json", "--owner", str(os.getpid()), "--", *server))
    finally:
        tool("down", "--all")
