"""What stands beside a pod, or only looks like it, is not its own: records copied by hand, folders with its name, another plane, another manager."""

import os
import shutil
import subprocess
import unittest

from plane import BACKEND, PlaneTest, alive, tree_manifest

QUIET = ("--health", "none")
SLEEP = ("/bin/sleep", "1000")
ELSEWHERE = ("/bin/sh", "-c", "cd /; exec sleep 1000") # holds nothing of its home


class Neighbours(PlaneTest):
    def record(self, name):
        return os.path.join(self.pods_dir, f"{name}.env")

    def write(self, *path, text="precious"):
        path = os.path.join(self.dir, *path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)
        return path

    def assert_lives(self, report, name="one"):
        self.assertTrue(alive(report["pid"]))
        self.assertTrue(os.path.isdir(os.path.join(self.home(name), "workspace")))

    # --- records ------------------------------------------------------------------------------------------------------------

    def test_a_copy_of_a_record_names_nobody(self):
        for words in (("down", "two"), ("prune", "--all")):
            for payload in (SLEEP, ELSEWHERE):
                report = self.up("one", *payload, flags=QUIET)
                shutil.copy(self.record("one"), self.record("two"))
                done = self.pod(*words)
                self.assertEqual(done.status, 0, done)
                self.assert_lives(report)
                self.assertEqual({name: pod["state"] for name, pod in self.ls().items()}, {"one": "up"})
                self.down("one")
        self.assert_no_residue()

    def test_a_record_that_was_copied_for_another_pod_makes_two(self):
        self.up("one", *SLEEP, flags=QUIET)
        shutil.copy(self.record("one"), self.record("two"))
        second = self.up("two", *SLEEP, flags=QUIET)
        self.down("one")
        self.assert_lives(second, "two")
        self.assertEqual(list(self.ls()), ["two"])
        self.down("two")
        self.assert_no_residue()

    def test_a_renamed_record_does_not_take_a_living_pod_along(self):
        for words in (("down", "two"), ("prune", "--all")):
            report = self.up("one", *ELSEWHERE, flags=QUIET)
            kept = self.write("pods", "one", "workspace", "kept")
            os.rename(self.record("one"), self.record("two"))
            self.pod(*words)
            self.assertTrue(os.path.exists(kept))
            self.assert_lives(report)
            self.down("one")
            self.pod("down", "two")
        self.assert_no_residue()

    # --- folders ------------------------------------------------------------------------------------------------------------

    def test_a_folder_of_artifacts_that_has_its_name_keeps_what_is_not_a_log(self):
        self.write("artifacts", "one", "src", "main.c")
        os.chmod(os.path.join(self.artifacts, "one"), 0o755)

        def seen():
            return {path: (mode, content) for path, (_, mode, _, _, content) in tree_manifest(self.artifacts).items()}

        before = seen()
        self.up("one", *SLEEP, flags=QUIET)
        self.down("one")
        self.assertEqual(seen(), before)
        self.assertEqual(self.pod("up", "one", "--health", "tcp", "--", "/bin/false").status, 1)
        self.assertEqual(seen(), before)

    def test_exec_and_servers_do_not_enter_what_was_put_in_place_of_a_room(self):
        victim = self.write("victim", "file")
        for room in ("workspace", "os-home"):
            self.up("one", "/bin/sh", "-c", f'cd /; mv "{self.home("one")}/{room}" "{self.home("one")}/was"; ln -s "{self.dir}/victim" "{self.home("one")}/{room}"; exec sleep 1000', flags=QUIET)
            self.eventually(lambda: os.path.islink(os.path.join(self.home("one"), room)), what="the link")
            for words in (("exec", "one", "--", "sh", "-c", "rm -f -- * ~/*"), ("mcp", "ls", "one"), ("probe", "one")):
                refused = self.pod(*words)
                self.assertEqual(refused.status, 78, refused)
                self.assertIn(room, self.one_line(refused))
            self.assertTrue(os.path.exists(victim))
            self.down("one")
        self.assertTrue(os.path.exists(victim))

    # --- what was there before --------------------------------------------------------------------------------------------

    def test_a_refused_up_leaves_the_record_of_a_pod_as_it_was(self):
        self.up("one", *SLEEP, flags=QUIET)
        self.stop_unit("one")
        with open(self.record("one")) as text:
            before = text.read()
        bad = self.write("bad", text="#!/no/such/interpreter\n")
        os.chmod(bad, 0o755)
        for words in (("--", bad), ("--seed", "minimal")):
            refused = self.pod("up", "one", *QUIET, *words)
            self.assertIn(refused.status, (3, 78), refused)
            with open(self.record("one")) as text:
                self.assertEqual(text.read(), before, words)
        self.assertEqual(self.pod("up", "one").status, 0)

    def test_run_takes_its_pod_down_when_its_record_is_gone(self):
        done = self.pod("run", "one", "--payload", "/bin/sleep 1000", *QUIET, "--", "rm", self.record("one"))
        self.assertEqual(done.status, 0, done)
        self.assertEqual(self.ls(), {})
        self.assert_no_residue()

    def stop_unit(self, name):
        """Ends as if by itself, and is not started again."""
        pid = self.ls()[name]["pid"]
        if BACKEND == "systemd":
            subprocess.run(["systemctl", "--user", "stop", f"{self.prefix}@{name}.service"], check=True)
        else:
            os.kill(pid, 15)
        self.eventually(lambda: self.ls()[name]["state"] == "stopped", what="its end")

    # --- planes and managers ----------------------------------------------------------------------------------------------

    def test_another_plane_on_the_same_root_takes_no_living_pod(self):
        everything = (("prune", "--all"), ("down", "one"), ("down", "--all"))
        prefix, pods_dir = {"KIROCREW_POD_UNIT_PREFIX": self.prefix + "o"}, {"KIROCREW_POD_ENV_DIR": os.path.join(self.dir, "other")}
        # A keeper is found in the pods dir, whatever the prefix: there the pod is seen to be up, and taken down when that is asked for.
        for other, what in ((prefix, everything if BACKEND == "systemd" else everything[:1]), (pods_dir, everything)):
            report = self.up("one", *ELSEWHERE, flags=QUIET)
            for words in what:
                self.pod(*words, env=other)
                self.assert_lives(report)
            self.assertEqual(self.ls()["one"]["state"], "up")
            self.down("one")
            self.pod("down", "--all", env=other)

    if BACKEND == "systemd":

        def test_a_foreign_drop_in_stays(self):
            folder = os.path.expanduser(f"~/.config/systemd/user/{self.prefix}@one.service.d")
            os.makedirs(folder)
            self.addCleanup(shutil.rmtree, folder, True)
            with open(os.path.join(folder, "override.conf"), "w") as text:
                text.write("[Service]\nNice=7\n")
            subprocess.run(["systemctl", "--user", "daemon-reload"], check=True)
            for words in (("/bin/sh", "-c", "exit 9"), SLEEP):
                self.pod("up", "one", *QUIET, "--memory-max", "1G", "--", *words)
                self.pod("down", "one")
                self.assertEqual(os.listdir(folder), ["override.conf"])

        def test_a_pod_that_has_not_ended_keeps_its_backend(self):
            self.pod("up", "one", *QUIET, "--", "/bin/sh", "-c", "sleep 1; exit 1")
            for first, second in (("systemd", "embedded"), ("embedded", "systemd")):
                self.pod("down", "one")
                report = self.up("one", *SLEEP, flags=(*QUIET, "--backend", first))
                refused = self.pod("up", "one", "--backend", second, *QUIET, "--", *SLEEP)
                self.assertEqual(refused.status, 78, refused)
                self.assertIn(f"it is {first}'s", self.one_line(refused))
                self.assertIn("--backend", refused.err)
                self.assertTrue(alive(report["pid"]))
                again = self.pod("up", "one", "--backend", first, *QUIET)
                self.assertEqual(again.status, 0, again)
            self.down("one")
            self.assert_no_residue()

        def test_a_pod_that_has_ended_takes_nothing_along_to_another_backend(self):
            self.up("one", *SLEEP, flags=(*QUIET, "--backend", "systemd", "--memory-max", "1G"))
            self.stop_unit("one")
            report = self.up("one", *SLEEP, flags=(*QUIET, "--backend", "embedded"))
            self.assertEqual(self.ls()["one"]["backend"], "embedded")
            self.assertTrue(alive(report["pid"]))
            self.down("one")
            self.assert_no_residue()
            folder = os.path.expanduser("~/.config/systemd/user")
            self.assertEqual([entry for entry in os.listdir(folder) if entry.startswith(f"{self.prefix}@one")], [])


if __name__ == "__main__":
    unittest.main()
