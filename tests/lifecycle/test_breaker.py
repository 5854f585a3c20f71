"""Attempts to break what the README promises: each was made by hand first, and stays here as it went wrong, or nearly."""

import contextlib
import os
import shutil
import signal
import subprocess
import unittest

from plane import BACKEND, BIN, SERVE, PlaneTest, alive, tree_manifest


def only(backend, root=False):
    """What the other backend does not have is no test there; nor is a mount one for a plain user, since the tests run as root as well."""
    return (lambda test: test) if BACKEND == backend and (not root or os.getuid() == 0) else (lambda test: None)


class Breaker(PlaneTest):
    def setUp(self):
        super().setUp()
        self.victim = os.path.join(self.dir, "victim")
        os.makedirs(os.path.join(self.victim, "sub"))
        for name in ("f", "pod.log", "sub/x"):
            with open(os.path.join(self.victim, name), "w") as precious:
                precious.write(f"precious {name}\n")
        self.before = tree_manifest(self.victim)

    def quiet(self, name, **how):
        return self.up(name, "/bin/sleep", "1000", flags=("--health", "none"), **how)

    # --- who never stops writing, or stopped being found -----------------------------------------------------------------------

    def test_a_server_and_an_agent_that_never_stop_writing_are_over_at_their_deadline(self):
        self.quiet("one")
        added = self.pod("mcp", "add", "one", "flood", "--", "/usr/bin/yes")
        self.assertEqual(added.status, 0, added)
        probed = self.pod("probe", "one", "--timeout", "2", "--json", timeout=50)
        self.assertEqual(probed.status, 1, probed)
        self.assertLess(probed.seconds, 20)
        settings = os.path.join(self.dir, "settings.ini")
        with open(settings, "w") as ini:
            ini.write("[agent]\nexec = /usr/bin/yes\ntimeout = 2\n")
        self.assertEqual(self.pod("up", "two", "--wait-secs", "30", "--", *SERVE, config=settings).status, 0)

    def test_the_last_words_go_on_behind_a_byte_that_is_zero(self):
        failed = self.pod("up", "one", "--", "/bin/sh", "-c", "printf 'a\\0b\\n'; echo the cause; exit 9", "{port}")
        self.assertEqual(failed.status, 1, failed)
        self.assertIn("the cause", failed.err)
        self.assertNotIn("\0", failed.err)

    @only("embedded")
    def test_a_keeper_whose_socket_was_removed_ends_with_its_payload(self):
        report = self.quiet("one")
        with open(f"/proc/{report['pid']}/stat") as stat:
            keeper = int(stat.read().rpartition(")")[2].split()[1])
        os.unlink(os.path.join(self.pods_dir, "one.sock"))
        self.down("one")
        self.eventually(lambda: not alive(keeper), 5, "the keeper's end")
        self.assert_no_residue(report["id"])

    @only("systemd")
    def test_an_earlier_pod_of_the_name_is_not_heard_any_more(self):
        words = ("/bin/sh", "-c", "echo $0; exec sleep 1000")
        self.up("one", *words, "first words", flags=("--health", "none"))
        self.eventually(lambda: "first words" in self.pod("logs", "one").out, what="the first words")
        self.down("one")
        self.up("one", *words, "second words", flags=("--health", "none"))
        self.eventually(lambda: "second words" in self.pod("logs", "one").out, what="the second words")
        self.assertNotIn("first words", self.pod("logs", "one").out)

    def test_a_pod_that_runs_without_its_home_is_not_said_to_be_up(self):
        report = self.quiet("one")
        shutil.rmtree(report["home"])
        again = self.pod("up", "one")
        self.assertEqual(again.status, 1, again)
        self.assertIn("its home is gone", self.one_line(again))
        self.assertEqual(self.state("one"), "failed")
        self.down("one")
        self.assert_no_residue(report["id"])

    @only("embedded", root=True)
    def test_in_a_plane_of_another_user_no_lock_is_left(self):
        for path in (self.root, self.pods_dir):
            os.mkdir(path, 0o700)
            os.chown(path, 65534, 65534)
        for words in (("down", "one"), ("up", "one", "--", *SERVE)):
            refused = self.pod(*words)
            self.assertEqual(refused.status, 78, refused)
            self.assertIn("belongs to another user", self.one_line(refused))
        self.assertEqual(os.listdir(self.pods_dir), [])

    def test_a_command_of_exec_ignores_what_its_caller_ignores(self):
        self.quiet("one")
        seen = self.pod("exec", "one", "--", "/bin/grep", "SigIgn", "/proc/self/status", preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertEqual(seen.status, 0, seen)
        self.assertTrue(int(seen.out.split()[1], 16) >> (signal.SIGHUP - 1) & 1, seen)

    # --- the plane ---------------------------------------------------------------------------------------------------------

    def test_directories_of_a_plane_that_are_one_are_refused(self):
        """The home of a pod "a.env" would stand where the record of "a" belongs."""
        for variable, value in (("ENV_DIR", self.root), ("ARTIFACTS_DIR", self.root + "/"), ("ARTIFACTS_DIR", self.pods_dir)):
            refused = self.pod("up", "a", "--", *SERVE, env={f"KIROCREW_POD_{variable}": value})
            self.assertEqual(refused.status, 78, refused)
            self.assertIn(f"KIROCREW_POD_{variable}", self.one_line(refused))
            self.assertFalse(os.path.exists(self.root))
        os.makedirs(self.root, mode=0o700)
        os.symlink(self.root, os.path.join(self.dir, "again"))
        for verb in (("up", "a", "--", *SERVE), ("ls",), ("down", "a")):
            refused = self.pod(*verb, env={"KIROCREW_POD_ENV_DIR": os.path.join(self.dir, "again")})
            self.assertEqual(refused.status, 78, refused)
            self.assertIn("directory of its own", self.one_line(refused))
        self.assertEqual(os.listdir(self.root), [])

    def test_a_stray_entry_in_the_root_is_told_and_does_not_spoil_down_all(self):
        report = self.quiet("one")
        with open(self.home("notes.txt"), "w") as stray:
            stray.write("mine")
        os.mkdir(self.home("mine"))
        os.symlink(self.victim, self.home("linked"))
        pods = self.ls()
        for name in ("notes.txt", "mine", "linked"):
            self.assertEqual((pods[name]["state"], pods[name]["reason"]), ("orphan", "no `up` made what stands here; it is left alone"))
            self.assertEqual(self.pod("down", name).status, 78)
        self.down("--all")
        self.assertEqual(sorted(e for e in os.listdir(self.root)), ["linked", "mine", "notes.txt"])
        self.assertFalse(alive(report["pid"]))
        self.assertEqual(tree_manifest(self.victim), self.before)

    def test_two_planes_with_one_prefix(self):
        """Embedded they do not meet; systemd has one name for both, and the second is refused while the first has units."""
        other = {
            "KIROCREW_POD_ROOT": os.path.join(self.dir, "pods2"),
            "KIROCREW_POD_ENV_DIR": os.path.join(self.dir, "registry2"),
            "KIROCREW_POD_ARTIFACTS_DIR": os.path.join(self.dir, "artifacts2"),
        }
        first = self.quiet("one")
        second = self.pod("up", "one", "--json", "--health", "none", "--", "/bin/sleep", "1000", env=other)
        if BACKEND == "systemd":
            self.assertEqual(second.status, 78, second)
            self.assertIn("another plane uses this unit prefix", self.one_line(second))
            self.assertEqual(self.pod("ls", "--json", env=other).json, [])
        for words in (("down", "one"), ("prune", "--all"), ("down", "--all")):
            self.pod(*words, "--stop-secs", "1", env=other) if words[0] == "down" else self.pod(*words, env=other)
            self.assertTrue(alive(first["pid"]), (words, second))
            self.assertTrue(os.path.isdir(first["home"]))
            self.assertEqual(self.state("one"), "up")
        if second.status == 0:
            self.assertEqual(self.processes_of(second.json["id"]), [])
        self.down("one")
        self.assert_no_residue(first["id"])

    def test_names_that_differ_only_in_case_are_three_pods(self):
        reports = {name: self.quiet(name) for name in ("demo", "Demo", "DEMO")}
        self.assertEqual(len({report["port"] for report in reports.values()}), 3)
        self.down("demo")
        self.assertEqual(set(self.ls()), {"Demo", "DEMO"})
        self.down("--all")
        self.assert_no_residue(*(report["id"] for report in reports.values()))

    # --- the payload against its keeper --------------------------------------------------------------------------------------

    def test_a_payload_that_deletes_the_pods_dir_is_not_called_gone_while_it_lives(self):
        report = self.up("one", "/bin/bash", "-c", f"cd /; setsid sleep 1000 & sleep 0.5; rm -rf {self.pods_dir}; exec sleep 1001",
                         flags=("--health", "none"))
        self.eventually(lambda: not os.path.exists(self.pods_dir), what="the end of the pods dir")
        tried = self.pod("down", "one", "--stop-secs", "1")
        if tried.status != 0:
            self.assertEqual(tried.status, 1, tried)
            self.assertTrue(os.path.isdir(report["home"]))
            living = self.processes_of(report["id"])
            self.assertTrue(any(f"pid {pid} " in tried.err for pid in living), (living, tried))
            for pid in living:
                with contextlib.suppress(ProcessLookupError):  # the keeper may have ended it with the one before
                    os.kill(pid, signal.SIGKILL)
            self.eventually(lambda: not self.processes_of(report["id"]), what="their end")
            self.down("one")
        self.assertEqual(self.processes_of(report["id"]), [])
        self.assertFalse(os.path.exists(report["home"]))

    @only("embedded")
    def test_a_marker_with_the_id_of_another_pod_harms_nobody(self):
        """The payload can write there; what is found by it is named and never signalled."""
        other, liar = self.quiet("other"), self.quiet("liar")
        for pid in self.processes_of(liar["id"]):
            os.kill(pid, signal.SIGSTOP)
        with open(os.path.join(liar["home"], ".kirocrew-pod"), "w") as marker:
            marker.write(other["id"] + "\n")
        for name in ("liar.env", "liar.sock"):
            os.unlink(os.path.join(self.pods_dir, name))
        self.pod("down", "liar", "--stop-secs", "1")
        self.assertTrue(alive(other["pid"]))
        self.assertEqual(self.state("other"), "up")
        for pid in self.processes_of(liar["id"]):
            os.kill(pid, signal.SIGKILL)

    def test_a_payload_that_frees_itself_and_kills_its_keeper_is_gone_all_the_same(self):
        loose = "for f in /proc/self/fd/*; do n=${f##*/}; [ $n -gt 2 ] && eval \"exec $n>&-\"; done; "
        for trick in (loose, "kill -9 $PPID; ", "kill -STOP $PPID; ", loose + "kill -9 $PPID; "):
            if BACKEND != "embedded" and "PPID" in trick:
                continue
            done = os.path.join(self.dir, "tricked")
            report = self.up("one", "/bin/bash", "-c", f"cd /; setsid sleep 1000 & sleep 0.5; touch {done}; {trick} exec sleep 1001",
                             flags=("--health", "none"))
            self.eventually(lambda: os.path.exists(done), what=trick)
            os.unlink(done)
            self.down("one", flags=("--stop-secs", "1"))
            self.assert_no_residue(report["id"])

    # --- what stands where a file of the pod belongs ---------------------------------------------------------------------------

    def stand(self, path, kind):
        with_what = {
            "link": lambda: os.symlink(os.path.join(self.victim, "f"), path),
            "directory link": lambda: os.symlink(self.victim, path),
            "loop": lambda: os.symlink(path, path),
            "fifo": lambda: os.mkfifo(path),
            "hard link": lambda: os.link(os.path.join(self.victim, "f"), path),
            "huge": lambda: subprocess.run(["truncate", "-s", "3G", path], check=True),
        }
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)
        with_what[kind]()

    KINDS = ("link", "directory link", "loop", "fifo", "hard link", "huge")

    def test_records_and_notes_that_are_something_else(self):
        for name in ("one.env", "one.refused"):
            for kind in self.KINDS:
                report = self.quiet("one")
                self.stand(os.path.join(self.pods_dir, name), kind)
                self.assertIn("one", self.ls())
                self.pod("logs", "one")
                self.pod("up", "one", "--health", "none", "--wait-secs", "5")
                self.down("one", flags=("--stop-secs", "1"))
                self.assert_no_residue(report["id"])
                links = os.stat(os.path.join(self.victim, "f")).st_nlink
                self.assertEqual((links, tree_manifest(self.victim)), (1, self.before), (name, kind))

    def test_settings_of_a_pod_that_are_something_else(self):
        report = self.quiet("one")
        for place in ("kiro/settings/mcp.json", "run/mcp-tmp", "kiro/settings", "run", "kiro"):
            for kind in self.KINDS:
                self.stand(os.path.join(report["home"], place), kind)
                for words in (("mcp", "add", "one", "s", "--", "/bin/cat"), ("mcp", "ls", "one"), ("probe", "one", "--timeout", "1", "--no-sandbox")):
                    done = self.pod(*words)
                    self.assertIn(done.status, (0, 1, 78), done)
                    if kind != "hard link":  # which is that file
                        self.assertNotIn("precious", done.out + done.err)
                    self.assertTrue(os.path.lexists(os.path.join(report["home"], place)))
                    self.assertEqual(tree_manifest(self.victim), self.before, (place, kind, words))
            path = os.path.join(report["home"], place)
            os.unlink(path)
            if not place.endswith(".json"):
                os.makedirs(path, mode=0o700)
        self.down("one")
        self.assert_no_residue(report["id"])
        self.assertEqual(tree_manifest(self.victim), self.before)

    @only("embedded")
    def test_the_log_and_its_folder_are_something_else(self):
        for name in ("pod.log", "pod.log.1", None):
            for kind in self.KINDS:
                report = self.up("one", "/bin/sh", "-c", "while sleep 0.05; do echo line; done", flags=("--health", "none"))
                folder = os.path.join(self.artifacts, "one")
                self.stand(os.path.join(folder, name) if name else folder, kind)
                shown = self.pod("logs", "one")
                if kind != "hard link":
                    self.assertNotIn("precious", shown.out + shown.err)
                os.kill(report["pid"], signal.SIGKILL)
                self.eventually(lambda: not alive(report["pid"]), what="its end")
                self.pod("up", "one", "--wait-secs", "5")
                self.pod("down", "one", "--stop-secs", "1")
                self.assertEqual(self.processes_of(report["id"]), [])
                self.assertEqual(tree_manifest(self.victim), self.before, (name, kind))
                shutil.rmtree(self.artifacts, ignore_errors=True)
                self.down("one")

    # --- a full disk -------------------------------------------------------------------------------------------------------------

    @only("embedded", root=True)
    def test_a_full_disk_leaves_nothing_and_down_works(self):
        os.makedirs(self.root, mode=0o700)
        os.makedirs(self.pods_dir, mode=0o700)
        script = f"""
            set -e
            mount -t tmpfs -o size=64k,mode=700 none {self.root}
            {BIN} up one --health none -- /bin/sh -c 'head -c 200000 /dev/zero > "$HOME/big"; touch {self.dir}/filled; exec sleep 1000'
            for i in $(seq 200); do [ -e {self.dir}/filled ] && break; sleep 0.05; done
            set +e
            {BIN} up two --health none -- /bin/sleep 1000; echo "two: $?"
            ls -A {self.root}
            {BIN} mcp add one s -- /bin/cat; echo "mcp: $?"
            {BIN} down one --stop-secs 1; echo "one: $?"
            {BIN} up two --health none -- /bin/sleep 1000; echo "two again: $?"
            {BIN} down --all --stop-secs 1; echo "all: $?"
            ls -A {self.root} {self.pods_dir}
        """
        done = subprocess.run(["unshare", "-m", "bash", "-c", script], env=self.env, cwd=self.dir, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=120).stdout.decode()
        for line in ("two: 78", "mcp: 1", "one: 0", "two again: 0", "all: 0"):
            self.assertIn(line + "\n", done)
        self.assertNotIn("\ntwo\n", done)
        self.assertEqual([e for e in os.listdir(self.pods_dir) if not e.endswith(".lock")], [])


if __name__ == "__main__":
    unittest.main()
