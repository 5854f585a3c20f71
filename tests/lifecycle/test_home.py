"""Whose home it is: `up`, `ls` and `down` go by identity. A root, a home or a directory that is not what was made is refused and left alone."""

import os
import re
import shutil
import signal
import subprocess
import time
import unittest

from behind import PLAIN, SLEEP, BehindTest
from plane import BACKEND, PYTHON, SERVE, SPAN, alive, tree_manifest

SPOIL = """
import os, shutil, socket, sys
home, how = os.environ["KIROCREW_HOME"], sys.argv[2]
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen()
os.chdir("/")
for entry in os.listdir(home):
    path = os.path.join(home, entry)
    if os.path.isdir(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)
if how == "rewrite":
    open(home + "/.kirocrew-pod", "w").write("00000000-0000-4000-8000-000000000000\\n")
    os.symlink("/", home + "/os-home")
    os.mkfifo(home + "/run")
    open(home + "/workspace", "w").write("PORT='1'\\nID='other'\\n")
if how == "close":
    os.chmod(home, 0)
os.close(os.open(sys.argv[3], os.O_CREAT | os.O_WRONLY))
while True:
    s.accept()[0].close()
"""

MOVE = """
import os, sys, time
home = os.environ["KIROCREW_HOME"]
os.chdir("/")
os.rename(home, sys.argv[1])
if sys.argv[2] == "again":
    os.makedirs(home + "/os-home")
    open(home + "/impostor", "w").close()
os.close(os.open(sys.argv[3], os.O_CREAT | os.O_WRONLY))
time.sleep(1000)
"""


class Home(BehindTest):
    def stranger(self, path):
        os.makedirs(os.path.join(path, "below"))
        with open(os.path.join(path, "below", "file"), "w") as text:
            text.write("not yours")
        return tree_manifest(path)

    def stop_unit(self, name, report):
        """Dead, with its definition, record and home kept."""
        if BACKEND == "systemd":
            self.systemctl("stop", f"{self.prefix}@{name}.service")
        else:
            self.kill_keeper(report)
        self.eventually(lambda: not self.processes_of(report["id"]), what="the end of its processes")

    # --- the checkout ------------------------------------------------------------------------------------------------------

    def test_L04_the_checkout_is_deleted_while_the_pod_runs(self):
        checkout = self.checkout()
        started = self.pod("up", "one", "--json", "--checkout", checkout)
        self.assertEqual(started.status, 0, started)
        report = started.json
        self.assertEqual(self.get(report["port"], "/api/health"), (200, b"ok"))
        os.kill(report["pid"], signal.SIGKILL)
        self.eventually(lambda: self.state("one") == "up" and self.ls()["one"]["pid"] != report["pid"], seconds=60, what="the first restart")
        shutil.rmtree(checkout)
        os.kill(self.ls()["one"]["pid"], signal.SIGKILL)
        self.eventually(lambda: self.state("one") == "refused", seconds=60, what="the end of the restarts")
        pod = self.ls()["one"]
        self.assertIn(checkout, pod["reason"])
        time.sleep(7)  # longer than the pause before a restart
        self.assertEqual((self.ls()["one"]["state"], self.processes_of(report["id"])), ("refused", []))
        self.down("one")
        self.assert_no_residue(report["id"])

    def test_L04_down_needs_nothing_of_the_checkout(self):
        checkout = self.checkout()
        report = self.pod("up", "one", "--json", "--checkout", checkout).json
        shutil.rmtree(checkout)
        self.assertEqual(self.state("one"), "up")
        self.down("one")
        self.assert_no_residue(report["id"])

    # --- the root ------------------------------------------------------------------------------------------------------------

    def nothing_works(self, report):
        other = ("up", "other", "--health", "none")
        said = self.one_line(self.pod("ls"))
        for words in (("ls",), ("ls", "--json"), ("status", "one"), ("down", "one"), ("down", "--all"), ("prune", "--all"), ("up", "one"),
                      (*other, "--", *SLEEP), (*other, "--port", str(self.base_port + SPAN), "--", *SLEEP)):
            failed = self.pod(*words)
            if words[0] == "up":
                self.assertEqual(self.one_line(failed), said)
                self.assertFalse(os.path.exists(os.path.join(self.pods_dir, "other.env")))
            self.assertNotEqual(failed.status, 0, (words, failed))
            self.assertEqual(failed.out, "")
            self.assertIn(self.root, self.one_line(failed))
            self.assertTrue(alive(report["pid"]), words)

    def all_there(self, report, before):
        self.assertEqual(tree_manifest(report["home"]), before)
        pods = self.ls()
        self.assertEqual([(name, pod["state"], pod["id"]) for name, pod in pods.items()], [("one", "up", report["id"])])
        self.down("one")
        self.assert_no_residue(report["id"])

    def test_L09_the_root_is_renamed(self):
        report = self.up("one")
        before, registry = tree_manifest(report["home"]), tree_manifest(self.pods_dir)
        os.rename(self.root, self.root + "-away")
        self.nothing_works(report)
        self.assertFalse(os.path.lexists(self.root), "nothing was made in its place")
        os.rename(self.root + "-away", self.root)
        self.assertEqual({p: m for p, m in tree_manifest(self.pods_dir).items() if not p.endswith(b".lock")},
                         {p: m for p, m in registry.items() if not p.endswith(b".lock")})
        self.all_there(report, before)

    def test_L09_the_root_is_replaced(self):
        report = self.up("one")
        before = tree_manifest(report["home"])
        os.rename(self.root, self.root + "-away")
        os.mkdir(self.root, 0o700)
        self.nothing_works(report)
        self.assertEqual(os.listdir(self.root), [])
        os.rmdir(self.root)
        os.rename(self.root + "-away", self.root)
        self.all_there(report, before)

    def test_L09_the_root_is_unreadable(self):
        report = self.up("one")
        before = tree_manifest(report["home"])
        for mode in (0o000, 0o100, 0o300):
            os.chmod(self.root, mode)
            for words in (("ls",), ("ls", "--json"), ("prune", "--all"), ("down", "--all")):
                with self.wrapped(*PLAIN):
                    failed = self.pod(*words)
                os.chmod(self.root, 0o700)
                self.assertEqual(failed.status, 1, (oct(mode), words, failed))
                self.assertIn("cannot be read", self.one_line(failed))
                self.assertTrue(alive(report["pid"]))
                os.chmod(self.root, mode)
        os.chmod(self.root, 0o700)
        self.all_there(report, before)

    def test_L09_the_root_is_covered_by_an_empty_mount(self):
        report = self.up("one")
        before = tree_manifest(report["home"])
        status, out, err = self.in_mounts(
            """root=$1; shift
            mount -t tmpfs none "$root"
            status=0; "$@" || status=$?
            ls -A "$root"
            exit $status""", self.root, *self.command("ls", "--json"))
        self.assertEqual((status, out), (1, ""), err)
        self.assertIn(self.root, err)
        self.assertTrue(alive(report["pid"]))
        self.all_there(report, before)

    def test_L19_the_root_under_two_spellings(self):
        os.mkdir(os.path.join(self.dir, "real"))
        os.symlink("real", os.path.join(self.dir, "link"))
        self.root = os.path.join(self.dir, "real", "pods")
        spellings = [f"{self.dir}/{way}" for way in ("real/pods", "link/pods", "link/./pods/", "real/../link//pods")]
        os.symlink("real/pods", os.path.join(self.dir, "whole"))
        spellings.append(os.path.join(self.dir, "whole"))
        os.mkdir(self.root, 0o700)
        for number, spelling in enumerate(spellings):
            other = {"KIROCREW_POD_ROOT": spellings[number - 1]}
            report = self.up("one", env={"KIROCREW_POD_ROOT": spelling})
            for env in (other, {"KIROCREW_POD_ROOT": spelling}):
                listed = self.pod("ls", "--json", env=env)
                self.assertEqual(listed.status, 0, listed)
                self.assertEqual([(pod["name"], pod["id"], pod["state"], pod["pid"]) for pod in listed.json],
                                 [("one", report["id"], "up", report["pid"])])
            again = self.pod("up", "one", "--json", env=other)
            self.assertEqual((again.status, again.json["pid"]), (0, report["pid"]), again)
            self.down("one", env=other)
            self.assertFalse(alive(report["pid"]))
            self.assert_no_residue(report["id"])

    # --- strangers -----------------------------------------------------------------------------------------------------------

    def test_X02_a_directory_that_no_up_made_is_no_pod(self):
        living = self.quiet("living")
        before = self.stranger(self.home("stranger"))
        refused = self.down("stranger", status=78)
        self.assertIn("not a pod", self.one_line(refused))
        self.assertEqual(tree_manifest(self.home("stranger")), before)
        for words in (("prune", "--all"), ("prune", "--older-than", "0s")):
            pruned = self.pod(*words)
            self.assertEqual(pruned.status, 0, pruned)
            self.assertNotIn("stranger", pruned.out)
            self.assertEqual(tree_manifest(self.home("stranger")), before)
        refused = self.pod("up", "stranger", "--", *SERVE)
        self.assertEqual(refused.status, 78, refused)
        self.down("--all")
        self.assertFalse(alive(living["pid"]))
        self.assertEqual(tree_manifest(self.home("stranger")), before)

    def test_X03_another_directory_in_the_place_of_the_home_stays(self):
        report = self.quiet("one")
        away = os.path.join(self.dir, "away")
        os.rename(report["home"], away)
        before, moved = self.stranger(report["home"]), tree_manifest(away)
        refused = self.down("one", status=78)
        self.assertIn("not the directory that `up` made", self.one_line(refused))
        self.assertEqual((tree_manifest(report["home"]), tree_manifest(away)), (before, moved))
        pruned = self.pod("prune", "--all")
        self.assertEqual(pruned.status, 0, pruned)
        self.assertEqual(tree_manifest(report["home"]), before)
        shutil.rmtree(report["home"])
        os.rename(away, report["home"])
        self.down("one")
        self.assert_no_residue(report["id"])

    def test_X03_a_copy_is_not_the_home(self):
        """The marker and everything else is there, only the identity is not."""
        report = self.quiet("one")
        self.stop_unit("one", report)
        away = os.path.join(self.dir, "away")
        os.rename(report["home"], away)
        shutil.copytree(away, report["home"])
        before = tree_manifest(report["home"])
        self.down("one", status=78)
        refused = self.pod("up", "one")
        self.assertEqual(refused.status, 78, refused)
        self.assertEqual(tree_manifest(report["home"]), before)

    def test_X04_a_home_that_the_payload_moved_away_goes_and_the_impostor_is_reported(self):
        for place in ("moved", ".hidden", "-odd\n"):
            away, done = os.path.join(self.root, place), os.path.join(self.dir, "done")
            report = self.up("one", *self.payload(MOVE, away, "again", done), flags=("--health", "none"))
            self.eventually(lambda: os.path.exists(done), what="the payload's move")
            impostor = tree_manifest(report["home"])
            self.assertEqual(sorted(os.listdir(away)), [".kirocrew-pod", "kiro", "os-home", "run", "workspace"])
            reported = self.down("one", status=78)
            self.assertIn(report["home"], self.one_line(reported))
            self.assertIn("not the directory that `up` made", reported.err)
            self.assertFalse(os.path.lexists(away), "what was made goes")
            self.assertFalse(alive(report["pid"]))
            self.assertEqual(tree_manifest(report["home"]), impostor)
            self.assertFalse(os.path.exists(os.path.join(self.pods_dir, "one.env")))
            shutil.rmtree(report["home"])
            os.unlink(done)
            self.down("one")
            self.assert_no_residue(report["id"])

    def test_X04_a_home_that_the_payload_moved_away_without_another_goes(self):
        away, done = os.path.join(self.root, "moved"), os.path.join(self.dir, "done")
        report = self.up("one", *self.payload(MOVE, away, "none", done), flags=("--health", "none"))
        self.eventually(lambda: os.path.exists(done), what="the payload's move")
        self.down("one")
        self.assert_no_residue(report["id"])

    def test_X05_a_forged_record_takes_nothing_of_others(self):
        """It names, by identity, the home of another pod, living and dead, the root, or what stands outside."""
        report, other = self.quiet("one"), self.quiet("other")
        self.stop_unit("one", report)
        record = os.path.join(self.pods_dir, "one.env")
        with open(record) as text:
            good = text.read()
        with open(os.path.join(self.pods_dir, "other.env")) as text:
            others = re.search("HOME_ID='(.*)'", text.read()).group(1)
        outside = os.path.join(self.dir, "outside")
        theirs = self.stranger(outside)
        identities = [others, re.search("ROOT_ID='(.*)'", good).group(1), f"{os.stat('/').st_ino}:-", f"{os.stat(outside).st_ino}:-"]
        for other_lives in (True, False):
            if not other_lives:
                self.stop_unit("other", other)
            before, mine = tree_manifest(other["home"]), tree_manifest(report["home"])
            for identity in identities:
                with open(record, "w") as text:
                    text.write(re.sub("HOME_ID='.*'", f"HOME_ID='{identity}'", good))
                refused = self.pod("down", "one")
                self.assertNotEqual(refused.status, 0, refused)
                pruned = self.pod("prune", "--older-than", "9d")
                self.assertEqual(pruned.status, 0, pruned)
                self.assertEqual(tree_manifest(other["home"]), before, (identity, refused))
                self.assertEqual(tree_manifest(report["home"]), mine, (identity, refused))
                self.assertEqual(tree_manifest(outside), theirs)
            self.assertEqual(alive(other["pid"]), other_lives)
        with open(record, "w") as text:
            text.write(good)
        self.down("one", "other")
        self.assert_no_residue(report["id"], other["id"])

    # --- unsafe places ---------------------------------------------------------------------------------------------------------

    def test_X06_a_parent_that_everybody_may_write_is_refused(self):
        shared = os.path.join(self.dir, "shared")
        os.mkdir(shared)
        for root in (os.path.join(shared, "pods"), os.path.join(shared, "not", "yet", "pods")):
            os.chmod(shared, 0o777)
            refused = self.pod("up", "one", "--", *SERVE, env={"KIROCREW_POD_ROOT": root})
            self.assertEqual(refused.status, 78, refused)
            self.assertIn(shared, self.one_line(refused))
            self.assertEqual(os.listdir(shared), [])
        os.chmod(shared, 0o1777)
        self.root = os.path.join(shared, "pods")
        self.env["KIROCREW_POD_ROOT"] = self.root
        report = self.quiet("one")
        os.chmod(shared, 0o777)
        refused = self.pod("up", "two", "--", *SERVE)
        self.assertEqual(refused.status, 78, refused)
        self.assertEqual(sorted(self.ls()), ["one"])
        self.down("one")  # what was made can always be taken away
        self.assert_no_residue(report["id"])

    def test_X06_a_parent_of_another_user_is_refused(self):
        other = os.path.join(self.dir, "other")
        os.mkdir(other)
        words = self.command("up", "one", "--", *SERVE)
        if os.getuid() == 0:
            os.chown(other, 65534, 65534)
            refused = self.pod(*words[1:], env={"KIROCREW_POD_ROOT": os.path.join(other, "pods")})
        else:  # in a user namespace where what belongs to root belongs to somebody unknown
            other = os.path.dirname(self.dir)
            with self.wrapped("unshare", "--user", "--map-root-user"):
                refused = self.pod(*words[1:], env={"KIROCREW_POD_ROOT": os.path.join(other, f"{self.prefix}-pods")})
        self.assertEqual(refused.status, 78, refused)
        self.assertIn(other, self.one_line(refused))
        self.assertIn("another user", refused.err)
        self.assertFalse(os.path.lexists(os.path.join(other, f"{self.prefix}-pods")))

    def links(self):
        """How a link can stand in the way: where it leads, and what must be unchanged afterwards."""
        target = os.path.join(self.dir, "target")
        os.makedirs(os.path.join(target, "below"))
        with open(os.path.join(target, "below", "file"), "w") as text:
            text.write("precious")
        missing = os.path.join(self.dir, "missing")

        def unchanged(before=tree_manifest(target)):
            self.assertEqual(tree_manifest(target), before)
            self.assertFalse(os.path.lexists(missing), "nothing is made through a dangling link")

        return {"existing": target, "dangling": missing, "loop": None}, unchanged

    def put_link(self, where, target):
        os.symlink(target if target else os.path.basename(where), where)

    def test_X07_a_link_at_the_home(self):
        kinds, unchanged = self.links()
        os.mkdir(self.root, 0o700)
        for kind, target in kinds.items():
            self.put_link(self.home("one"), target)
            for words in (("up", "one", "--", *SERVE), ("down", "one")):
                refused = self.pod(*words)
                self.assertEqual(refused.status, 78, (kind, refused))
                self.assertIn("one", self.one_line(refused))
                unchanged()
            self.assertTrue(os.path.islink(self.home("one")))
            os.unlink(self.home("one"))
            self.down("one")
            self.assert_no_residue()

    def test_X07_a_link_at_the_root_is_resolved_once_or_refused(self):
        kinds, unchanged = self.links()
        for kind in ("dangling", "loop"):
            self.put_link(self.root, kinds[kind])
            for words in (("up", "one", "--", *SERVE), ("up", "one", "--health", "none", "--", *SLEEP)):
                refused = self.pod(*words)
                self.assertNotEqual(refused.status, 0, (kind, refused))
                self.assertIn(self.root, self.one_line(refused))
                unchanged()
            self.assertTrue(os.path.islink(self.root))
            os.unlink(self.root)
        real = os.path.join(self.dir, "real")
        os.mkdir(real, 0o700)
        os.symlink(real, self.root)
        report = self.quiet("one")
        self.assertTrue(os.path.isdir(os.path.join(real, "one", "os-home")))
        self.down("one")
        self.assertTrue(os.path.islink(self.root))
        self.assertEqual(os.listdir(real), [])
        self.assert_no_residue(report["id"])

    def test_X07_a_link_at_the_pods_dir(self):
        kinds, unchanged = self.links()
        for kind in ("dangling", "loop"):
            self.put_link(self.pods_dir, kinds[kind])
            refused = self.pod("up", "one", "--", *SERVE)
            self.assertNotEqual(refused.status, 0, (kind, refused))
            self.assertIn(self.pods_dir, self.one_line(refused))
            unchanged()
            os.unlink(self.pods_dir)
            self.assertFalse(os.path.lexists(self.home("one")))

    def test_X07_a_link_inside_the_home(self):
        kinds, unchanged = self.links()
        for kind, target in kinds.items():
            for place in ("os-home", "run", "workspace", "kiro", "os-home/.aws"):
                report = self.quiet("one")
                self.stop_unit("one", report)
                path = os.path.join(report["home"], place)
                shutil.rmtree(path)
                self.put_link(path, target)
                refused = self.pod("up", "one")
                self.assertEqual(refused.status, 78, (kind, place, refused))
                # The log of the boot stands before the one line of the verdict.
                self.assertIn(place.split("/")[0], refused.err.splitlines()[-1])
                unchanged()
                self.assertEqual(self.state("one"), "refused")
                self.down("one")
                unchanged()
                self.assert_no_residue(report["id"])

    if BACKEND == "systemd":  # the keeper has no unit files

        def test_X07_a_link_at_the_unit_directories(self):
            kinds, unchanged = self.links()
            config = os.path.expanduser("~/.config/systemd/user")
            os.makedirs(config, exist_ok=True)
            drop_in = os.path.join(config, f"{self.prefix}@one.service.d")
            for kind, target in kinds.items():
                self.put_link(drop_in, target)
                self.addCleanup(lambda: os.path.islink(drop_in) and os.unlink(drop_in))
                refused = self.pod("up", "one", "--memory-max", "1G", "--", *SERVE)
                self.assertEqual(refused.status, 78, (kind, refused))
                self.assertIn(os.path.basename(drop_in), self.one_line(refused))
                unchanged()
                self.assertTrue(os.path.islink(drop_in))
                os.unlink(drop_in)
                self.assertEqual(self.ls(), {})
                for level in ("systemd/user", "systemd"):
                    other = os.path.join(self.dir, "config")
                    os.makedirs(os.path.join(other, os.path.dirname(level)), exist_ok=True)
                    self.put_link(os.path.join(other, level), target)
                    refused = self.pod("up", "one", "--", *SERVE, env={"XDG_CONFIG_HOME": other})
                    self.assertEqual(refused.status, 78, (kind, level, refused))
                    self.one_line(refused)
                    unchanged()
                    shutil.rmtree(other)
                    self.assertEqual(self.ls(), {})
            self.assert_no_residue()

    # --- the payload against its own home ----------------------------------------------------------------------------------------

    def test_X41_whatever_the_payload_does_to_its_home(self):
        for how in ("delete", "rewrite", "close"):
            done = os.path.join(self.dir, f"done-{how}")
            report = self.up("one", *self.payload(SPOIL, "{port}", how, done))
            self.eventually(lambda: os.path.exists(done), what="what the payload does")
            with self.wrapped(*PLAIN):
                seen = self.pod("status", "one", "--json")
                self.assertEqual(seen.status, 0, seen)
                for key, value in (("state", "up"), ("id", report["id"]), ("port", report["port"]), ("pid", report["pid"]), ("health", "ok")):
                    self.assertEqual(seen.json[key], value, (how, key))
                self.assertEqual(self.ls()["one"]["state"], "up")
                self.down("one")
            self.assertFalse(alive(report["pid"]))
            self.assert_no_residue(report["id"])

    def test_X41_a_dead_pod_with_a_spoilt_home(self):
        for how in ("delete", "rewrite", "close"):
            done = os.path.join(self.dir, f"done-{how}")
            report = self.up("one", *self.payload(SPOIL, "{port}", how, done))
            self.eventually(lambda: os.path.exists(done), what="what the payload does")
            self.vanish("one", report)
            with self.wrapped(*PLAIN):
                self.assertEqual(self.state("one"), "orphan")
                self.down("one")
            self.sweep_control_groups() # what lies in the hierarchy's root only who made it can remove
            self.assert_no_residue(report["id"])


if __name__ == "__main__":
    unittest.main()
