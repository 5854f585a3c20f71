"""What a newcomer meets in the first hour: each mistake is answered with what, why and what to do, in one line, and nothing is made."""

import os
import unittest

from behind import BehindTest
from plane import BACKEND, SERVE

MISTAKES = (
    # words, status, what the line says
    ((), 2, "a verb is missing", "`kirocrew-pod --help`"),
    (("strat", "a"), 2, "strat: there is no such verb", "down, ls, status", "`kirocrew-pod --help`"),
    (("--config",), 2, "--config: a file has to follow"),
    (("--config", "/no/such.ini", "ls"), 1, "/no/such.ini cannot be read", "No such file"),
    (("up",), 2, "a word is missing", "kirocrew-pod up NAME", "`kirocrew-pod up --help`"),
    (("up", "demo"), 3, "no worktree", "has this name", "--checkout DIR, or a command (`up`: after `--`; `run`: with --payload WORDS)"),
    (("up", "demo", "python3", "-m", "http.server"), 2, "-m", "a command stands after `--`"),
    (("up", "demo", "sleep", "5"), 2, "one word too many", "after `--`"),
    (("up", "demo", "--"), 2, "no command after `--`"),
    (("up", "my pod", "--", "true"), 2, "my pod: not a pod name", "use 1 to 61 of"),
    (("up", "demo", "--", "no-such-program"), 3, "not found: no-such-program, searched", "install it or name another"),
    (("up", "demo", "--", "/etc/passwd"), 3, "/etc/passwd cannot be executed"),
    (("up", "demo", "--checkout", "/no/such/tree"), 3, "/no/such/tree/.venv/bin/kirocrew"),
    (("up", "demo", "--port", "5476", "--", "sleep", "5"), 70, "never binds the live port", "--port"),
    (("up", "demo", "--port", "http", "--", "sleep", "5"), 2, "http", "from 1 to 65535"),
    (("up", "demo", "--health", "ping", "--", "sleep", "5"), 2, "http, http:/PATH, tcp or none"),
    (("up", "demo", "--seed", "big", "--", "sleep", "5"), 78, "big: the seed cannot be used", "there are: connections-two, minimal"),
    (("up", "demo", "--memory-max", "lots", "--", "sleep", "5"), 2, "lots: not a memory limit", "512M"),
    (("up", "demo", "--cpu-quota", "2", "--", "sleep", "5"), 2, "2: not a processor quota", "150%"),
    (("up", "demo", "--wait-secs", "0", "--", "sleep", "5"), 2, "--wait-secs takes a whole number from 1"),
    (("up", "demo", "--backend", "docker", "--", "sleep", "5"), 2, "auto, systemd, launchd, embedded"),
    (("up", "demo", "--owner", "me", "--", "sleep", "5"), 2, "--owner takes a whole number"),
    (("up", "demo", "--owner", "4194304", "--", "sleep", "5"), 78, "4194304: the owner cannot be watched: there is no such process", "--owner PID"),
    (("up", "demo", "--ttl", "5", "--", "sleep", "5"), 2, "a number and a unit", "3h"),
    (("run", "demo"), 2, "the command stands after `--`", "`kirocrew-pod run --help`"),
    (("run", "demo", "--", "true"), 3, "no worktree", "`run`: with --payload WORDS"),
    (("run", "demo", "--payload", "sleep 5", "--", "no-such-program"), 127, "not found: no-such-program, searched"),
    (("run", "demo", "--payload", "it's", "--", "true"), 2, "it's", "a ' has no end"),
    (("ls", "demo"), 3, "demo: there is no such pod"),
    (("ls", "--state", "running"), 2, "running: a state is one of up, starting"),
    (("status", "demo"), 3, "demo: there is no such pod", "`kirocrew-pod ls`"),
    (("logs", "demo"), 3, "demo: there is no such pod", "`kirocrew-pod ls`"),
    (("url", "demo"), 3, "demo: there is no such pod", "`kirocrew-pod ls`"),
    (("exec", "demo", "ls"), 2, "after `--`", "`kirocrew-pod exec --help`"),
    (("probe", "demo"), 3, "demo: there is no such pod"),
    (("down",), 2, "give names, or --all"),
    (("prune", "--older-than", "3"), 2, "a number and a unit", "3h"),
    (("prune", "--all", "--older-than", "3d"), 2, "exclude each other"),
    (("render", "demo"), 2, "--for takes systemd or launchd"),
    (("mcp", "show", "demo"), 2, "show: `mcp` does add, rm, ls and run"),
    (("mcp", "add", "demo", "s"), 2, "usage: kirocrew-pod mcp add NAME SERVER"),
    (("mcp", "ls", "demo"), 3, "demo: there is no such pod"),
    (("logs", "demo", "-n", "all"), 2, "--lines takes a whole number"),
)

SETTINGS = (
    ("KIROCREW_POD_BASE_PORT", "http", "0 to 65534"),
    ("KIROCREW_POD_PORT_SPAN", "0", "1 to 10000"),
    ("KIROCREW_POD_UNIT_PREFIX", "a@b", "1 to 40 of"),
    ("KIROCREW_POD_BACKEND", "docker", "auto, systemd, launchd or embedded"),
)


class FirstHour(BehindTest):
    def expect(self, result, status, *words):
        self.assertEqual(result.status, status, result)
        line = self.one_line(result)
        for word in words:
            self.assertIn(word, line)
        return line

    def test_mistakes_on_the_command_line(self):
        for words, status, *said in MISTAKES:
            with self.subTest(words):
                self.expect(self.pod(*words), status, *said)
                self.assertEqual(self.ls(), {})
                self.assertFalse(os.path.isdir(self.root) and [e for e in os.listdir(self.root) if not e.startswith(".")])

    def test_help_is_found_in_every_spelling(self):
        shown = self.pod("up", "--help").out
        for words in (("help", "up"), ("--help", "up"), ("up", "-h"), ("up", "x", "--help")):
            self.assertEqual(self.pod(*words).out, shown)
        self.assertEqual(self.pod("help").out, self.pod("--help").out)
        self.expect(self.pod("help", "strat"), 2, "strat: there is no such verb")

    def test_settings(self):
        for variable, value, said in SETTINGS:
            with self.subTest(variable):
                self.expect(self.pod("up", "a", "--", *SERVE, env={variable: value}), 78, variable, value, said, "correct it")
                self.assertFalse(os.path.exists(self.root))

    def test_a_root_that_cannot_be_one_leads_to_doctor(self):
        with open(self.root, "w"):
            pass
        self.expect(self.pod("ls"), 1, self.root, "Not a directory", "`kirocrew-pod doctor`")
        advice = {check["check"]: check for check in self.pod("doctor", "--json").json["checks"]}["root"]
        self.assertIn("move it away", advice["remedy"])
        os.unlink(self.root)
        self.expect(self.pod("up", "a", "--", *SERVE, env={"KIROCREW_POD_ROOT": "/proc/pods"}), 1, "/proc/pods", "cannot be made", "`kirocrew-pod doctor`")

    def test_a_server_that_forgets_its_port_is_told(self):
        result = self.pod("up", "a", "--", "/bin/sleep", "1000")
        self.assertEqual(result.status, 0, result)
        line = self.one_line(result)
        for words in ("nothing was asked of port", "{port}", "--health tcp", "--health none"):
            self.assertIn(words, line)
        self.assertEqual(len(self.pod("up", "b", "--json", "--", "/bin/sleep", "1000").json["warnings"]), 1)
        for name, flags, words in (("c", ("--health", "none"), ("/bin/sleep", "1000")), ("d", (), SERVE)):
            quiet = self.pod("up", name, *flags, "--", *words)
            self.assertEqual((quiet.status, quiet.err), (0, ""))

    def died(self, script):
        result = self.pod("up", "a", "--", "/bin/sh", "-c", script + "; exec false {port}")
        self.assertEqual(self.pod("down", "a").status, 0)
        return result

    def test_a_payload_that_ends(self):
        ended = self.died("exit 0")
        self.expect(ended, 1, "died before it was ready: status 0", "foreground")
        silent = self.died("exit 4")
        self.assertIn("died before it was ready: status 4; ", silent.err)
        if BACKEND == "embedded":
            self.expect(silent, 1, "status 4; nothing is in its log")
        told = self.died("echo no such table >&2; exit 4")
        self.assertIn("  | no such table", told.err)
        self.assertIn("status 4; the end of its log is above", told.err)
        own = self.died("exit 78")
        self.assertEqual(own.status, 78)
        self.assertIn("it ended with status 78", own.err)
        self.assertIn("the command's own", own.err)

    def test_a_payload_that_does_not_serve(self):
        silent = self.pod("up", "a", "--wait-secs", "1", "--", "/bin/sh", "-c", "exec sleep 1000 # {port}")
        self.expect(silent, 1, "not ready within 1 s", "nothing listens on port", "--wait-secs")
        deaf = self.pod("up", "a", "--wait-secs", "1", "--health", "http", "--", "/usr/bin/python3", "-c",
                        "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); time.sleep(1000)", "{port}")
        self.expect(deaf, 1, "it listens on port", "does not answer")
        self.assertEqual(self.ls(), {})

    def test_a_record_that_was_edited_wrongly_is_named(self):
        self.quiet("a")
        with open(os.path.join(self.pods_dir, "a.env"), "a") as record:
            record.write("PORT=junk\n")
        self.expect(self.pod("url", "a"), 78, os.path.join(self.pods_dir, "a.env"), "junk", "correct it")

    def test_a_server_that_is_not_there(self):
        self.quiet("a")
        self.expect(self.pod("mcp", "rm", "a", "notes"), 1, "notes: there is no such server", "`kirocrew-pod mcp ls NAME`")
        self.expect(self.pod("probe", "a", "notes"), 2, "no MCP server of this name", "`kirocrew-pod mcp ls NAME`")


if __name__ == "__main__":
    unittest.main()
