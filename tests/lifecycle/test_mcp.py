"""`mcp add`, `rm`, `ls` and `run`: the file that they edit, and the server that `run` becomes."""

import collections
import json
import os
import re
import signal
import unittest

from plane import tree_manifest
from servers import FAKE, TRIPLE, ServersTest


class File(ServersTest):
    ODD = ('{"$schema": "x", "mcpServers": {"zeta": {"command": "/bin/true", "args": ["1", "é"], "autoApprove": ["*"], "timeout": 12.5},'
           ' "alpha": {"url": "http://127.0.0.1:1/", "note": null}, "mid": {"command": "m", "disabled": true}}, "last": [1, {"b": 1, "a": 2}]}')

    def read(self):
        with open(self.file) as text:
            return json.load(text, object_pairs_hook=collections.OrderedDict)

    def test_add_rm_and_ls_keep_order_and_unknown_keys(self):
        self.pod_with()
        with open(self.file, "w") as text:
            text.write(self.ODD)
        expected = json.loads(self.ODD, object_pairs_hook=collections.OrderedDict)
        self.add("new", "/bin/echo", "--flag", "a b", "", A="1", B="x=y")
        expected["mcpServers"]["new"] = collections.OrderedDict(command="/bin/echo", args=["--flag", "a b", ""], env=collections.OrderedDict(A="1", B="x=y"))
        self.assertEqual(self.read(), expected)
        self.add("zeta", "/bin/false")
        zeta = self.read()["mcpServers"]["zeta"]
        self.assertEqual((zeta["command"], zeta.get("args", []), zeta["autoApprove"], zeta["timeout"]), ("/bin/false", [], ["*"], 12.5))
        self.assertEqual(list(self.read()["mcpServers"]), ["zeta", "alpha", "mid", "new"])
        self.assertEqual(self.pod("mcp", "rm", "a", "alpha").status, 0)
        after = self.read()
        self.assertEqual((list(after), list(after["mcpServers"])), (["$schema", "mcpServers", "last"], ["zeta", "mid", "new"]))
        self.assertEqual(list(after["last"][1]), ["b", "a"])
        listed = self.pod("mcp", "ls", "a", "--json").json
        self.assertEqual([(one["server"], one["command"], one["args"], one["disabled"]) for one in listed],
                         [("zeta", "/bin/false", [], False), ("mid", "m", [], True), ("new", "/bin/echo", ["--flag", "a b", ""], False)])
        self.assertEqual(self.pod("mcp", "ls", "a").out.splitlines(), ["zeta: /bin/false", "mid (disabled): m", "new: /bin/echo --flag a b "])
        self.assertEqual(os.lstat(self.file).st_mode & 0o777, 0o600)
        self.assertEqual(os.listdir(os.path.dirname(self.file)), ["mcp.json"])

    def test_a_server_that_is_there_is_not_replaced_unasked(self):
        self.pod_with()
        first = ("mcp", "add", "a", "s", "--env", "A=1", "--env", "B=2")
        added = self.pod(*first, "--", "/bin/echo", "one")
        self.assertEqual((added.status, added.out, added.err), (0, "", ""), added)
        before = tree_manifest(os.path.dirname(self.file))
        for words in ((*first, "--", "/bin/echo", "one"), ("mcp", "add", "a", "s", "--env", "B=2", "--env", "A=1", "--", "/bin/echo", "one")):
            again = self.pod(*words)
            self.assertEqual((again.status, again.out), (0, ""), again)
            self.assertEqual(self.one_line(again), "kirocrew-pod: s: it is declared so already; nothing was changed")
        for words in ((*first, "--", "/bin/echo", "two"), (*first, "--", "/bin/echo"), (*first, "--", "/bin/cat", "one"),
                      ("mcp", "add", "a", "s", "--env", "A=1", "--", "/bin/echo", "one")):
            refused = self.pod(*words)
            self.assertEqual((refused.status, refused.out), (78, ""), refused)
            self.assertIn("s: there is such a server already, and it is left alone: it runs /bin/echo; say --replace", self.one_line(refused))
        self.assertEqual(tree_manifest(os.path.dirname(self.file)), before)
        replaced = self.pod("mcp", "add", "a", "s", "--replace", "--", "/bin/echo", "two")
        self.assertEqual((replaced.status, replaced.out), (0, ""), replaced)
        self.assertEqual(self.one_line(replaced), "kirocrew-pod: s: it is replaced; until now it ran /bin/echo one")
        self.assertEqual(self.read()["mcpServers"]["s"], {"command": "/bin/echo", "args": ["two"]})
        refused = self.pod("mcp", "rm", "a", "s", "--replace")
        self.assertEqual(refused.status, 2, refused)

    def test_a_new_pod_has_none_and_gets_its_first(self):
        self.pod_with()
        self.assertEqual(self.pod("mcp", "ls", "a", "--json").json, [])
        self.assertEqual(self.pod("probe", "a", "--json").json["mcp"], [])
        self.add("first", FAKE, "plain")
        self.assertEqual(self.probe()["first"]["status"], "ok")
        self.assertEqual(self.pod("mcp", "rm", "a", "first").status, 0)
        self.assertEqual(self.pod("mcp", "ls", "a").out, "")

    def test_a_file_that_cannot_be_used_is_named_and_left(self):
        self.pod_with()
        victim = os.path.join(self.dir, "victim")
        with open(victim, "w") as text:
            text.write('{"mcpServers": {"theirs": {"command": "/bin/true"}}}')
        before = tree_manifest(self.dir)[os.fsencode(victim)]
        os.makedirs(os.path.dirname(self.file), exist_ok=True)
        for make in (lambda: os.symlink(victim, self.file), lambda: os.mkfifo(self.file), lambda: os.mkdir(self.file),
                     lambda: self.write(b"{ no json"), lambda: self.write(b"[]"), lambda: self.write(b'{"mcpServers": {}, "mcpServers": {}}'),
                     lambda: self.write(b" " * (2 << 20))):
            make()
            for words in (("mcp", "ls", "a"), ("mcp", "add", "a", "x", "--", "/bin/true"), ("mcp", "rm", "a", "theirs"), ("probe", "a"), ("mcp", "run", "a", "theirs")):
                done = self.pod(*words, timeout=20)
                self.assertNotIn(done.status, (0, 2), (words, done))
                self.assertIn("mcp.json", self.one_line(done))
                self.assertEqual(done.out, "")
            (os.rmdir if os.path.isdir(self.file) and not os.path.islink(self.file) else os.unlink)(self.file)
        self.assertEqual(tree_manifest(self.dir)[os.fsencode(victim)], before)

    def write(self, body):
        with open(self.file, "wb") as text:
            text.write(body)


class Run(ServersTest):
    def test_bytes_and_status_pass_through_and_the_scratch_goes(self):
        self.pod_with()
        self.add("echo", FAKE, "echo", "5")
        body = bytes(range(256)) * 4096 + b"\n\0tail without newline"
        process = self.running("echo")
        out, err = process.communicate(body, timeout=60)
        self.assertEqual((process.returncode, err), (5, b""))
        self.assertTrue(out == body, f"{len(out)} of {len(body)} bytes")
        self.assertEqual(self.left(), [])

    def test_signals_reach_the_server_and_its_end_is_told_as_a_shell_does(self):
        self.pod_with()
        self.add("term", FAKE, "term")
        process = self.running("term")
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.terminate()
        self.assertEqual((process.wait(timeout=30), self.left()), (42, []))
        self.add("waits", "/bin/sh", "-c", "echo ready; exec sleep 1000")
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
            process = self.running("waits")
            self.assertEqual(process.stdout.readline(), b"ready\n")
            process.send_signal(number)
            self.assertEqual((process.wait(timeout=30), self.left()), (128 + number, []))
        self.add("raises", "/bin/sh", "-c", "kill -SEGV $$")
        self.assertEqual((self.pod("mcp", "run", "a", "raises").status, self.left()), (128 + signal.SIGSEGV, []))

    def test_a_server_that_leaves_a_daemon_leaves_nothing(self):
        self.pod_with()
        before = self.strangers()
        self.add("leaves", "/bin/sh", "-c", "setsid sleep 1000 & exit 0")
        self.assertEqual(self.pod("mcp", "run", "a", "leaves").status, 0)
        self.assertEqual((self.strangers(), self.left()), (before, []))

    def test_M12_environment_and_directory_are_those_of_a_probe(self):
        self.pod_with()
        place = os.path.join(self.dir, "place")
        os.makedirs(place)
        self.add("s", "/bin/sh", "-c", f"n=$(mktemp -p {place}); pwd >$n; env -0 | sort -z >>$n; exec {FAKE} plain", TMPDIR=f"{self.run_dir}/x", Temp="/tmp", OTHER="a b")
        env = {"SLACK_SECRET": "x", "AWS_SECRET_ACCESS_KEY": "x", "TMPDIR": self.dir, "KEPT": "1"}
        self.probe(env=env)
        self.env.update(env)
        process = self.running("s")
        process.communicate(b"", timeout=30)
        normal = []
        for entry in os.listdir(place):
            with open(os.path.join(place, entry), "rb") as text:
                normal.append(re.sub(rb"probe-[0-9a-f]{8}", b"probe-N", text.read()))
        self.assertEqual(len(normal), 2)
        self.assertEqual(normal[0], normal[1])
        self.assertTrue(normal[0].startswith(os.path.join(self.report["home"], "workspace").encode() + b"\n"))
        entries = normal[0].split(b"\n", 1)[1].split(b"\0")
        self.assertIn(b"OTHER=a b", entries)
        self.assertIn(b"KEPT=1", entries)
        self.assertIn(f"HOME={self.report['os_home']}".encode(), entries)
        for key in TRIPLE:
            self.assertIn(f"{key}={self.scratches}/probe-N/tmp".encode(), entries)
        for gone in (b"SLACK_", b"AWS_SECRET", b"Temp="):
            self.assertEqual([entry for entry in entries if entry.startswith(gone)], [])


if __name__ == "__main__":
    unittest.main()
