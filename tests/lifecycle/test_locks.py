"""Verbs against each other on one name, and what becomes of their locks: killed, stopped, deleted under the holder, managers lost."""

import contextlib
import os
import random
import signal
import subprocess
import threading
import time
import unittest

from plane import BACKEND, PROGRAMS, SERVE, PlaneTest, alive

IDLE = ["/bin/sleep", "1000"]
SLOW = ["/bin/sh", "-c", "sleep 1000; : {port}"]


def only(backend):
    """What only one backend has: for the other there is no such test, so nothing to skip."""
    return (lambda test: test) if BACKEND == backend else (lambda test: None)


class Locks(PlaneTest):
    def idle(self, name, *words, **how):
        return self.up(name, *(words or IDLE), flags=("--health", "none"), **how)

    def name_lock(self, name):
        return os.path.join(self.pods_dir, f"{self.prefix}@{name}.lock")

    def holding_up(self, secs="15"):
        """An `up` that waits for a payload that never answers: it holds the name lock until then."""
        holder = self.start("up", "a", "--wait-secs", secs, "--", *SLOW)
        self.addCleanup(lambda: (holder.kill(), holder.communicate()))
        self.eventually(lambda: self.state("a") == "starting", seconds=30, what="the start")
        return holder

    # --- X54 --------------------------------------------------------------------------------------------------------------

    def race(self, first, second, allowed, rounds=30):
        rng = random.Random(54)
        for number in range(rounds):
            both = []
            for words in rng.sample((first, second), 2):
                both.append((words, self.start(*words)))
                time.sleep(rng.uniform(0, 0.05))
            for words, process in both:
                out, err = process.communicate(timeout=120)
                self.assertIn(process.returncode, allowed[words[0]], (number, words, out, err))
            self.judge(number)

    def judge(self, number):
        """Whichever came first, what is shown is there and nothing else."""
        pods = self.ls()
        self.assertTrue(set(pods) <= {"a"}, (number, pods))
        if "a" in pods:
            self.assertEqual(pods["a"]["state"], "up", (number, pods))
            self.assertTrue(alive(pods["a"]["pid"]))
            self.assertTrue(os.path.isdir(self.home("a")))
        else:
            self.assertFalse(os.path.lexists(self.home("a")))
            self.assert_no_residue()

    UP = ("up", "a", "--health", "none", "--", *IDLE)

    def test_X54_up_against_down(self):
        self.race(self.UP, ("down", "a"), {"up": (0, 75), "down": (0, 75)})

    def test_X54_down_against_down(self):
        for number in range(30):
            self.idle("a")
            both = [self.start("down", "a") for _ in range(2)]
            for process in both:
                out, err = process.communicate(timeout=120)
                self.assertIn(process.returncode, (0, 75), (number, out, err))
            self.assertEqual(self.ls(), {})
            self.assert_no_residue()

    def test_X54_prune_never_takes_a_pod_in_the_making(self):
        for number in range(30):
            up, prune = self.start(*self.UP), self.start("prune", "--all")
            time.sleep(random.uniform(0, 0.05))
            second = self.start("prune", "--all")
            out, err = up.communicate(timeout=120)
            self.assertIn(up.returncode, (0, 75), (number, out, err))
            for process in (prune, second):
                _, err = process.communicate(timeout=120)
                self.assertIn(process.returncode, (0, 1), (number, err))
            self.judge(number)
            if up.returncode == 0:
                self.assertEqual(self.state("a"), "up", number)
            self.down("a")

    def test_X54_prune_against_down(self):
        for number in range(30):
            os.makedirs(os.path.join(self.home("a"), "os-home"), mode=0o700)
            both = [self.start("down", "a"), self.start("prune", "--all")]
            for process, allowed in zip(both, ((0, 75), (0, 1))):
                out, err = process.communicate(timeout=120)
                self.assertIn(process.returncode, allowed, (number, out, err))
            self.assertEqual(self.ls(), {})
            self.assert_no_residue()

    # --- X55 --------------------------------------------------------------------------------------------------------------

    def test_X55_a_killed_holder_releases(self):
        holder = self.holding_up("600")
        self.assertEqual(self.pod("down", "a").status, 75)
        holder.kill()
        holder.communicate()
        self.down("a", flags=("--stop-secs", "1"))
        self.assert_no_residue()
        self.up("a")

    def test_X55_a_stopped_holder_is_waited_for_within_bounds_and_named(self):
        holder = self.holding_up("600")
        holder.send_signal(signal.SIGSTOP)
        busy = self.pod("down", "a", timeout=30)
        self.assertEqual(busy.status, 75, busy)
        self.assertIn(f"{self.prefix}@a.lock", self.one_line(busy))
        self.assertEqual(self.state("a"), "starting")
        other = self.idle("b")
        self.down("b")
        self.assert_processes_gone(other)
        holder.kill()
        holder.communicate()
        self.down("a", flags=("--stop-secs", "1"))
        self.assert_no_residue()

    def assert_processes_gone(self, report):
        self.assertEqual([pid for pid in self.processes_of(report["id"]) if alive(pid)], [])

    def test_X55_a_lock_file_deleted_or_remade_while_held_makes_no_second_holder(self):
        holder = self.holding_up("600")
        for remake in (lambda path: os.unlink(path), lambda path: open(path, "w").close(), lambda path: (os.unlink(path), open(path, "w").close())):
            remake(self.name_lock("a"))
            for words in (("down", "a"), ("up", "a", "--", *SERVE)):
                busy = self.pod(*words, timeout=30)
                self.assertEqual(busy.status, 75, (words, busy))
            self.assertEqual(self.state("a"), "starting")
        holder.kill()
        holder.communicate()
        self.down("a", flags=("--stop-secs", "1"))
        self.assert_no_residue()

    def test_X55_workers_exclude_each_other_while_the_lock_file_is_deleted_all_the_time(self):
        end, wrong = time.monotonic() + 12, []

        def vandal():
            while time.monotonic() < end:
                with contextlib.suppress(OSError):
                    os.unlink(self.name_lock("a"))
                time.sleep(0.003)

        def worker(number):
            rng = random.Random(number)
            while time.monotonic() < end:
                words = rng.choice((self.UP, ("down", "a")))
                done = self.pod(*words, timeout=120)
                if done.status not in (0, 75):
                    wrong.append((words, done))

        threads = [threading.Thread(target=vandal), *(threading.Thread(target=worker, args=(n,)) for n in range(6))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(wrong, [])
        self.judge(0)
        self.down("a")
        self.assert_no_residue()

    # --- X43, X44, X58: the manager is lost -----------------------------------------------------------------------------------

    def living(self, report):
        return [pid for pid in self.processes_of(report["id"]) if alive(pid)]

    def keeper_of(self, report):
        with open(f"/proc/{report['pid']}/stat") as line:
            parent = int(line.read().rpartition(")")[2].split()[1])
        with open(f"/proc/{parent}/cmdline", "rb") as words:
            self.assertIn(b"_keep", words.read().split(b"\0"))
        return parent

    @only("embedded")
    def test_X43_keeper_killed_payload_alive(self):
        for verb in (("down", "a", "--stop-secs", "1"), ("prune", "--all")):
            report = self.idle("a", os.path.join(PROGRAMS, "crowd"), "wide", "5")
            self.eventually(lambda: len(self.living(report)) == 6, what="six processes")
            os.kill(self.keeper_of(report), signal.SIGKILL)
            self.eventually(lambda: self.ls()["a"]["state"] == "failed", what="the loss")
            self.assertIn("keeper was killed", self.ls()["a"]["reason"])
            self.assertGreaterEqual(len(self.living(report)), 5)
            done = self.pod(*verb)
            self.assertEqual(done.status, 0, done)
            self.assertEqual(self.living(report), [])
            self.assert_no_residue(report["id"])

    @only("embedded")
    def test_X43_keeper_killed_while_up_waits(self):
        starting = self.start("up", "a", "--wait-secs", "30", "--", *SLOW)
        self.eventually(lambda: self.state("a") == "starting", what="the start")
        os.kill(self.keeper_of(self.ls()["a"]), signal.SIGKILL)
        _, err = starting.communicate(timeout=60)
        self.assertEqual(starting.returncode, 1, err)
        self.down("a", flags=("--stop-secs", "1"))
        self.assert_no_residue()

    @only("embedded")
    def test_X44_a_keeper_without_room_to_fork_or_open(self):
        """It stays, or ends with the child stopped; never a child that nobody knows."""
        report = self.idle("a")
        keeper = self.keeper_of(report)
        for limit in (("--nofile=3:3",), ("--nproc=0:0",)):
            subprocess.run(["prlimit", "--pid", str(keeper), *limit], check=True)
            for _ in range(3):
                self.pod("status", "a")
        os.kill(report["pid"], signal.SIGKILL)
        time.sleep(7)
        shown = self.pod("status", "a", "--json")
        self.assertEqual(shown.status, 0, shown)
        living = [pid for pid in self.processes_of(report["id"]) if alive(pid)]
        if living:
            self.assertIn(shown.json["pid"], living)
        self.down("a", flags=("--stop-secs", "1"))
        self.assert_no_residue(report["id"])

    @only("embedded")
    def test_X58_a_keeper_that_does_not_answer(self):
        report = self.idle("a")
        keeper = self.keeper_of(report)
        os.kill(keeper, signal.SIGSTOP)
        seen = self.pod("status", "a", "--json", timeout=60)
        self.assertEqual(seen.status, 0, seen)
        self.assertNotIn(seen.json["state"], ("orphan", "stopped"))
        refused = self.pod("prune", "--all", timeout=60)
        self.assertTrue(alive(report["pid"]), refused)
        self.down("a", flags=("--stop-secs", "1"), timeout=60)
        self.assert_no_residue(report["id"])

    @only("systemd")
    def test_X58_the_manager_stands_still(self):
        """A manager that does not answer: bounded, truthful, and nothing is assumed."""
        report = self.idle("a")
        manager = int(os.environ["USER_MANAGER_PID"])
        os.kill(manager, signal.SIGSTOP)
        try:
            seen = self.pod("ls", "--json", timeout=120)
            pruned = self.pod("prune", "--all", timeout=120)
            gone = self.pod("down", "a", timeout=120)
        finally:
            os.kill(manager, signal.SIGCONT)
        if seen.status == 0:
            self.assertNotIn(seen.json[0]["state"], ("orphan", "stopped", "up"))
        else:
            self.one_line(seen)
        self.assertNotEqual(gone.status, 0, gone)
        self.one_line(gone)
        self.assertTrue(alive(report["pid"]), pruned)
        self.assertTrue(os.path.isdir(report["home"]))
        self.assertEqual(self.state("a"), "up")
        self.down("a")
        self.assert_no_residue(report["id"])

    @only("systemd")
    def test_X58_the_manager_is_restarted_while_up_waits(self):
        starting = self.start("up", "a", "--wait-secs", "20", "--json", "--", "/bin/sh", "-c", f"sleep 5; exec {' '.join(SERVE)}")
        self.eventually(lambda: self.state("a") == "starting", seconds=30, what="the start")
        subprocess.run(["systemctl", "--user", "daemon-reexec"], check=True, timeout=60)
        out, err = starting.communicate(timeout=90)
        self.assertEqual(starting.returncode, 0, (out, err))
        self.assertEqual(self.state("a"), "up")
        self.down("a")
        self.assert_no_residue()


if __name__ == "__main__":
    unittest.main()
