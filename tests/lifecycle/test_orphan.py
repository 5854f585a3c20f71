"""What is left of a pod when its unit, its home, its record or its `down` ended half-way: shown as what it is, and removable."""

import contextlib
import fcntl
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
import unittest

from behind import SERVER, SLEEP, BehindTest
from plane import BACKEND, PYTHON, SERVE, alive, tree_manifest


class Orphan(BehindTest):
    def seen(self, name):
        """The same in `ls`, in its table and in `status`."""
        pods = self.ls()
        self.assertIn(name, pods)
        pod = pods[name]
        table = self.pod("ls")
        self.assertEqual(table.status, 0, table)
        (line,) = [line for line in table.out.splitlines() if line.split()[0] == name]
        self.assertEqual(line.split()[1], pod["state"])
        self.assertEqual(self.pod("status", name, "--json").json["state"], pod["state"])
        return pod, line

    # --- no unit ---------------------------------------------------------------------------------------------------------

    def test_L02_a_pod_without_a_unit_is_an_orphan_and_ls_says_how_to_remove_it(self):
        for recorded in (True, False):
            report = self.quiet("one")
            self.vanish("one", report)
            if not recorded:
                os.unlink(os.path.join(self.pods_dir, "one.env"))
            self.eventually(lambda: self.ls()["one"]["age_s"] >= 1, what="an age")
            pod, line = self.seen("one")
            self.assertEqual(pod["state"], "orphan")
            self.assertRegex(line, r"\b\d+s\b")
            command = re.search(r"`kirocrew-pod ([^`]+)`", pod["reason"])
            self.assertIsNotNone(command, pod)
            self.assertIn(command[0], line)
            done = self.pod(*shlex.split(command[1]))
            self.assertEqual(done.status, 0, done)
            if not recorded:
                self.sweep_control_groups() # named after the record's id
            self.assert_no_residue(report["id"])

    def held(self, name, report, holder):
        """Not an orphan; nothing is deleted and the holder is named, by down and by prune; when it has ended all goes."""
        before = tree_manifest(report["home"])
        pod, _ = self.seen(name)
        self.assertEqual(pod["state"], "foreign", pod)
        self.assertIn(f"pid {holder.pid} ", pod["reason"])
        for words in (("down", name), ("prune", "--all"), ("down", "--all")):
            refused = self.pod(*words)
            self.assertEqual(refused.status, 0 if words[0] == "prune" else 1, refused)
            if words[0] == "down":
                self.assertIn(f"pid {holder.pid} ", refused.err)
            self.assertEqual(tree_manifest(report["home"]), before)
            self.assertTrue(alive(holder.pid))
            self.assertTrue(os.path.exists(os.path.join(self.pods_dir, f"{name}.env")))
        holder.kill()
        holder.wait()
        self.assertEqual(self.state(name), "orphan")
        self.down(name)
        self.assert_no_residue(report["id"])

    def test_L03_a_boot_by_hand_is_no_orphan(self):
        report = self.up("one")
        self.vanish("one", report)
        by_hand = self.process(*self.command("_run", "one"), env=self.env, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.eventually(lambda: self.answers(report["port"]), what="its answer")
        self.held("one", report, by_hand)

    def test_L03_a_payload_by_hand_in_the_home_is_no_orphan(self):
        report = self.up("one")
        self.vanish("one", report)
        by_hand = self.process(*(word.format(port=report["port"]) for word in SERVE), cwd=report["home"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.eventually(lambda: self.answers(report["port"]), what="its answer")
        self.held("one", report, by_hand)

    def test_L03_a_payload_by_hand_with_home_and_port_is_no_orphan(self):
        """As a developer starts a gateway in a terminal: it stands in the checkout and has nothing open in the home just now."""
        report = self.up("one")
        self.vanish("one", report)
        env = {**os.environ, "KIROCREW_HOME": report["home"], "KIROCREW_PORT": str(report["port"])}
        by_hand = self.process(PYTHON, "-c", SERVER, env=env, cwd="/")
        self.eventually(lambda: self.answers(report["port"], "/api/health"), what="its answer")
        self.held("one", report, by_hand)

    def test_L03_somebody_else_on_the_port_is_not_taken_for_the_pod(self):
        report = self.up("one")
        self.vanish("one", report)
        other = self.process(PYTHON, "-c", SERVER, env={"KIROCREW_PORT": str(report["port"])}, cwd="/")
        self.eventually(lambda: self.answers(report["port"], "/api/health"), what="its answer")
        self.assertEqual(self.state("one"), "orphan")
        self.down("one")
        self.assertTrue(alive(other.pid))
        self.assert_no_residue(report["id"])

    def answers(self, port, path="/"):
        try:
            return self.get(port, path)[0] == 200
        except OSError:
            return False

    # --- a home of which no record knows ------------------------------------------------------------------------------------

    def lose_the_files(self, name):
        """All that the pods dir holds of it, as somebody deletes it who tidies up."""
        for entry in os.listdir(self.pods_dir):
            if entry.startswith((f"{name}.", f"{self.prefix}@{name}")):
                os.unlink(os.path.join(self.pods_dir, entry))

    def not_taken_over(self, name, report, pid, *words):
        """`up` names who lives there, says what to do, and changes nothing."""
        before = tree_manifest(report["home"])
        for again in (("up", name, "--health", "none", "--", *SLEEP), ("up", name, "--", *SERVE)):
            refused = self.pod(*again)
            self.assertEqual(refused.status, 1, refused)
            line = self.one_line(refused)
            for word in (f"pid {pid}", "nothing was changed", *words):
                self.assertIn(word, line)
        self.assertEqual(tree_manifest(report["home"]), before)
        self.assertEqual([entry for entry in os.listdir(self.pods_dir) if not entry.endswith(".lock")], [])
        self.assertTrue(alive(pid))

    def test_up_does_not_take_over_a_home_whose_pod_lives_and_whose_files_are_lost(self):
        for payload in (SLEEP, ("/bin/sh", "-c", "cd /; exec sleep 1000")):
            report = self.up("one", *payload, flags=("--health", "none"))
            self.eventually(lambda: os.readlink(f"/proc/{report['pid']}/exe").endswith("sleep"), what="the payload")
            keeper = None
            if BACKEND == "embedded":
                with open(f"/proc/{report['pid']}/stat") as text:
                    keeper = int(text.read().rpartition(")")[2].split()[1])
            self.lose_the_files("one")
            self.not_taken_over("one", report, report["pid"], "kirocrew-pod down one" if BACKEND == "systemd" else "end what is named")
            if keeper:
                os.kill(keeper, signal.SIGKILL)
                with contextlib.suppress(ProcessLookupError): # it may end with its keeper
                    os.kill(report["pid"], signal.SIGKILL)
                self.eventually(lambda: not self.processes_of(report["id"]), what="their end")
                again = self.quiet("one")
                self.assertNotEqual(again["id"], report["id"])
            self.down("one")
            self.sweep_control_groups() # named after the record's id
            self.assert_no_residue(report["id"])

    def test_up_does_not_take_over_a_home_without_a_record_that_somebody_holds(self):
        report = self.quiet("one")
        self.vanish("one", report)
        self.lose_the_files("one")
        by_hand = self.process(*SLEEP, cwd=os.path.join(report["home"], "workspace"))
        self.not_taken_over("one", report, by_hand.pid, "end what is named")
        by_hand.kill()
        by_hand.wait()
        self.quiet("one")
        self.down("one")
        self.sweep_control_groups() # named after the record's id
        self.assert_no_residue(report["id"])

    # --- a `down` that was killed ------------------------------------------------------------------------------------------

    def test_L05_killed_between_the_stop_and_the_delete(self):
        report = self.quiet("one")
        kept = os.path.join(report["home"], "workspace", "kept")
        open(kept, "w").close()
        # With the boot gate held `down` waits after the stop, before it deletes anything.
        with open(os.path.join(self.pods_dir, f"{self.prefix}@one@boot.lock"), "r+") as gate:
            fcntl.flock(gate, fcntl.LOCK_SH)
            going = self.start("down", "one")
            self.eventually(lambda: not alive(report["pid"]), what="the stop")
            time.sleep(0.5)
            self.assertIsNone(going.poll(), "down has to wait for the gate")
            going.kill()
            going.communicate()
        self.assertTrue(os.path.exists(kept))
        pod, _ = self.seen("one")
        self.assertEqual(pod["state"], "unfinished")
        self.down("one")
        self.assert_no_residue(report["id"])
        self.assertEqual(self.ls(), {})

    def test_L05_up_after_a_down_that_was_killed_before_the_delete(self):
        report = self.quiet("one")
        kept = os.path.join(report["home"], "workspace", "kept")
        open(kept, "w").close()
        with open(os.path.join(self.pods_dir, f"{self.prefix}@one@boot.lock"), "r+") as gate:
            fcntl.flock(gate, fcntl.LOCK_SH)
            going = self.start("down", "one")
            self.eventually(lambda: not alive(report["pid"]), what="the stop")
            time.sleep(0.5)
            going.kill()
            going.communicate()
        again = self.quiet("one")
        self.assertEqual(again["id"], report["id"])
        self.assertTrue(os.path.exists(kept))
        self.assertEqual(self.state("one"), "up")
        os.kill(again["pid"], signal.SIGSTOP)
        self.assertEqual(self.state("one"), "up")
        os.kill(again["pid"], signal.SIGCONT)
        self.down("one")
        self.assert_no_residue(report["id"])

    def test_L05_killed_in_the_middle_of_the_delete(self):
        for _ in range(5):
            report = self.quiet("one")
            wide = os.path.join(report["home"], "wide")
            os.mkdir(wide)
            at = os.open(wide, os.O_RDONLY)
            for number in range(40000):
                os.close(os.open(f"{number:05}", os.O_CREAT | os.O_WRONLY, dir_fd=at))
            os.close(at)
            going = self.start("down", "one")
            self.eventually(lambda: not os.path.lexists(report["home"]), what="the beginning of the delete")
            going.kill()
            going.communicate()
            left = sum(len(files) for _, _, files in os.walk(self.root))
            if left:
                break
        self.assertGreater(left, 0)
        pod, _ = self.seen("one")
        self.assertEqual(pod["state"], "unfinished")
        self.down("one")
        self.assert_no_residue(report["id"])
        self.assertEqual(self.ls(), {})

    def test_L05_killed_at_any_moment(self):
        """After 0 to 150 ms: what is left is listed, and the next `down` completes."""
        for step in range(0, 60, 3):
            report = self.quiet("one")
            going = self.start("down", "one", "--stop-secs", "1", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(step / 400)
            going.kill()
            going.wait()
            on_disk = {e for e in os.listdir(self.root) if not e.startswith(".artifacts")}
            if on_disk or os.path.exists(os.path.join(self.pods_dir, "one.env")):
                self.assertIn("one", self.ls())
            self.down("one")
            self.assert_no_residue(report["id"])

    def test_X50_what_a_killed_call_left_is_swept_by_down_and_by_prune(self):
        """All that an `up` or a keeper has made when it is killed early: a temporary file or socket, which no pod bears yet."""
        os.makedirs(self.pods_dir, mode=0o700)
        for words in (("down", "gone"), ("prune", "--all")):
            here = os.getcwd()
            for name in (".tmp-0123456789abcdef@gone.env", ".tmp-0123456789abcdef@gone.refused", ".tmp-00@gone.env", "mine@gone.env"):
                open(os.path.join(self.pods_dir, name), "w").close()
            os.chdir(self.pods_dir)
            with socket.socket(socket.AF_UNIX) as left:
                left.bind(".tmp-0123456789abcdef@gone.sock")
            os.chdir(here)
            done = self.pod(*words)
            self.assertEqual(done.status, 0, done)
            kept = [entry for entry in os.listdir(self.pods_dir) if not entry.endswith(".lock")]
            self.assertEqual(sorted(kept), [".tmp-00@gone.env", "mine@gone.env"], words)

    if BACKEND == "embedded": # a manager that stands still is the other's

        def test_X58_prune_names_a_pod_that_could_not_be_asked_and_leaves_it(self):
            report = self.quiet("one")
            with open(f"/proc/{report['pid']}/stat") as text:
                keeper = int(text.read().rpartition(")")[2].split()[1])
            os.kill(keeper, signal.SIGSTOP)
            try:
                pruned = self.pod("prune", "--all")
            finally:
                os.kill(keeper, signal.SIGCONT)
            self.assertEqual(pruned.status, 1, pruned)
            self.assertIn("one: its unit could not be asked", self.one_line(pruned))
            self.assertTrue(alive(report["pid"]))
            self.down("one")
            self.assert_no_residue(report["id"])

    # --- what is there and what is not ---------------------------------------------------------------------------------------

    def test_X57_a_unit_without_a_home_is_shown_and_never_pruned(self):
        report = self.up("one")
        shutil.rmtree(report["home"])
        pod, _ = self.seen("one")
        self.assertEqual((pod["state"], pod["pid"]), ("failed", report["pid"]))
        self.assertIn("home is gone", pod["reason"])
        pruned = self.pod("prune", "--all")
        self.assertEqual(pruned.status, 0, pruned)
        self.assertTrue(alive(report["pid"]))
        self.down("one")
        self.assertFalse(alive(report["pid"]))
        self.assert_no_residue(report["id"])

    def test_X57_a_home_without_a_unit_is_reclaimed(self):
        report, living = self.quiet("dead"), self.quiet("living")
        if BACKEND == "systemd":
            self.systemctl("stop", f"{self.prefix}@dead.service")
        else:
            self.vanish("dead", report)
        pod, _ = self.seen("dead")
        self.assertEqual(pod["state"], "stopped" if BACKEND == "systemd" else "orphan")
        kept = self.pod("prune", "--older-than", "1d")
        self.assertEqual(kept.status, 0, kept)
        self.assertIn("dead", self.ls())
        pruned = self.pod("prune", "--all", "--json")
        self.assertEqual(pruned.status, 0, pruned)
        self.assertEqual([(pod["name"], pod["status"]) for pod in pruned.json], [("dead", "gone")])
        self.assertEqual(sorted(self.ls()), ["living"])
        self.assertTrue(alive(living["pid"]))
        self.down("living")
        self.assert_no_residue(report["id"], living["id"])

    def test_X57_a_note_without_anything_else_is_reclaimed(self):
        living = self.quiet("living")
        with open(os.path.join(self.pods_dir, "noted.refused"), "w") as note:
            note.write("home\nwhat an earlier boot had to say\n")
        pod, _ = self.seen("noted")
        self.assertEqual((pod["state"], pod["reason"]), ("refused", "what an earlier boot had to say"))
        pruned = self.pod("prune", "--all")
        self.assertEqual(pruned.status, 0, pruned)
        self.assertFalse(os.path.exists(os.path.join(self.pods_dir, "noted.refused")))
        self.assertEqual(sorted(self.ls()), ["living"])
        self.assertTrue(alive(living["pid"]))

    def test_X57_a_record_without_anything_else_is_reclaimed(self):
        report = self.quiet("one")
        self.vanish("one", report)
        shutil.rmtree(report["home"])
        pod, _ = self.seen("one")
        self.assertEqual(pod["state"], "orphan")
        pruned = self.pod("prune", "--all")
        self.assertEqual(pruned.status, 0, pruned)
        self.assert_no_residue(report["id"])

    def test_X57_after_a_reboot_the_dead_are_reclaimed(self):
        """A reboot ends every process at once and empties the runtime directory; what lies in the pods dir stays, a keeper's socket too."""
        report, kept = self.up("one"), self.quiet("kept")
        if BACKEND == "systemd":
            self.systemctl("kill", "--signal=KILL", f"{self.prefix}@one.service")
            self.systemctl("stop", f"{self.prefix}@one.service")
        else:
            self.kill_keeper(report)
        self.eventually(lambda: not self.processes_of(report["id"]), what="the end of its processes")
        # Without a runtime directory: the keeper needs none; systemd is found by uid, or it is said that it cannot be asked.
        bare = {"XDG_RUNTIME_DIR": os.path.join(self.dir, "gone"), "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.dir}/gone/bus"}
        blind = self.pod("ls", "--json", env=bare)
        if blind.status == 0:
            states = {pod["name"]: pod for pod in blind.json}
            self.assertEqual(sorted(states), ["kept", "one"])
            self.assertNotEqual(states["one"]["state"], "up")
        pruned = self.pod("prune", "--all", env=bare)
        self.assertIn(pruned.status, (0, 1, 69), pruned)
        self.assertTrue(alive(kept["pid"]))
        self.assertTrue(os.path.isdir(kept["home"]))
        pruned = self.pod("prune", "--all")
        self.assertEqual(pruned.status, 0, pruned)
        self.assertEqual(sorted(self.ls()), ["kept"])
        self.assertFalse(os.path.lexists(report["home"]))
        self.assertTrue(alive(kept["pid"]))
        self.down("kept")
        self.assert_no_residue(report["id"], kept["id"])


if __name__ == "__main__":
    unittest.main()
