"""One line on a terminal for what takes longer: what is waited for. It is gone when the result is there, and nothing of it is ever in a file."""

import os
import unittest

from plane import PYTHON, PlaneTest
from terminal import Terminal

SLOW = (
    "import http.server, os, time\ntime.sleep(2.5)\n"
    "http.server.HTTPServer(('127.0.0.1', int(os.environ['PORT'])), http.server.SimpleHTTPRequestHandler).serve_forever()"
)
DEAF = "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nopen('deaf', 'w')\ntime.sleep(1000)"
ERASE = "\r\x1b[K"


class Progress(PlaneTest):
    def on_terminal(self, *words, env=None, **size):
        terminal = Terminal(self.command(*words), {**self.env, **(env or {})}, self.dir, both=True, **size)
        self.addCleanup(terminal.close)
        said = terminal.end(60)
        self.assertEqual(terminal.process.returncode, 0, said)
        return said

    def test_up_says_what_it_waits_for(self):
        said = self.on_terminal("up", "a", "--health", "http", "--", PYTHON, "-c", SLOW)
        port = self.ls()["a"]["port"]
        self.assertRegex(said, rf"a: runs, and does not listen on port {port} yet \(\d s\)")
        head, _, rest = said.rpartition(ERASE)
        self.assertTrue(rest.startswith("a is up at http://"), said)
        self.assertNotIn("\n", head)

    def test_down_says_what_it_waits_for(self):
        self.up("a", PYTHON, "-c", DEAF, flags=("--health", "none"))
        self.eventually(lambda: os.path.exists(os.path.join(self.home("a"), "workspace", "deaf")), what="the payload")
        said = self.on_terminal("down", "a", "--stop-secs", "2")
        self.assertRegex(said, r"a: is asked to end, and killed after 2 s \(\d s\)")
        self.assertTrue(said.endswith(f"{ERASE}a: gone\n"), said)

    def test_run_shows_it_and_its_command_has_a_clean_line(self):
        said = self.on_terminal("run", "a", "--health", "http", "--payload", f"{PYTHON} -c '{SLOW.replace(chr(39), chr(34))}'", "--", "echo", "here")
        self.assertIn("does not listen", said)
        self.assertIn(f"{ERASE}here\n", said)

    def test_a_narrow_terminal_is_not_overrun(self):
        said = self.on_terminal("up", "a", "--health", "http", "--", PYTHON, "-c", SLOW, columns=20)
        lines = [line for line in said.rpartition(ERASE)[0].split(ERASE) if line]
        self.assertTrue(lines and all(len(line) < 20 for line in lines), said)

    def test_nothing_of_it_where_there_is_no_terminal(self):
        quiet = self.pod("up", "a", "--health", "http", "--", PYTHON, "-c", SLOW, env={"TERM": "xterm"})
        self.assertEqual((quiet.status, quiet.err), (0, ""), quiet)
        said = self.on_terminal("up", "b", "--health", "http", "--", PYTHON, "-c", SLOW, env={"TERM": "dumb"})
        self.assertNotIn("\x1b", said)
        self.assertNotIn("does not listen", said)


if __name__ == "__main__":
    unittest.main()
