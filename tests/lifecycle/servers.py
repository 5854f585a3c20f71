"""A pod whose MCP servers say what they find as the names of their tools."""

import json
import os
import re
import signal
import subprocess

from behind import SLEEP, BehindTest
from plane import PROGRAMS, alive

FAKE = os.path.join(PROGRAMS, "fake_mcp")
TRIPLE = ("TMPDIR", "TMP", "TEMP")


class ServersTest(BehindTest):
    def setUp(self):
        super().setUp()
        self.report = None

    def pod_with(self, *, seed=None):
        self.report = self.quiet_seeded(seed)
        self.run_dir = os.path.join(self.report["home"], "run")
        self.scratches = os.path.join(self.run_dir, "mcp-tmp")
        self.file = os.path.join(self.report["home"], "kiro", "settings", "mcp.json")
        return self.report

    def quiet_seeded(self, seed):
        return self.up("a", *SLEEP, flags=("--health", "none", *(("--seed", seed) if seed else ())))

    def add(self, server, *words, **env):
        declared = [word for key, value in env.items() for word in ("--env", f"{key}={value}")]
        added = self.pod("mcp", "add", "a", server, "--replace", *declared, "--", *words)
        self.assertEqual((added.status, added.out), (0, ""), added)

    def facts(self, server, **env):
        self.add(server, FAKE, "facts", self.run_dir, **env)

    def probe(self, *servers, status=0, flags=(), **how):
        result = self.pod("probe", "a", *servers, "--json", *flags, **how)
        self.assertEqual(result.status, status, result)
        self.assertEqual(result.json["name"], "a")
        return {one["server"]: one for one in result.json["mcp"]}

    def found(self, result):
        """What the server says of itself."""
        names = [tool if isinstance(tool, str) else tool["name"] for tool in result["tools"]]
        return dict(name.split("=", 1) for name in names if "=" in name)

    def left(self):
        return os.listdir(self.scratches) if os.path.isdir(self.scratches) else []

    def managed(self):
        return re.compile(re.escape(self.scratches) + r"/probe-[0-9a-f]{8}/tmp\Z")

    def strangers(self):
        """Living processes, but the payload's, that have a word or a variable of this pod."""
        mark, seen = self.report["home"].encode(), set()
        for entry in filter(str.isdigit, os.listdir("/proc")):
            for what in ("cmdline", "environ"):
                try:
                    with open(f"/proc/{entry}/{what}", "rb") as words:
                        if mark in words.read() and alive(int(entry)):
                            seen.add(int(entry))
                except OSError:
                    pass
        return seen

    def handshake(self, server):
        """The server behind `mcp run`, asked as an agent would ask it; its tools' names."""
        process = self.running(server)
        for request in (
            {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        ):
            process.stdin.write(json.dumps(request, separators=(",", ":")).encode() + b"\n")
            process.stdin.flush()
            answer = json.loads(process.stdout.readline()) if "id" in request else None
        names = [tool["name"] for tool in answer["result"]["tools"]]
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
        return dict(name.split("=", 1) for name in names), err.decode()

    def running(self, server):
        process = subprocess.Popen(self.command("mcp", "run", "a", server), env=self.env, cwd=self.dir, stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)

        def end():
            if process.poll() is None:
                process.kill()
                process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                stream.close()

        self.addCleanup(end)
        return process
