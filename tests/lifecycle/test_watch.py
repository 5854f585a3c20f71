"""ls --watch: shown again when something changes, and at rest while nothing does."""

import json
import os
import signal
import socket
import subprocess
import threading
import time
import unittest

from plane import BACKEND, SERVE, PlaneTest
from terminal import Terminal, plain

SLEEP = ("/bin/sleep", "1000")
QUIET = ("--health", "none")


class Pictures:
    """What a watch that writes JSON has said, line by line."""

    def __init__(self, test, *words):
        self.process = test.start("ls", "--watch", "--json", *words)
        self.all = []
        self.thread = threading.Thread(target=self.read)
        self.thread.start()
        test.addCleanup(self.end)

    def read(self):
        for line in self.process.stdout:
            self.all.append({pod["name"]: pod["state"] for pod in json.loads(line)})

    def end(self):
        self.process.kill()
        self.process.wait()
        self.thread.join()
        self.process.stdout.close()
        self.process.stderr.close()


class Watch(PlaneTest):
    def last(self, pictures, states):
        self.eventually(lambda: pictures.all and pictures.all[-1] == states, 15, f"{states} in {pictures.all}")

    def test_pods_that_come_change_and_go_are_seen(self):
        pictures = Pictures(self)
        self.last(pictures, {})
        report = self.up("a", *SERVE)
        self.last(pictures, {"a": "up"})
        self.up("b", *SLEEP, flags=QUIET)
        self.last(pictures, {"a": "up", "b": "up"})
        os.kill(report["pid"], signal.SIGKILL)
        self.eventually(lambda: {"a": "restarting", "b": "up"} in pictures.all, 15, f"the failure in {pictures.all}")
        self.last(pictures, {"a": "up", "b": "up"})
        self.down("b")
        self.last(pictures, {"a": "up"})
        self.down("a")
        self.last(pictures, {})

    if BACKEND == "embedded":  # a keeper has places, the user manager has none

        def test_so_many_watch_that_no_place_is_free_and_it_is_still_asked_to_end(self):
            told = os.path.join(self.dir, "told")
            self.up("a", "/bin/sh", "-c", f"trap 'echo asked >{told}; exit 0' TERM; while :; do sleep 0.1; done", flags=QUIET)
            watchers = []
            for _ in range(40):
                watcher = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                self.addCleanup(watcher.close)
                watcher.connect(os.path.join(self.pods_dir, "a.sock"))
                watcher.send(b"kirocrew-keeper 1\nwatch\n")
                watchers.append(watcher)
            self.assertEqual(self.state("a"), "up")
            self.down("a")
            self.assertTrue(os.path.exists(told), "it was killed without having been asked")
            self.assert_no_residue()

    def test_one_that_answers_at_last_is_seen(self):
        slow = "import http.server, os, time\ntime.sleep(4)\nhttp.server.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), http.server.SimpleHTTPRequestHandler).serve_forever()"
        pictures = Pictures(self)
        self.last(pictures, {})
        self.up("a", "/usr/bin/python3", "-c", slow, flags=("--health", "http"))
        self.last(pictures, {"a": "up"})
        self.assertIn({"a": "starting"}, pictures.all)

    def test_names_and_states_choose(self):
        pictures = Pictures(self, "--state", "stopped", "a", "b")
        for name in ("a", "c"):
            self.up(name, "/bin/sh", "-c", "sleep 0.5", flags=QUIET)
        self.last(pictures, {"a": "stopped"})
        self.down("a", "c")
        self.last(pictures, {})

    def test_a_root_that_is_moved_and_made_anew_is_followed(self):
        self.up("a", *SLEEP, flags=QUIET)
        self.down("a")
        pictures = Pictures(self)
        self.last(pictures, {})
        os.rename(self.root, self.root + ".old")
        os.rename(self.pods_dir, self.pods_dir + ".old")
        self.up("b", *SLEEP, flags=QUIET)
        self.last(pictures, {"b": "up"})

    def test_a_terminal_is_redrawn_and_fits(self):
        terminal = Terminal(self.command("ls", "--watch"), self.env, self.dir, columns=60, lines=8)
        self.addCleanup(terminal.close)
        self.assertIn(f"there are no pods in {self.root}", terminal.read(2))
        for number in range(8):
            self.up(f"p{number}", *SLEEP, flags=QUIET)
        self.eventually(lambda: "+2 more" in terminal.read(0.2), 15, "the last pod")
        picture = plain(terminal.written.decode()).replace("\r\n", "\n").split("\x1b[H\x1b[2J")[-1].split("\x1b[H")[-1]
        self.assertEqual(len(picture.splitlines()), 8, picture)
        terminal.resize(60, 30)
        self.eventually(lambda: "p7 " in terminal.read(0.2), 15, "a picture of the new size")
        terminal.process.send_signal(signal.SIGINT)
        self.assertEqual(terminal.process.wait(10), -signal.SIGINT)

    def test_who_no_longer_reads_ends_it(self):
        watch = self.start("ls", "--watch", "--json")
        watch.stdout.readline()
        watch.stdout.close()
        self.assertEqual(watch.wait(15), 0)
        self.assertEqual(watch.stderr.read(), b"")
        watch.stderr.close()

    def test_nothing_is_done_while_nothing_changes(self):
        """A hundred pods: not one system call, so no time of the processor."""
        env = {"KIROCREW_POD_BASE_PORT": "31200", "KIROCREW_POD_PORT_SPAN": "1000"}
        for first in range(0, 100, 10):
            starting = [
                subprocess.Popen(self.command("up", f"p{n}", *QUIET, "--", *SLEEP), env={**self.env, **env}, cwd=self.dir, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.PIPE)
                for n in range(first, first + 10)
            ]
            for process in starting:
                said = process.communicate(timeout=120)[1]
                self.assertEqual(process.returncode, 0, said)
        pictures = Pictures(self)
        self.eventually(lambda: pictures.all and len(pictures.all[-1]) == 100, 20, "the picture")
        time.sleep(2)

        def used():
            with open(f"/proc/{pictures.process.pid}/stat") as text:
                ticks = text.read().rpartition(")")[2].split()[11:13]
            with open(f"/proc/{pictures.process.pid}/status") as text:
                return ticks, [line for line in text if "ctxt_switches" in line]

        before = used()
        time.sleep(5)
        self.assertEqual(used(), before)
        self.down("p7")
        self.eventually(lambda: len(pictures.all[-1]) == 99, 20, "the next picture")


if __name__ == "__main__":
    unittest.main()
