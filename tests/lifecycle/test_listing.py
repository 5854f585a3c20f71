"""ls and status for people: aligned, cut to the terminal, coloured there only, filtered."""

import os
import signal
import subprocess
import unittest

from plane import BACKEND, SERVE, PlaneTest
from terminal import Terminal, plain

SLEEP = ("/bin/sleep", "1000")
QUIET = ("--health", "none")


def parent(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rpartition(")")[2].split()[1])


class Listing(PlaneTest):
    def on_terminal(self, *words, env=None, **size):
        terminal = Terminal(self.command(*words), {**self.env, **(env or {})}, self.dir, **size)
        self.addCleanup(terminal.close)
        return terminal.end()

    def some_pods(self):
        self.up("a", *SLEEP, flags=QUIET)
        self.up("a-much-longer-name.of-a_pod", *SERVE)
        self.assertEqual(self.pod("up", "refused", *QUIET, "--", "/bin/sh", "-c", "exit 3", config=self.dead_agent()).status, 78)

    def dead_agent(self):
        path = os.path.join(self.dir, "settings.ini")
        with open(path, "w") as text:
            text.write("[agent]\nexec = /bin/false\n")
        return path

    def test_columns_are_aligned_and_no_line_ends_with_blanks(self):
        self.some_pods()
        lines = self.pod("ls").out.splitlines()
        self.assertEqual(len(lines), 4)
        at = lines[0].index("STATE")
        self.assertEqual([line[at:].split()[0] for line in lines[1:]], ["up", "up", "refused"])
        self.assertEqual({line[at - 1] for line in lines}, {" "})
        end = lines[0].index("PORT") + 4
        for line, pod in zip(lines[1:], self.pod("ls", "--json").json):
            self.assertEqual(line[:end].split()[-1], str(pod["port"]))
        self.assertEqual([line for line in lines if line != line.rstrip()], [])
        self.assertNotIn("OWNER", lines[0])
        self.assertIn(self.ls()["refused"]["reason"], lines[3])

    def test_owner_and_time_left_are_shown_where_a_pod_has_one(self):
        owner = subprocess.Popen(["/bin/sleep", "1000"])
        self.addCleanup(owner.wait)
        self.addCleanup(owner.kill)
        self.up("a", *SLEEP, flags=("--owner", str(owner.pid), *QUIET))
        self.up("b", *SLEEP, flags=("--ttl", "1h", *QUIET))
        for words in (("ls",), ("status", "a")):
            lines = self.pod(*words).out.splitlines()
            self.assertEqual(lines[1][lines[0].index("OWNER") :].split()[0], str(owner.pid))
        self.assertRegex(self.pod("ls", "b").out.splitlines()[1], r" (59|60)m$")

    def test_a_terminal_is_never_overrun(self):
        self.some_pods()
        for columns in (200, 100, 80, 60, 40, 20, 5, 1):
            said = self.on_terminal("ls", columns=columns)
            lines = plain(said).splitlines()
            self.assertEqual(len(lines), 4, said)
            if columns >= 40:
                self.assertTrue(all(len(line) <= columns for line in lines), (columns, said))
                self.assertTrue(lines[2].startswith("a-much-longer-name.of-a_pod  up"), said)
        cut = plain(self.on_terminal("ls", columns=80)).splitlines()[3]
        self.assertTrue(cut.endswith("…") and len(cut) == 80, cut)
        self.assertIn(self.ls()["refused"]["reason"], plain(self.on_terminal("status", "refused", columns=80)))

    def test_colour_on_a_terminal_only_and_not_with_NO_COLOR(self):
        self.some_pods()
        self.assertIn("\x1b[32mup\x1b[m", self.on_terminal("ls"))
        self.assertIn("\x1b[31mrefused\x1b[m", self.on_terminal("status", "refused"))
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}):
            self.assertNotIn("\x1b", self.on_terminal("ls", env=env))
        self.assertIn("\x1b", self.on_terminal("ls", env={"NO_COLOR": ""}))
        self.assertNotIn("\x1b", self.pod("ls", env={"TERM": "xterm"}).out)
        self.assertNotIn("\x1b", self.on_terminal("ls", "--json"))

    def test_names_and_states_choose(self):
        self.some_pods()
        self.assertEqual([pod["name"] for pod in self.pod("ls", "--json", "refused", "a").json], ["a", "refused"])
        self.assertEqual([pod["name"] for pod in self.pod("ls", "--json", "--state", "refused").json], ["refused"])
        both = self.pod("ls", "--json", "--state=refused", "--state", "up").json
        self.assertEqual([pod["name"] for pod in both], ["a", "a-much-longer-name.of-a_pod", "refused"])
        self.assertEqual(self.pod("ls", "--json", "--state", "up", "refused").json, [])
        none = self.pod("ls", "--state", "stopped")
        self.assertEqual((none.status, none.out), (0, ""), none)
        self.one_line(none)

    def test_a_name_that_is_not_there_is_told_and_the_others_are_shown(self):
        self.up("a", *SLEEP, flags=QUIET)
        for words in (("ls", "nobody", "a"), ("ls", "--json", "nobody", "a")):
            shown = self.pod(*words)
            self.assertEqual(shown.status, 3, shown)
            self.assertIn("nobody", self.one_line(shown))
            self.assertIn("a", shown.out)

    def test_strangers_are_listed_with_the_rest(self):
        self.up("a", *SLEEP, flags=QUIET)
        os.mkdir(os.path.join(self.root, "not a pod"))
        self.assertIn("not a pod  foreign", self.pod("ls").out)
        self.assertEqual(len(self.pod("ls", "--json", "--state", "foreign").json), 1)
        self.assertEqual(len(self.pod("ls", "--json", "a").json), 1)


class Crowd(PlaneTest):
    """So many pods that two threads look at them."""

    AT_REST = "orphan" if BACKEND == "embedded" else "stopped"  # the template of systemd's units is everybody's

    def write(self, name, text):
        with open(os.path.join(self.pods_dir, name), "w") as out:
            out.write(text)

    def at_rest(self, count):
        for number in range(count):
            name = f"rest{number}"
            os.makedirs(os.path.join(self.root, name, "os-home"), mode=0o700)
            self.write(f"{name}.env", f"PORT='{number + 1}'\nEXEC='[\"/bin/sleep\",\"1000\"]'\n")

    def odd_ones(self):
        """Each in another way."""
        self.write("bad-port.env", "PORT='many'\n")
        self.write("bad-exec.env", "EXEC='[1]'\n")
        self.write("only-record.env", "PORT='7'\nEXEC='[\"/bin/true\"]'\n")
        self.write("noted.env", "PORT='8'\nEXEC='[\"/bin/true\"]'\n")
        self.write("noted.refused", "dead\nsaid no\n")
        self.write("begun.env", "PORT='9'\nEXEC='[\"/bin/true\"]'\n")
        self.write("begun.down", "")
        os.symlink("only-record.env", os.path.join(self.pods_dir, "linked.env"))
        os.mkfifo(os.path.join(self.pods_dir, "fifo.env"))
        os.mkdir(os.path.join(self.root, "only-home"))
        os.mkdir(os.path.join(self.root, ".gone@retired"))

    def test_a_crowd_is_told_as_each_of_its_pods_is(self):
        self.up("runs", *SERVE)
        self.up("quiet", *SLEEP, flags=QUIET)
        self.at_rest(80)
        self.odd_ones()
        listed = self.pod("ls", "--json").json
        self.assertEqual([pod["name"] for pod in listed], sorted(pod["name"] for pod in listed))
        self.assertEqual(len(listed), 80 + 2 + 9)
        for pod in listed:
            alone = self.pod("status", pod["name"], "--json").json
            for key in ("state", "reason", "port", "health", "pid", "backend", "id"):
                self.assertEqual(pod[key], alone[key], pod)
        states = {pod["name"]: pod["state"] for pod in listed}
        self.assertEqual({states["runs"], states["quiet"]}, {"up"})
        self.assertEqual((states["noted"], states["begun"], states["gone"]), ("refused", "unfinished", "unfinished"))
        self.assertEqual({states[name] for name in ("bad-port", "bad-exec", "linked", "fifo", "only-home")}, {"orphan"})
        self.assertEqual({states[f"rest{number}"] for number in range(80)}, {self.AT_REST})

    def test_who_does_not_answer_changes_nothing_for_the_others(self):
        pids = {name: self.up(name, *SERVE, flags=("--health", "http"))["pid"] for name in ("a", "b", "silent1", "silent2")}
        keepers = {name: self.up(name, *SERVE)["pid"] for name in ("kept1", "kept2")} if BACKEND == "embedded" else {}
        self.at_rest(40)
        stopped = [pids["silent1"], pids["silent2"], *(parent(pid) for pid in keepers.values())]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
            self.addCleanup(os.kill, pid, signal.SIGCONT)
        pods = self.ls()
        for name in ("a", "b"):
            self.assertEqual((pods[name]["state"], pods[name]["health"]), ("up", "ok"))
        for name in ("silent1", "silent2"):
            self.assertEqual((pods[name]["state"], pods[name]["health"]), ("starting", "no answer"))
        for name in keepers:
            self.assertEqual((pods[name]["state"], pods[name]["health"]), ("failed", "-"))
            self.assertIn("its unit could not be asked", pods[name]["reason"])
        self.assertEqual({pods[f"rest{number}"]["state"] for number in range(40)}, {self.AT_REST})


if __name__ == "__main__":
    unittest.main()
