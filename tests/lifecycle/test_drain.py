"""Stopping is done when nobody is left, whatever the payload's processes do; deleting is done when the home stays away."""

import os
import signal
import time
import unittest

from behind import SLEEP, BehindTest
from plane import BACKEND, PYTHON, alive

# The main process ends at the first TERM; its child notes the TERM and stays as long as it is told to.
STUBBORN = """
import os, signal, sys, time
notes, how_long = sys.argv[1], float(sys.argv[2])
if os.fork() == 0:
    told = []
    def note(*_):
        told.append(time.monotonic())
        open(notes + ".term", "w").close()
    signal.signal(signal.SIGTERM, note)
    open(notes + ".tmp", "w").write(str(os.getpid()))
    os.rename(notes + ".tmp", notes + ".pid")
    home = os.environ["KIROCREW_HOME"]
    while not told or time.monotonic() < told[0] + how_long:
        os.makedirs(home, exist_ok=True)
        with open(home + "/writer.log", "a") as log:
            log.write("line\\n")
        time.sleep(0.05)
    os._exit(0)
while True:
    signal.pause()
"""

# Out of the session, away from its parents, with nothing of the pod in its environment; it listens and ignores TERM.
DAEMON = """
import os, signal, socket, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork():
        os._exit(0)
    listen = ("import os, signal, socket, sys, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); s = socket.socket(); "
              "s.bind(('127.0.0.1', 0)); s.listen(); f = open(sys.argv[1] + '.tmp', 'w'); "
              "f.write('%d %d' % (os.getpid(), s.getsockname()[1])); f.close(); os.rename(sys.argv[1] + '.tmp', sys.argv[1] + '.pid'); "
              "time.sleep(1000)")
    os.execve(sys.executable, [sys.executable, "-c", listen, sys.argv[1]], {})
while True:
    time.sleep(1000)
"""

# Four processes that ignore TERM and fill the home as fast as they can.
TORRENT = """
import itertools, os, signal
signal.signal(signal.SIGTERM, signal.SIG_IGN)
home = os.environ["KIROCREW_HOME"]
for _ in range(3):
    if os.fork() == 0:
        break
for number in itertools.count():
    directory = f"{home}/d{number % 50}"
    try:
        os.makedirs(directory, exist_ok=True)
        open(f"{directory}/{os.getpid()}-{number}", "w").close()
    except OSError:
        pass
"""

# Makes its file in the home anew every 20 ms, and the home, too; keeps the newest one open.
WRITER = """
import os, sys, time
home, seconds = sys.argv[1], float(sys.argv[2])
end = time.monotonic() + seconds
held = None
while time.monotonic() < end:
    try:
        os.makedirs(home, exist_ok=True)
        new = open(home + "/again", "w")
        if held:
            held.close()
        held = new
    except OSError:
        pass
    time.sleep(0.02)
"""


class Drain(BehindTest):
    def noted(self, notes):
        self.eventually(lambda: os.path.exists(notes + ".pid"), what="the pid of the payload's child")
        with open(notes + ".pid") as text:
            return [int(word) for word in text.read().split()]

    def test_L01_a_writer_that_outlives_the_leader_never_brings_the_home_back(self):
        """Ends by itself 3 s after TERM, within the budget: waited for, then the delete."""
        notes = os.path.join(self.dir, "notes")
        report = self.up("one", *self.payload(STUBBORN, notes, "3"), flags=("--health", "none"))
        (writer,) = self.noted(notes)
        self.eventually(lambda: os.path.exists(os.path.join(report["home"], "writer.log")), what="the writer's log")
        self.down("one")
        self.assertTrue(os.path.exists(notes + ".term"))
        self.assertFalse(alive(writer))
        self.assertFalse(os.path.lexists(report["home"]))
        time.sleep(5)
        self.assert_no_residue(report["id"])

    def test_L01_a_writer_that_outlives_the_budget_is_killed(self):
        notes = os.path.join(self.dir, "notes")
        report = self.up("one", *self.payload(STUBBORN, notes, "3"), flags=("--health", "none"))
        (writer,) = self.noted(notes)
        self.down("one", flags=("--stop-secs", "1"))
        self.assertTrue(os.path.exists(notes + ".term"))
        self.assertFalse(alive(writer))
        self.assertFalse(os.path.lexists(report["home"]))
        time.sleep(5)
        self.assert_no_residue(report["id"])

    def test_L06_a_payload_that_needs_longer_gets_what_is_asked_for(self):
        """Longer than systemd would wait by itself."""
        told = os.path.join(self.dir, "told")
        self.up("one", "/bin/sh", "-c", f"trap 'sleep 17; echo done >{told}; exit 0' TERM; while :; do sleep 0.1; done", flags=("--health", "none"))
        done = self.down("one", flags=("--stop-secs", "40"), timeout=60)
        self.assertTrue(os.path.exists(told), "it was killed before its time")
        self.assertLess(done.seconds, 35)
        self.assert_no_residue()

    def test_L06_the_time_to_end_is_that_of_the_settings(self):
        settings = os.path.join(self.dir, "settings.ini")
        with open(settings, "w") as ini:
            ini.write("[payload]\nstop-secs = 1\n")
        up = self.pod("up", "one", "--health", "none", "--", "/bin/sh", "-c", "trap '' TERM; while :; do sleep 0.1; done", config=settings)
        self.assertEqual(up.status, 0, up)
        with open(os.path.join(self.pods_dir, "one.env")) as record:
            self.assertIn("STOP_SECS='1'\n", record.read())
        self.assertLess(self.down("one").seconds, 10)
        self.assert_no_residue()

    def test_L06_the_escalation_follows_the_group(self):
        notes = os.path.join(self.dir, "notes")
        report = self.up("one", *self.payload(STUBBORN, notes, "100000"), flags=("--health", "none"))
        (child,) = self.noted(notes)
        done = self.down("one", flags=("--stop-secs", "1"))
        self.assertTrue(os.path.exists(notes + ".term"), "TERM comes before KILL")
        self.assertGreaterEqual(done.seconds, 1)
        self.assertFalse(alive(report["pid"]))
        self.assertFalse(alive(child))
        self.assert_no_residue(report["id"])

    def test_L07_a_daemon_of_its_own_session_is_gone_too(self):
        notes = os.path.join(self.dir, "notes")
        report = self.up("one", *self.payload(DAEMON, notes), flags=("--health", "none"))
        daemon, _ = self.noted(notes)
        self.assertNotEqual(os.getsid(daemon), os.getsid(report["pid"]))
        self.assertTrue(alive(daemon))
        self.down("one", flags=("--stop-secs", "1"))
        self.assertFalse(alive(daemon))
        self.assert_no_residue(report["id"])

    if BACKEND == "embedded":  # systemd is never killed behind the tool's back

        def test_L07_a_daemon_is_found_after_its_keeper_was_killed(self):
            """Gone, or named: never forgotten. It stands in the home, so that it can be seen whatever its environment says."""
            notes = os.path.join(self.dir, "notes")
            report = self.up("one", *self.payload(DAEMON, notes), flags=("--health", "none"))
            daemon, _ = self.noted(notes)
            self.addCleanup(lambda: alive(daemon) and os.kill(daemon, signal.SIGKILL))
            self.assertEqual(os.readlink(f"/proc/{daemon}/cwd"), os.path.join(report["home"], "workspace"))
            self.kill_keeper(report)
            done = self.pod("down", "one", "--stop-secs", "1")
            if alive(daemon):
                self.assertEqual(done.status, 1, done)
                self.assertIn(f"pid {daemon} ", done.err)
                self.assertTrue(os.path.isdir(report["home"]))
                os.kill(daemon, signal.SIGKILL)
                self.eventually(lambda: not alive(daemon), what="the daemon's end")
                self.down("one")
            else:
                self.assertEqual(done.status, 0, done)
            self.assert_no_residue(report["id"])

    def test_X19_a_payload_that_writes_at_full_speed_is_ended_before_anything_is_deleted(self):
        report = self.up("one", *self.payload(TORRENT), flags=("--health", "none"))
        self.eventually(lambda: os.path.exists(os.path.join(report["home"], "d49")), what="the payload's files")
        self.down("one", flags=("--stop-secs", "1"))
        self.assert_no_residue(report["id"])

    def test_L15_a_writer_outside_that_ends_is_waited_out(self):
        report = self.quiet("one")
        writer = self.process(*self.payload(WRITER, report["home"], "2"))
        self.eventually(lambda: os.path.exists(os.path.join(report["home"], "again")), what="the writer's file")
        self.down("one")
        writer.wait(timeout=30)
        self.assert_no_residue(report["id"])

    def test_L15_a_writer_outside_that_never_ends_is_named(self):
        report = self.quiet("one")
        writer = self.process(*self.payload(WRITER, report["home"], "1000"))
        self.eventually(lambda: os.path.exists(os.path.join(report["home"], "again")), what="the writer's file")
        failed = self.down("one", status=1)
        self.assertIn("one", failed.err)
        self.assertIn(f"pid {writer.pid} ", failed.err)
        self.assertIn(report["home"], failed.err)
        self.assertFalse(alive(report["pid"]))
        self.assertEqual(self.state("one"), "unfinished")
        writer.kill()
        writer.wait()
        self.down("one")
        self.assert_no_residue(report["id"])

    def test_L15_a_writer_that_holds_the_directory_is_outlasted(self):
        """It writes relative to its working directory, which goes with the home: nothing can be made in it any more."""
        report = self.quiet("one")
        again = ("import os, time\nwhile True:\n"
                 " try: open('again', 'w').close()\n except OSError: pass\n time.sleep(0.02)")
        writer = self.process(PYTHON, "-c", again, cwd=os.path.join(report["home"], "workspace"))
        self.eventually(lambda: os.path.exists(os.path.join(report["home"], "workspace", "again")), what="the writer's file")
        self.down("one")
        self.assertTrue(alive(writer.pid))
        self.assert_no_residue(report["id"])


if __name__ == "__main__":
    unittest.main()
