"""Real MCP servers and real ACP agents, from npm: probed in a pod, signed out, with no way out of this host."""

import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "lifecycle"))

from behind import SLEEP, BehindTest  # noqa: E402
from plane import skip  # noqa: E402

CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "kirocrew-pod-npm")
MODULES = os.path.join(CACHE, "node_modules")
SERVERS = ("@modelcontextprotocol/server-everything", "@modelcontextprotocol/server-filesystem")
AGENTS = ("@zed-industries/codex-acp", "@google/gemini-cli")
# Nothing listens there: whoever wants to reach out fails at once.
DEAD_PROXY = {name: "http://127.0.0.1:9" for name in ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy", "all_proxy")}


def missing():
    return [package for package in (*SERVERS, *AGENTS) if not os.path.exists(os.path.join(MODULES, package, "package.json"))]


class Npm(BehindTest):
    why = None

    @classmethod
    def setUpClass(cls):
        """Only what is not there yet is fetched, and no script of a package is run."""
        wanted = missing()
        if not wanted:
            return
        os.makedirs(CACHE, exist_ok=True)
        try:
            done = subprocess.run(["npm", "install", "--prefix", CACHE, "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", *wanted],
                                  cwd=CACHE, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=540)
            cls.why = None if done.returncode == 0 and not missing() else f"npm: {done.stdout.decode(errors='replace')[-500:]}"
        except (OSError, subprocess.TimeoutExpired) as error:
            cls.why = f"npm: {error}"

    def setUp(self):
        super().setUp()
        if self.why:
            skip(self, self.why)
        self.env.update(DEAD_PROXY, KIROCREW_POD_PATH="/usr/local/bin:/usr/bin:/bin")

    def package(self, name):
        """The program that a package brings, as npm links it."""
        program = {"@modelcontextprotocol/server-everything": "mcp-server-everything", "@modelcontextprotocol/server-filesystem": "mcp-server-filesystem",
                   "@zed-industries/codex-acp": "codex-acp", "@google/gemini-cli": "gemini"}[name]
        return os.path.join(MODULES, ".bin", program)

    def test_the_servers_are_ok_and_tell_their_tools(self):
        report = self.quiet("a")
        shown = os.path.join(report["home"], "workspace")
        for server, words in (("everything", (self.package(SERVERS[0]),)), ("filesystem", (self.package(SERVERS[1]), shown))):
            added = self.pod("mcp", "add", "a", server, "--", *words)
            self.assertEqual(added.status, 0, added)
        probed = self.pod("probe", "a", "--json", "--timeout", "60", timeout=120)
        self.assertEqual(probed.status, 0, probed)
        results = {one["server"]: one for one in probed.json["mcp"]}
        for server, tool in (("everything", "echo"), ("filesystem", "read_text_file")):
            result = results[server]
            self.assertEqual((result["status"], result["protocol_version"], result["sandbox"], result["temp"]["source"]), ("ok", "2025-11-25", "bwrap", "managed"))
            self.assertIn(tool, [one if isinstance(one, str) else one["name"] for one in result["tools"]])
            self.assertTrue(result["server_info"]["name"])
        self.assertEqual(os.listdir(os.path.join(report["home"], "run", "mcp-tmp")), [])
        self.down("a")
        self.assert_no_residue(report["id"])

    def test_the_agents_are_viable_while_they_are_signed_out(self):
        for package, words in ((AGENTS[0], ()), (AGENTS[1], ("--experimental-acp",))):
            with self.subTest(package):
                config = os.path.join(self.dir, "config.ini")
                with open(config, "w") as ini:
                    ini.write(f"[agent]\nexec = {' '.join((self.package(package), *words))}\ntimeout = 60\n")
                # Proven once at boot, and once by hand.
                report = self.up_with(config)
                probed = self.pod("probe", "a", "--agent", "--json", config=config, timeout=120)
                self.assertEqual(probed.status, 0, probed)
                agent = probed.json["agent"]
                self.assertEqual((agent["verdict"], agent["detail"], agent["home"]), ("viable", "", report["os_home"]))
                self.assertNotIn("agent: ", self.pod("logs", "a").out)
                self.down("a")
                self.assert_no_residue(report["id"])

    def up_with(self, config):
        result = self.pod("up", "a", "--json", "--health", "none", "--wait-secs", "120", "--", *SLEEP, config=config, timeout=150)
        self.assertEqual(result.status, 0, result)
        return result.json


if __name__ == "__main__":
    unittest.main()
