"""The benchmark prints every peer: with figures, or with the reason why there are none. Nothing is timed. usage: bench.py SOURCE BUILD"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = sys.argv[1:]
PEERS = ["the bare process", "kirocrew-pod, embedded", "kirocrew-pod, systemd", "systemd-run --user", "pm2", "supervisor", "podman"]


class Bench(unittest.TestCase):
    def setUp(self):
        self.top = tempfile.mkdtemp(prefix="check-bench-")
        self.addCleanup(shutil.rmtree, self.top)
        for name in ("cache/why", "tmp", "home"):
            os.makedirs(os.path.join(self.top, name))
        with open(f"{self.top}/cache/why/pm2", "w") as why:
            why.write("npm: no way to the registry\n")

    def run_bench(self, *words):
        env = {k: v for k, v in os.environ.items() if k not in ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")}  # no user manager has this home
        env.update(HOME=f"{self.top}/home", TMPDIR=f"{self.top}/tmp", PATH="/usr/bin:/bin")
        done = subprocess.run([f"{SOURCE}/tests/bench/run", "--build", BUILD, "--peers", f"{self.top}/cache", "--only", "instead", "--rounds", "1", *words],
                              env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(f"{self.top}/tmp"), [])
        self.assertEqual(os.listdir(f"{self.top}/home"), [])
        return done.stdout

    def test_every_peer_has_figures_or_a_reason(self):
        peers = json.loads(self.run_bench("--json"))["rows"][0]["peers"]
        self.assertEqual(len(peers), len(PEERS))
        for peer, name in zip(peers, PEERS):
            self.assertTrue(peer["name"].startswith(name), peer)
            if "skipped" in peer:
                self.assertTrue(peer["skipped"], peer)
                continue
            for what in ("up", "down"):
                self.assertEqual(peer[what]["n"], 1, peer)
                self.assertGreater(peer[what]["median"], 0, peer)
        for ours in peers[:2]:
            self.assertNotIn("skipped", ours)
        if not shutil.which("pm2", path="/usr/bin:/bin"):
            self.assertEqual(peers[4]["skipped"], "could not be installed: npm: no way to the registry")

    def test_the_table_has_a_line_for_each(self):
        table = self.run_bench()
        for name in PEERS:
            self.assertRegex(table, rf"(?m)^{name}.* (\d+\.\d\d|not run: .+)")


unittest.main(argv=sys.argv[:1])
