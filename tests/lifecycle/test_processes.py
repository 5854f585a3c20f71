"""Payloads that do not end, end in every way there is, or lose their manager: what is started, what is shown, and what `down` leaves."""

import os
import signal
import subprocess
import time
import unittest

from plane import BACKEND, PROGRAMS, PYTHON, SERVE, PlaneTest, alive

CROWD = os.path.join(PROGRAMS, "crowd")
IDLE = ["/bin/sleep", "1000"]
CLEAN = [0, -signal.SIGHUP, -signal.SIGINT, -signal.SIGTERM, -signal.SIGPIPE]
TERMINAL = [3, 70, 78]
FAILURES = [1, *(n for n in range(64, 78) if n != 70), 126, 127, *range(200, 244, 3), 243, -signal.SIGABRT, -signal.SIGKILL, -signal.SIGSEGV]
SIGNAL_TO_THE_TOOL = """
import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
signal.signal(signal.SIGPIPE, signal.SIG_IGN)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGALRM, signal.SIGCHLD, signal.SIGUSR2})
os.execv(sys.argv[1], sys.argv[1:])
"""


def status_of(pid):
    with open(f"/proc/{pid}/status") as lines:
        return dict(line.split(":\t", 1) for line in lines if ":\t" in line)


def running(pids):
    """Zombies that nobody waits for are no processes any more."""
    return [pid for pid in pids if alive(pid)]


class Idle(PlaneTest):
    def idle(self, name, *words, flags=(), **how):
        return self.up(name, *(words or IDLE), flags=("--health", "none", *flags), **how)

    def crowd(self, *words, count=1):
        report = self.idle("a", CROWD, *words)
        self.eventually(lambda: len(running(self.processes_of(report["id"]))) >= count, seconds=60, what=f"{count} processes")
        return report

    def assert_gone(self, report, secs="1"):
        self.down("a", flags=("--stop-secs", secs), timeout=120)
        self.assert_no_residue(report["id"])
        self.assertEqual(running(self.processes_of(report["id"])), [])


class Crowds(Idle):
    def test_X37_one_that_ignores_all_signals(self):
        self.assert_gone(self.crowd("deaf"))

    def test_X37_one_that_stops_itself(self):
        report = self.idle("a", CROWD, "stopped")
        self.eventually(lambda: status_of(report["pid"])["State"].startswith("T"), what="the stop")
        self.assert_gone(report)

    def test_X37_a_frozen_group(self):
        report = self.crowd("wide", "20", count=21)
        if BACKEND == "systemd":
            frozen = subprocess.run(["systemctl", "--user", "freeze", f"{self.prefix}@a.service"], stderr=subprocess.PIPE)
            self.assertEqual(frozen.returncode, 0, frozen)
        else:
            for pid in self.processes_of(report["id"]):
                os.kill(pid, signal.SIGSTOP)
        self.assert_gone(report)

    def test_X37_a_tree_of_500(self):
        self.assert_gone(self.crowd("tree", "500", count=500))

    def test_X37_a_bomb_of_2000(self):
        self.assert_gone(self.crowd("wide", "2000", count=1500))

    def test_X37_one_that_starts_itself_anew_all_the_time(self):
        self.assert_gone(self.crowd("respawn", count=2))

    def test_X37_a_thousand_zombies(self):
        report = self.idle("a", CROWD, "zombies", "1000")
        self.assert_gone(report)


class Processes(Idle):
    # --- X38 --------------------------------------------------------------------------------------------------------------

    def ends_at_once(self, ways):
        flag = os.path.join(self.dir, "now")
        names = {f"e{'s' if way < 0 else 'x'}{abs(way)}": way for way in ways}
        starting = [self.start("up", name, "--health", "none", "--", CROWD, "ends", str(way), flag, os.path.join(self.dir, name)) for name, way in names.items()]
        for process in starting:
            out, err = process.communicate(timeout=120)
            self.assertEqual(process.returncode, 0, (out, err))
        self.assertEqual({pod["state"] for pod in self.ls().values()}, {"up"})
        open(flag, "w").close()
        seen = {}

        def settled():
            for name, pod in self.ls().items():
                if pod["state"] not in ("up", "starting"):
                    seen.setdefault(name, (pod["state"], pod["reason"]))
            return len(seen) == len(names)

        self.eventually(settled, seconds=60, what="every end")
        for name, way in names.items():
            state, reason = seen[name]
            expected = "stopped" if way in CLEAN else "refused" if way in TERMINAL else "restarting"
            self.assertEqual(state, expected, (name, seen[name]))
            if expected == "restarting":
                self.assertIn(f"signal {-way}" if way < 0 else f"status {way}", reason)
            if expected == "refused":
                self.assertIn(f"status {way}", reason)

        def starts(name):
            with open(os.path.join(self.dir, name)) as lines:
                return len(lines.readlines())

        restarted = [name for name, way in names.items() if way not in CLEAN + TERMINAL]
        self.eventually(lambda: all(starts(name) >= 2 for name in restarted), seconds=60, what="every restart")
        self.assertEqual([name for name in names if name not in restarted and starts(name) != 1], [])
        self.down("--all", timeout=200)
        self.assert_no_residue()
        os.unlink(flag)

    def test_X38_clean_and_terminal_ends(self):
        self.ends_at_once(CLEAN + TERMINAL)

    def test_X38_failures_are_started_again(self):
        self.ends_at_once(FAILURES[:18])
        self.ends_at_once(FAILURES[18:])

    # --- X42 --------------------------------------------------------------------------------------------------------------

    def test_X42_the_payload_has_three_descriptors_and_the_gate(self):
        gate = f"{self.prefix}@a@boot.lock"
        more = [os.open("/dev/null", os.O_RDONLY) for _ in range(20)]
        self.addCleanup(lambda: [os.close(fd) for fd in more])
        report = self.idle("a", pass_fds=more)
        fds = {int(fd): os.readlink(f"/proc/{report['pid']}/fd/{fd}") for fd in os.listdir(f"/proc/{report['pid']}/fd")}
        others = [target for fd, target in fds.items() if fd > 2]
        self.assertEqual(others, [os.path.join(self.pods_dir, gate)])

    def test_X42_up_returns_although_the_payload_keeps_its_descriptors(self):
        """The pipes of `up` reach their end: nothing that it started holds them."""
        report = self.pod("up", "a", "--wait-secs", "2", "--", CROWD, "deaf", "{port}", timeout=60)
        self.assertEqual(report.status, 1, report)
        report = self.idle("b", CROWD, "deaf")
        self.assertTrue(alive(report["pid"]))

    # --- X62, X63 -----------------------------------------------------------------------------------------------------------

    def test_X62_signals_ignored_and_blocked_by_the_caller(self):
        for words in (("up", "a", "--json", "--health", "none", "--", *IDLE), ("exec", "a", "--", "/bin/cat", "/proc/self/status")):
            done = subprocess.run([PYTHON, "-c", SIGNAL_TO_THE_TOOL, *self.command(*words)], env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
            self.assertEqual(done.returncode, 0, done)
            if words[0] == "exec":
                status = dict(line.split(":\t", 1) for line in done.stdout.decode().splitlines() if ":\t" in line)
            else:
                status = status_of(self.ls()["a"]["pid"])
            self.assertEqual((int(status["SigBlk"], 16), int(status["SigIgn"], 16)), (0, 0), words)
        done = subprocess.run([PYTHON, "-c", SIGNAL_TO_THE_TOOL, *self.command("down", "a")], env=self.env, cwd=self.dir, timeout=60)
        self.assertEqual(done.returncode, 0)
        self.assert_no_residue()

    def limited(self, limits, *words, timeout=60):
        return subprocess.run(["/bin/bash", "-c", f'{limits}; exec "$0" "$@"', *self.command(*words)], env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=timeout)

    def test_X63_few_descriptors_and_small_files(self):
        for limits in ("ulimit -n 10", "ulimit -n 16", "ulimit -f 1", "ulimit -f 0", "ulimit -n 4"):
            done = self.limited(limits, "up", "a", "--health", "none", "--", *IDLE)
            self.assertGreaterEqual(done.returncode, 0, (limits, done))
            if done.returncode == 0:
                self.assertEqual(self.state("a"), "up")
            else:
                self.assertTrue(done.stderr.startswith(b"kirocrew-pod: ") or done.returncode == 1, (limits, done))
            record = os.path.join(self.pods_dir, "a.env")
            if os.path.exists(record):
                with open(record) as lines:
                    self.assertIn("ID='", lines.read())
            self.down("a")
            self.assert_no_residue()
        self.idle("a")
        for limits in ("ulimit -n 10", "ulimit -f 1"):
            seen = self.limited(limits, "ls", "--json")
            self.assertTrue(seen.returncode == 0 or b"kirocrew-pod: " in seen.stderr, (limits, seen))
        gone = self.limited("ulimit -n 64; ulimit -f 1", "down", "a")
        self.assertEqual(gone.returncode, 0, gone)
        self.assert_no_residue()

    def test_X63_a_thousand_inherited_descriptors_are_not_passed_on(self):
        done = subprocess.run(["/bin/bash", "-c", 'ulimit -n 2048; for n in $(seq 3 1022); do eval "exec $n</dev/null"; done; exec "$0" "$@"',
                               *self.command("up", "a", "--health", "none", "--", *IDLE)], env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(len(os.listdir(f"/proc/{self.ls()['a']['pid']}/fd")), 4)

    # --- L36 --------------------------------------------------------------------------------------------------------------

    def test_L36_a_pid_that_is_an_innocents_is_never_signalled(self):
        innocent = subprocess.Popen(IDLE)
        self.addCleanup(innocent.wait)
        self.addCleanup(innocent.kill)
        with open(f"/proc/self/task/{os.getpid()}/stat") as _:
            pass
        for pid in (innocent.pid, 0, 1, -1, "text", os.getpid()):
            report = self.idle("a")
            record = os.path.join(self.pods_dir, "a.env")
            with open(record, "a") as lines:
                lines.write(f"PID='{pid}'\nKEEPER='{pid}'\nMAIN_PID='{pid}'\n")
            self.assertEqual(self.ls()["a"]["pid"], report["pid"])
            self.down("a")
            self.assert_no_residue(report["id"])
            self.assertTrue(alive(innocent.pid))

    # --- X45 --------------------------------------------------------------------------------------------------------------

    def test_X45_signals_during_up_are_rolled_back_or_listed(self):
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for wait in (0.0, 0.02, 0.05, 0.1, 0.3, 0.8):
                process = self.start("up", "a", "--wait-secs", "20", "--", "/bin/sh", "-c", "sleep 1000; : {port}")
                time.sleep(wait)
                process.send_signal(number)
                time.sleep(0.01)
                process.send_signal(number)
                process.communicate(timeout=60)
                self.assertNotEqual(process.returncode, 0)
                listed, there = self.ls(), os.path.lexists(self.home("a"))
                self.assertTrue("a" in listed or not there, listed)
                self.down("a", flags=("--stop-secs", "1"))
                self.assert_no_residue()
        self.up("a")


if __name__ == "__main__":
    unittest.main()
