"""run NAME -- CMD: up, the command, down, whatever happens."""

import contextlib
import os
import pty
import select
import signal
import subprocess
import time
import unittest

from plane import PYTHON, PlaneTest, alive
from test_owner import SOON, watch_units

PAYLOAD = f"{PYTHON} -m http.server {{port}} --bind 127.0.0.1"
QUIET = ("--health", "none", "--payload", "/bin/sleep 1000")


class Run(PlaneTest):
    def run_pod(self, *command, flags=QUIET, **how):
        return self.pod("run", "demo", *flags, "--", *command, **how)

    def started(self, *command, flags=QUIET, **how):
        """A run whose command has begun: it makes the file `begun`."""
        process = self.start("run", "demo", *flags, "--", *command, **how)
        self.addCleanup(process.stdout and process.stdout.close)
        self.addCleanup(process.stderr and process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.eventually(lambda: os.path.exists(os.path.join(self.dir, "begun")), 30, "the command")
        return process

    def assert_nothing(self):
        self.assertEqual(self.ls(), {})
        self.eventually(lambda: not watch_units(self.prefix), 5, "the end of who watched")
        self.assert_no_residue()

    def read(self, name):
        with open(os.path.join(self.dir, name)) as text:
            return text.read()

    def test_the_command_sees_the_pod_and_its_status_is_passed_on(self):
        script = (
            "import os, sys, urllib.request as u; e = os.environ; n = 'KIROCREW_POD_'\n"
            "assert u.urlopen(e[n + 'URL']).status == 200\n"
            "assert e[n + 'URL'] == 'http://127.0.0.1:' + e[n + 'PORT'], e\n"
            "assert os.path.isdir(e[n + 'HOME']) and os.path.basename(e[n + 'HOME']) == e[n + 'NAME'] == 'demo'\n"
            "print(os.getcwd(), sys.stdin.read()); sys.exit(7)"
        )
        done = self.run_pod(PYTHON, "-c", script, flags=("--payload", PAYLOAD))
        self.assertEqual((done.status, done.out, done.err), (7, f"{self.dir} \n", ""), done)
        self.assert_nothing()

    def test_a_command_that_ends_well_and_one_that_a_signal_ends(self):
        self.assertEqual(self.run_pod("true").status, 0)
        self.assert_nothing()
        for number in (signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM):
            self.assertEqual(self.run_pod("/bin/sh", "-c", f"kill -{int(number)} $$").status, 128 + number)
            self.assert_nothing()

    def test_payload_words_are_split_as_a_shell_would(self):
        script = os.path.join(self.dir, "pay load.py")
        with open(script, "w") as text:
            text.write(f"import sys, time\nopen({os.path.join(self.dir, 'words')!r}, 'w').write(repr(sys.argv[1:]))\ntime.sleep(1000)\n")
        self.run_pod(
            "/bin/sh", "-c", "until [ -s words ]; do sleep 0.05; done",
            flags=("--health", "none", "--payload", f"{PYTHON} '{script}' 'a b' \"c'd\" $HOME \\*"),
        )
        self.assertEqual(self.read("words"), repr(["a b", "c'd", "$HOME", "*"]))
        for words in ("'", "", " ", "a \\"):
            refused = self.run_pod("true", flags=("--health", "none", f"--payload={words}"))
            self.assertEqual(refused.status, 2, refused)
            self.one_line(refused)
        self.assert_nothing()

    def test_a_failing_up_keeps_its_status_and_the_command_never_starts(self):
        for payload, flags, status in (("/bin/false", ("--health", "tcp"), 1), ("/no/such", (), 3), ("/bin/sleep 1", ("--port", "5476"), 70)):
            failed = self.run_pod("/bin/sh", "-c", ": >begun", flags=("--payload", payload, *flags))
            self.assertEqual(failed.status, status, failed)
            self.assertFalse(os.path.exists(os.path.join(self.dir, "begun")))
            self.assert_nothing()

    def test_a_refused_boot_leaves_nothing_listed(self):
        settings = os.path.join(self.dir, "settings.ini")
        with open(settings, "w") as text:
            text.write("[agent]\nexec = /bin/false\n")
        refused = self.run_pod("/bin/sh", "-c", ": >begun", config=settings)
        self.assertEqual(refused.status, 78, refused)
        self.assertIn("agent", refused.err)
        self.assertFalse(os.path.exists(os.path.join(self.dir, "begun")))
        self.assert_nothing()

    def test_bad_commands_are_told_before_anything_is_made(self):
        for command, status in ((("no-such-command",), 127), (("/etc",), 126), (("/etc/passwd",), 126), ((), 2)):
            refused = self.run_pod(*command)
            self.assertEqual(refused.status, status, refused)
            self.one_line(refused)
            self.assertFalse(os.path.lexists(self.root))
        refused = self.pod("run", "demo", *QUIET)
        self.assertEqual(refused.status, 2, refused)

    def test_a_pod_that_exists_is_refused_and_left_alone(self):
        report = self.up("demo", "/bin/sleep", "1000", flags=("--health", "none"))
        refused = self.run_pod("/bin/sh", "-c", ": >begun")
        self.assertEqual(refused.status, 78, refused)
        self.assertIn("demo", self.one_line(refused))
        self.assertFalse(os.path.exists(os.path.join(self.dir, "begun")))
        self.assertEqual(self.ls()["demo"]["id"], report["id"])
        self.assertTrue(alive(report["pid"]))

    def test_TERM_and_INT_of_kill_reach_the_command_first(self):
        script = "trap 'echo {0} >heard; kirocrew_ls >seen; exit 9' {0}; : >begun; while :; do sleep 0.1; done"
        for name in ("TERM", "INT", "HUP"):
            ls = f"{self.command()[0]} ls --json"
            process = self.started("/bin/sh", "-c", script.format(name).replace("kirocrew_ls", ls))
            process.send_signal(getattr(signal, "SIG" + name))
            process.communicate(timeout=30)
            self.assertEqual(process.returncode, 9)
            self.assertEqual(self.read("heard"), name + "\n")
            self.assertIn('"state":"up"', self.read("seen").replace(" ", ""))
            self.assert_nothing()
            os.unlink(os.path.join(self.dir, "begun"))

    def test_a_command_that_a_passed_on_signal_ends(self):
        process = self.started("/bin/sh", "-c", ": >begun; exec sleep 1000")
        process.terminate()
        process.communicate(timeout=30)
        self.assertEqual(process.returncode, 128 + signal.SIGTERM)
        self.assert_nothing()

    def test_what_the_caller_ignores_the_command_ignores_too(self):
        """As below nohup: a terminal that is closed ends neither."""
        seen, go = os.path.join(self.dir, "seen"), os.path.join(self.dir, "go")
        script = f": >begun; grep SigIgn /proc/self/status >{seen}.new; mv {seen}.new {seen}; while [ ! -e {go} ]; do sleep 0.05; done; exit 5"
        process = self.started("/bin/sh", "-c", script, preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.eventually(lambda: os.path.exists(seen), what="the command")
        with open(seen) as text:
            self.assertTrue(int(text.read().split()[1], 16) >> (signal.SIGHUP - 1) & 1)
        process.send_signal(signal.SIGHUP)
        time.sleep(0.2)
        self.assertIsNone(process.poll())
        open(go, "w").close()
        self.assertEqual(process.wait(30), 5)
        self.assert_nothing()

    def test_INT_of_the_terminal_reaches_the_command_once(self):
        script = (
            "import os, signal, sys, time\n"
            "heard = []\n"
            "signal.signal(signal.SIGINT, lambda *x: heard.append(1))\n"
            "assert sys.stdin.isatty() and os.tcgetpgrp(0) == os.getpgrp()\n"
            "open('begun', 'w')\n"
            "time.sleep(1.5)\n"
            "sys.exit(40 + len(heard))"
        )
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.dir)
            os.execve(self.command()[0], self.command("run", "demo", *QUIET, "--", PYTHON, "-c", script), self.env)
        self.eventually(lambda: os.path.exists(os.path.join(self.dir, "begun")), 30, "the command")
        os.write(terminal, b"\x03")
        said = b""
        with contextlib.suppress(OSError):
            while select.select([terminal], [], [], 30)[0]:
                more = os.read(terminal, 4096)
                if not more:
                    break
                said += more
        os.close(terminal)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 41, said)
        self.assert_nothing()

    def test_a_signal_while_up_waits_takes_everything_back_and_no_command_starts(self):
        flags = ("--wait-secs", "60", "--payload", "/bin/sh -c 'sleep 1000; : {port}'")
        for number in (signal.SIGINT, signal.SIGTERM):
            process = self.start("run", "demo", *flags, "--", "/bin/sh", "-c", ": >begun")
            self.eventually(lambda: os.path.isdir(os.path.join(self.home("demo"), "os-home")), what="the boot")
            process.send_signal(number)
            process.communicate(timeout=30)
            self.assertEqual(process.returncode, 128 + number)
            self.assertFalse(os.path.exists(os.path.join(self.dir, "begun")))
            self.assert_nothing()

    def test_a_killed_run_takes_pod_and_command_along(self):
        process = self.started("/bin/sh", "-c", "echo $$ >pid; : >begun; exec sleep 1000")
        command = int(self.read("pid"))
        process.kill()
        process.wait()
        self.eventually(lambda: not self.ls(), SOON, "the end of the pod")
        self.eventually(lambda: not alive(command), SOON, "the end of the command")
        self.assert_nothing()

    def test_a_run_killed_at_any_moment_leaves_nothing_that_stays(self):
        for number in range(12):
            process = self.start("run", "demo", *QUIET, "--", "sleep", "1000")
            time.sleep(number * 0.03)
            process.kill()
            process.communicate()
            pods = self.eventually(lambda: [pods for pods in [self.ls()] if not pods or {p["state"] for p in pods.values()} <= {"orphan", "stopped", "unfinished"}],
                                   10, "the end of what ran")
            if pods[0]:
                # Killed between its first file and the first process of the pod: nothing runs, and the next of that name begins anew.
                self.assertFalse(pods[0]["demo"]["owner_alive"], pods)
            self.assertEqual(self.run_pod("true").status, 0)
            self.assert_nothing()

    def test_what_a_killed_run_or_down_left_of_a_home_is_no_pod(self):
        self.assertEqual(self.run_pod("true").status, 0)
        rest = os.path.join(self.root, ".demo@retired")
        os.makedirs(os.path.join(rest, "workspace"), 0o700)
        self.assertEqual(self.ls()["demo"]["state"], "unfinished")
        done = self.run_pod("true")
        self.assertEqual((done.status, done.err), (0, ""), done)
        self.assert_nothing()

    def test_a_pod_whose_down_was_begun_is_left_alone(self):
        report = self.up("demo", "/bin/sleep", "1000", flags=("--health", "none"))
        rest = os.path.join(self.root, ".demo@retired")
        os.mkdir(rest, 0o700)
        refused = self.run_pod("true")
        self.assertEqual(refused.status, 78, refused)
        self.assertTrue(os.path.isdir(rest))
        self.assertEqual(self.ls()["demo"]["id"], report["id"])

    def test_a_record_that_cannot_be_read_is_not_taken_for_that_of_another_pod(self):
        record = os.path.join(self.pods_dir, "demo.env")
        done = self.run_pod("/bin/sh", "-c", f"mv {record} {record}.aside && mkdir {record}")
        self.assertEqual(done.status, 1, done)
        self.assertRegex(done.err, "kirocrew-pod: demo: whether it is the same pod cannot be found out: ")
        self.assertIn("demo", self.ls())
        os.rmdir(record)
        os.rename(record + ".aside", record)
        self.down("demo", flags=("--stop-secs", "1"))
        self.assert_nothing()

    def test_a_time_over_ends_the_pod_and_not_the_command(self):
        done = self.run_pod("/bin/sh", "-c", "sleep 3; exit 5", flags=("--ttl", "1s", *QUIET))
        self.assertEqual((done.status, done.err), (5, ""), done)
        self.assert_nothing()

    def test_descriptors_of_the_caller_reach_the_command_and_ours_do_not(self):
        read, write = os.pipe()
        script = (
            "import fcntl, os, sys\n"
            "def is_open(fd):\n"
            "    try: return fcntl.fcntl(fd, fcntl.F_GETFD) >= 0\n"
            "    except OSError: return False\n"
            "print(*filter(is_open, range(200)))\n"
            f"os.write({write}, b'through')"
        )
        process = self.start("run", "demo", *QUIET, "--", PYTHON, "-c", script, pass_fds=(write,))
        os.close(write)
        out, _ = process.communicate(timeout=30)
        self.assertEqual(os.read(read, 100), b"through")
        os.close(read)
        self.assertEqual(out.decode().split(), ["0", "1", "2", str(write)])


if __name__ == "__main__":
    unittest.main()
