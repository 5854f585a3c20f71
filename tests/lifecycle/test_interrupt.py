"""A signal that asks for the end of an `up`: what the call made is taken back, and what was there before is as it was."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import time
import unittest

from behind import SLEEP, BehindTest
from plane import PYTHON, SERVE, alive

SILENT = ("/bin/sh", "-c", ": {port}; exec sleep 1000")  # is asked on its port and never answers
STUBBORN = (PYTHON, "-c", "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)  # {port}")

class Interrupt(BehindTest):
    def waiting(self, *words, state="starting", **how):
        """An `up` of one that has started its pod and waits for the answer."""
        process = self.start("up", "one", *words, **how)
        self.addCleanup(lambda: (process.kill(), process.communicate()) if process.poll() is None else None)
        self.eventually(lambda: self.state("one") == state, what=state)
        return process

    def ended(self, process, how):
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, out), (how, b""), err)
        return err.decode()

    def one_of(self, err, words):
        self.assertEqual(err, f"kirocrew-pod: one: interrupted before it was ready; {words}\n")

    def test_what_it_made_is_taken_back(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.waiting("--", *SILENT)
            pod_id = self.ls()["one"]["id"]
            process.send_signal(number)
            self.one_of(self.ended(process, -number), "nothing of it is kept")
            self.assertEqual(self.ls(), {})
            self.assert_no_residue(pod_id)

    def test_at_any_moment_it_is_up_and_said_so_or_not_there(self):
        self.quiet("other")
        self.down("other")
        for step in range(40):
            process = self.start("up", "one", "--", *SERVE)
            time.sleep(step / 200)
            process.send_signal(signal.SIGTERM)
            out, err = process.communicate(timeout=60)
            state, outcome = self.state("one"), (step, process.returncode, out, err)
            self.assertIn(process.returncode, (0, -signal.SIGTERM), outcome)
            self.assertEqual(state, "up" if out else None, outcome)
            if out:
                self.down("one", flags=("--stop-secs", "1"))
            self.assert_no_residue()

    @unittest.skipUnless(sys.platform == "linux", "systemd is of Linux")
    def test_a_manager_that_does_not_answer_holds_no_signal_up(self):
        runtime = os.path.join(self.dir, "runtime")
        os.makedirs(os.path.join(runtime, "systemd"))
        with socket.socket(socket.AF_UNIX) as manager:
            manager.bind(os.path.join(runtime, "systemd", "private"))
            manager.listen()
            manager.settimeout(60)
            process = self.start("up", "one", "--", *SERVE, env={"XDG_RUNTIME_DIR": runtime, "KIROCREW_POD_BACKEND": "systemd"})
            self.addCleanup(lambda: (process.kill(), process.communicate()) if process.poll() is None else None)
            peer = manager.accept()[0]
            with peer:
                peer.settimeout(60)
                self.assertIn(b"BEGIN", peer.recv(4096))
                peer.sendall(b"DATA\r\nOK " + 32 * b"1" + b"\r\nAGREE_UNIX_FD\r\n")
                self.assertIn(b"Version", peer.recv(4096))
                with open(f"/proc/{process.pid}/status") as status:
                    blocked = int(next(line for line in status if line.startswith("SigBlk:")).split()[1], 16)
                self.assertFalse(blocked & 1 << signal.SIGTERM - 1)
                process.send_signal(signal.SIGTERM)
                self.ended(process, -signal.SIGTERM)
        self.assertEqual(self.ls(), {})

    def test_a_shell_that_waits_for_it_sees_the_status_of_a_signal(self):
        script = '"$@" & sleep 0; up=$!; while ! "$0" ls --state starting | grep -q one; do sleep 0.1; done; kill -TERM $up; wait $up'
        done = subprocess.run(["/bin/bash", "-c", script, *self.command(), *self.command("up", "one", "--", *SILENT)], env=self.env, timeout=60,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 128 + signal.SIGTERM, done)
        self.assertEqual(self.ls(), {})

    def test_a_stopped_pod_is_as_it_was(self):
        report = self.quiet("one")
        kept = os.path.join(report["home"], "workspace", "kept")
        open(kept, "w").close()
        os.kill(report["pid"], signal.SIGTERM)
        self.eventually(lambda: self.state("one") == "stopped", what="the end")
        with open(os.path.join(self.pods_dir, "one.env"), "rb") as record:
            before = record.read()
        process = self.waiting("--", *SILENT)
        process.send_signal(signal.SIGTERM)
        self.one_of(self.ended(process, -signal.SIGTERM), "it is as it was before")
        with open(os.path.join(self.pods_dir, "one.env"), "rb") as record:
            self.assertEqual(record.read(), before)
        self.assertTrue(os.path.exists(kept))
        self.assertNotIn(self.state("one"), ("up", "starting"))
        self.assertEqual(self.quiet("one")["id"], report["id"])
        self.down("one")
        self.assert_no_residue(report["id"])

    def test_a_pod_that_runs_is_left_alone(self):
        report = self.up("one", *SERVE, flags=("--health", "http"))
        os.kill(report["pid"], signal.SIGSTOP)
        process = self.waiting()
        process.send_signal(signal.SIGINT)
        self.one_of(self.ended(process, -signal.SIGINT), "it runs, and is left alone")
        os.kill(report["pid"], signal.SIGCONT)
        self.eventually(lambda: self.state("one") == "up", what="its answer")
        pod = self.ls()["one"]
        self.assertEqual((pod["pid"], pod["id"]), (report["pid"], report["id"]))
        self.down("one")
        self.assert_no_residue(report["id"])

    def test_the_second_signal_ends_at_once(self):
        process = self.waiting("--", *STUBBORN)
        pod = self.ls()["one"]
        self.eventually(lambda: self.ignores_term(pod["pid"]), what="the payload")
        process.send_signal(signal.SIGINT)
        self.eventually(lambda: self.state("one") == "stopped", what="the stop")  # "it is being stopped"
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.ended(process, -signal.SIGINT), "")
        self.assertTrue(alive(pod["pid"]))
        self.down("one", flags=("--stop-secs", "1"))
        self.assert_no_residue(pod["id"])

    def ignores_term(self, pid):
        with open(f"/proc/{pid}/status") as status:
            (ignored,) = [int(line.split()[1], 16) for line in status if line.startswith("SigIgn")]
        return ignored >> (signal.SIGTERM - 1) & 1

    def test_what_the_caller_ignores_stays_ignored(self):
        """As nohup has it, and a shell for what it starts in the background."""
        answer = os.path.join(self.dir, "answer")
        script = "while [ ! -e %s ]; do sleep 0.05; done; exec %s" % (answer, " ".join(SERVE))
        process = self.waiting("--", "/bin/sh", "-c", script, preexec_fn=lambda: [signal.signal(n, signal.SIG_IGN) for n in (signal.SIGHUP, signal.SIGINT)])
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGHUP):
            process.send_signal(number)
        open(answer, "w").close()
        out, err = process.communicate(timeout=60)
        self.assertEqual((process.returncode, err), (0, b""), out)
        self.assertEqual(self.state("one"), "up")
        self.down("one")
        self.assert_no_residue()

    def test_nothing_is_made_by_one_that_still_waits_for_the_lock(self):
        self.quiet("other")
        held = os.path.join(self.pods_dir, f"{self.prefix}@@plane.lock")
        with open(held, "a") as plane:

            fcntl.flock(plane, fcntl.LOCK_EX)
            process = self.start("up", "one", "--", *SLEEP)
            self.eventually(lambda: os.path.exists(os.path.join(self.pods_dir, f"{self.prefix}@one.lock")), what="its name lock")
            process.send_signal(signal.SIGTERM)
            self.ended(process, -signal.SIGTERM)
        self.assertEqual(list(self.ls()), ["other"])
        self.assertFalse(os.path.exists(self.home("one")))

if __name__ == "__main__":
    unittest.main()
