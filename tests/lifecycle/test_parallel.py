"""Many at once: different pods never meet, one pod has one worker at a time, and a killed worker leaves what `ls` shows and `down` removes."""

import os
import random
import signal
import subprocess
import threading
import time
import unittest

from plane import SERVE, PlaneTest


class Parallel(PlaneTest):
    def test_32_up_and_32_down_at_once(self):
        names = [f"p{number}" for number in range(32)]
        starting = {name: self.start("up", name, "--json", "--wait-secs", "120", "--", *SERVE) for name in names}
        for name, process in starting.items():
            out, err = process.communicate(timeout=200)
            self.assertEqual(process.returncode, 0, (name, out, err))
        pods = self.ls()
        self.assertEqual(sorted(pods), sorted(names))
        self.assertEqual({pod["state"] for pod in pods.values()}, {"up"})
        self.assertEqual(len({pod["port"] for pod in pods.values()}), 32)
        for pod in pods.values():
            self.assertEqual(self.get(pod["port"])[0], 200)
        stopping = {name: self.start("down", name) for name in names}
        for name, process in stopping.items():
            out, err = process.communicate(timeout=200)
            self.assertEqual((process.returncode, err), (0, b""), (name, out, err))
        self.assert_no_residue(*(pod["id"] for pod in pods.values()))

    def test_two_up_of_one_name_do_not_harm_each_other(self):
        for _ in range(5):
            both = [self.start("up", "one", "--json", "--", *SERVE) for _ in range(2)]
            ends = []
            for process in both:
                out, err = process.communicate(timeout=120)
                ends.append((process.returncode, out, err))
            self.assertIn(0, [status for status, _, _ in ends], ends)
            self.assertTrue({status for status, _, _ in ends} <= {0, 75}, ends)
            self.assertEqual(self.state("one"), "up")
            self.down("one")
            self.assert_no_residue()

    def test_L30_other_surroundings_exclude_each_other_all_the_same(self):
        other = os.path.join(self.dir, "other")
        os.makedirs(other)
        holder = self.start("up", "one", "--wait-secs", "8", "--", "/bin/sh", "-c", "sleep 1000; : {port}")
        self.eventually(lambda: os.path.exists(os.path.join(self.pods_dir, "one.env")), what="the record")
        home = os.environ.get("HOME", "/")
        busy = self.pod("down", "one", env={"TMPDIR": other, "HOME": home.rstrip("/") + "/./"})
        self.assertEqual(busy.status, 75, busy)
        self.assertIn("one", self.one_line(busy))
        holder.communicate(timeout=60)
        self.assertEqual(self.ls(), {})

    def test_L30_a_lock_that_cannot_be_opened_is_fatal(self):
        os.makedirs(self.pods_dir, mode=0o700)
        victim = os.path.join(self.dir, "victim")
        os.symlink(victim, os.path.join(self.pods_dir, f"{self.prefix}@one.lock"))
        failed = self.pod("up", "one", "--", *SERVE)
        self.assertEqual(failed.status, 1, failed)
        self.assertIn(f"{self.prefix}@one.lock", self.one_line(failed))
        self.assertFalse(os.path.lexists(victim))
        self.assertFalse(os.path.lexists(self.home("one")))

    def test_L37_one_name_many_workers(self):
        """20 up and 20 down at a time, mixed with ls: one winner at a time, busy is 75, no torn state."""
        end = time.monotonic() + 15
        wrong = []

        def worker(number):
            rng = random.Random(number)
            while time.monotonic() < end:
                verb = rng.choice(("up", "down", "ls"))
                words = {"up": ("up", "one", "--health", "none", "--", "/bin/sleep", "1000"), "down": ("down", "one"), "ls": ("ls", "--json")}[verb]
                done = self.pod(*words, timeout=120)
                allowed = {"up": (0, 75, 1), "down": (0, 75), "ls": (0,)}[verb]
                if done.status not in allowed or "Sanitizer" in done.err:
                    wrong.append((words, done))

        workers = [threading.Thread(target=worker, args=(number,)) for number in range(20)]
        for thread in workers:
            thread.start()
        for thread in workers:
            thread.join()
        self.assertEqual(wrong, [])
        self.down("one")
        self.assert_no_residue()
        self.up("one")

    def test_L11_killed_at_any_moment(self):
        """INT, TERM or KILL after 0 to 300 ms of `up` or `down`: never an unlisted home, never something that a later `up` trusts."""
        rng = random.Random(11)
        for number in range(40):
            verb = ("up", "down")[number % 2]
            if verb == "down":
                self.pod("up", "one", "--health", "none", "--", "/bin/sleep", "1000")
            words = ("up", "one", "--", *SERVE) if verb == "up" else ("down", "one")
            process = self.start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rng.uniform(0, 0.3))
            process.send_signal(rng.choice((signal.SIGINT, signal.SIGTERM, signal.SIGKILL)))
            process.wait(timeout=60)
            listed = set(self.ls())
            on_disk = {e for e in os.listdir(self.root) if not e.startswith(".")} if os.path.isdir(self.root) else set()
            self.assertTrue(on_disk <= listed, (on_disk, listed))
            self.down("one")
            self.assert_no_residue()
        self.up("one")


if __name__ == "__main__":
    unittest.main()
