"""A step of `up` that fails late: everything is taken back, or what is left is listed and `down` removes it, and the next `up` works."""

import contextlib
import json
import os
import shutil
import socket
import stat
import subprocess
import time
import unittest
import uuid

from plane import BACKEND, PYTHON, SERVE, SOURCE, PlaneTest, alive, tree_manifest

IDLE = ["/bin/sleep", "1000"]
UNITS = os.path.expanduser("~/.config/systemd/user")
HOSTILE = b"\x1b[31mred\x07 \x1b]0;title\x07 \x9b31m \xc2\x9b31m cr\rover\x08\x08 \xe2\x80\xae bidi \xff\xfe \x00nul\x7f end"
FORBIDDEN = set(range(0x20)) | {0x7F}


def only(backend):
    """What only one backend has: for the other there is no such test, so nothing to skip."""
    return (lambda test: test) if BACKEND == backend else (lambda test: None)


class Rollback(PlaneTest):
    def idle(self, name, *words, flags=(), **how):
        return self.up(name, *(words or IDLE), flags=("--health", "none", *flags), **how)

    def assert_nothing_left_and_next_works(self, *, listed=False):
        pods = self.ls()
        if listed:
            self.assertEqual(list(pods), ["a"])
            self.down("a")
        else:
            self.assertEqual(pods, {})
        self.assert_no_residue()
        report = self.up("a")
        self.assertEqual(self.get(report["port"])[0], 200)
        self.down("a")
        self.assert_no_residue(report["id"])

    @contextlib.contextmanager
    def read_only(self, path):
        """Also for root: a read-only bind in a mount namespace is not ours to make, so an immutable flag it is."""
        if os.getuid() == 0:
            subprocess.run(["chattr", "+i", path], check=True)
        else:
            os.chmod(path, 0o500)
        try:
            yield
        finally:
            if os.getuid() == 0:
                subprocess.run(["chattr", "-i", path], check=True)
            else:
                os.chmod(path, 0o700)

    def can_be_immutable(self, path):
        if os.getuid() != 0:
            return True
        done = subprocess.run(["chattr", "+i", path], stderr=subprocess.PIPE)
        subprocess.run(["chattr", "-i", path], stderr=subprocess.PIPE)
        return done.returncode == 0

    @only("systemd")
    def test_the_log_of_a_pod_that_was_there_outlives_an_up_that_failed(self):
        self.idle("a")
        subprocess.run(["systemctl", "--user", "stop", f"{self.prefix}@a.service"], check=True)
        log = os.path.join(self.env["KIROCREW_POD_ARTIFACTS_DIR"], "a", "pod.log")
        os.makedirs(os.path.dirname(log), exist_ok=True)
        with open(log, "a") as file:
            file.write("earlier words\n")
        failed = self.pod("up", "a", "--health", "tcp", "--", "/bin/false", "{port}")
        self.assertEqual(failed.status, 1, failed)
        with open(log) as file:
            self.assertIn("earlier words", file.read())
        self.down("a")
        self.assert_no_residue()

    def test_who_finds_it_starting_and_sees_it_die_is_told_its_last_words(self):
        beginning = self.start("up", "a", "--wait-secs", "20", "--", "/bin/sh", "-c", "echo last words; sleep 3; exit 9", "{port}", stderr=subprocess.DEVNULL)
        self.eventually(lambda: self.ls().get("a", {}).get("pid"), what="its process")
        beginning.kill()
        beginning.wait()
        beginning.stdout.close()
        met = self.pod("up", "a", "--wait-secs", "20")
        self.assertEqual(met.status, 1, met)
        self.assertIn("it died before it was ready: status 9", met.err)
        self.assertIn("  | last words", met.err)
        self.down("a")
        self.assert_no_residue()

    # --- L10 --------------------------------------------------------------------------------------------------------------

    def test_L10_the_payload_is_missing(self):
        refused = self.pod("up", "a", "--", os.path.join(self.dir, "missing"))
        self.assertEqual(refused.status, 3, refused)
        self.assertIn("missing", self.one_line(refused))
        self.assert_nothing_left_and_next_works()

    def test_L10_the_payload_goes_missing_between_up_and_boot(self):
        program = os.path.join(self.dir, "program")
        shutil.copy("/bin/sleep", program)
        report = self.idle("a", program, "1000")
        os.unlink(program)
        os.kill(report["pid"], 9)
        self.eventually(lambda: self.state("a") == "refused", seconds=60, what="the refusal")
        self.assertIn(program, self.ls()["a"]["reason"])
        again = self.pod("up", "a")
        self.assertEqual(again.status, 3, again)
        self.assertEqual(list(self.ls()), ["a"])
        self.assertTrue(os.path.isdir(report["home"]))
        self.down("a")
        self.assert_no_residue(report["id"])

    def test_L10_the_port_band_is_full(self):
        self.env["KIROCREW_POD_PORT_SPAN"] = "1"
        with socket.socket() as taken:
            taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            taken.bind(("127.0.0.1", self.base_port + 1))
            taken.listen()
            failed = self.pod("up", "a", "--", *SERVE)
            self.assertEqual(failed.status, 78, failed)
            self.assertIn("every port of the band is taken", self.one_line(failed))
            self.assertEqual(self.ls(), {})
        self.assert_nothing_left_and_next_works()

    def test_L10_the_home_cannot_be_made(self):
        self.idle("other")
        if not self.can_be_immutable(self.root):
            # No immutable flag on this file system: a file where the home will be.
            return self.home_is_taken()
        with self.read_only(self.root):
            failed = self.pod("up", "a", "--", *SERVE)
            self.assertNotEqual(failed.status, 0, failed)
            self.one_line(failed)
            self.assertEqual(list(self.ls()), ["other"])
        self.down("other")
        self.assert_nothing_left_and_next_works()

    def home_is_taken(self):
        open(self.home("a"), "w").close()
        failed = self.pod("up", "a", "--", *SERVE)
        self.assertNotEqual(failed.status, 0, failed)
        self.one_line(failed)
        self.assertEqual(os.path.getsize(self.home("a")), 0)
        os.unlink(self.home("a"))
        self.down("other")
        self.assert_nothing_left_and_next_works()

    def test_L10_the_home_is_a_file_a_link_or_a_strangers_directory(self):
        os.makedirs(self.root, mode=0o700)
        victim = os.path.join(self.dir, "victim")
        os.makedirs(victim)
        for make in (lambda: open(self.home("a"), "w").close(), lambda: os.symlink(victim, self.home("a")), lambda: os.symlink("/nowhere", self.home("a")),
                     lambda: os.makedirs(os.path.join(self.home("a"), "theirs")), lambda: os.mkfifo(self.home("a"))):
            make()
            before = tree_manifest(self.root)
            failed = self.pod("up", "a", "--", *SERVE)
            self.assertNotEqual(failed.status, 0, failed)
            self.one_line(failed)
            self.assertEqual(tree_manifest(self.root), before)
            self.assertEqual(os.listdir(victim), [])
            self.assertEqual([e for e in os.listdir(self.pods_dir) if not e.endswith(".lock")], [])
            path = self.home("a")
            shutil.rmtree(path) if os.path.isdir(path) and not os.path.islink(path) else os.unlink(path)
        self.assert_nothing_left_and_next_works()

    def test_L10_the_record_cannot_be_written(self):
        os.makedirs(self.pods_dir, mode=0o700)
        for name in ("other",):
            self.idle(name)
        if not self.can_be_immutable(self.pods_dir):
            os.makedirs(os.path.join(self.pods_dir, "a.env"))
            failed = self.pod("up", "a", "--", *SERVE)
            self.assertNotEqual(failed.status, 0, failed)
            self.one_line(failed)
            os.rmdir(os.path.join(self.pods_dir, "a.env"))
        else:
            with self.read_only(self.pods_dir):
                failed = self.pod("up", "a", "--", *SERVE)
                self.assertNotEqual(failed.status, 0, failed)
                self.one_line(failed)
                self.assertFalse(os.path.lexists(self.home("a")))
        self.down("other")
        self.assert_nothing_left_and_next_works()

    @only("systemd")
    def test_L10_X26_the_unit_directory_is_read_only(self):
        os.makedirs(UNITS, exist_ok=True)
        if not self.can_be_immutable(UNITS):
            # The same from the tool's side: its file can not be put in place.
            os.makedirs(os.path.join(UNITS, f"{self.prefix}@.service", "in-the-way"))
            failed = self.pod("up", "a", "--", *SERVE)
            shutil.rmtree(os.path.join(UNITS, f"{self.prefix}@.service"))
        else:
            with self.read_only(UNITS):
                failed = self.pod("up", "a", "--", *SERVE)
        self.assertNotEqual(failed.status, 0, failed)
        self.one_line(failed)
        self.assert_nothing_left_and_next_works()

    @only("systemd")
    def test_L10_X26_the_unit_directory_is_a_link(self):
        aside, target = UNITS + ".aside", os.path.join(self.dir, "elsewhere")
        os.makedirs(UNITS, exist_ok=True)
        os.rename(UNITS, aside)
        try:
            for there in (target, "/nowhere/at/all"):
                if there == target:
                    os.makedirs(target)
                os.symlink(there, UNITS)
                done = self.pod("up", "a", "--health", "none", "--", *IDLE)
                # Resolved once and used as what it is, or refused; nothing half-made.
                if done.status == 0:
                    self.assertEqual(there, target)
                    self.down("a")
                else:
                    self.one_line(done)
                    self.assertEqual(self.ls(), {})
                    self.assertFalse(os.path.exists(there) and os.listdir(there))
                os.unlink(UNITS)
        finally:
            if os.path.islink(UNITS):
                os.unlink(UNITS)
            os.rename(aside, UNITS)
            subprocess.run(["systemctl", "--user", "daemon-reload"], check=True)
        self.assert_nothing_left_and_next_works()

    @only("systemd")
    def test_X26_a_mask_and_foreign_drop_ins_are_named_and_not_undone(self):
        unit = os.path.join(UNITS, f"{self.prefix}@a.service")
        os.makedirs(UNITS, exist_ok=True)
        os.symlink("/dev/null", unit)
        self.addCleanup(lambda: os.path.lexists(unit) and os.unlink(unit))
        subprocess.run(["systemctl", "--user", "daemon-reload"], check=True)
        refused = self.pod("up", "a", "--", *SERVE)
        self.assertEqual(refused.status, 78, refused)
        self.assertIn("mask", self.one_line(refused))
        self.assertEqual(os.readlink(unit), "/dev/null")
        self.assertEqual(self.ls(), {})
        os.unlink(unit)
        for text, named in (("[Service]\nRestart=always\n", "Restart="), ("[Service]\nExecStart=\nExecStart=/bin/true\n", "ExecStart="),
                            ("[Service]\nRestartPreventExitStatus=\n", "RestartPreventExitStatus=")):
            folder = unit + ".d"
            os.makedirs(folder)
            foreign = os.path.join(folder, "99-foreign.conf")
            with open(foreign, "w") as drop_in:
                drop_in.write(text)
            subprocess.run(["systemctl", "--user", "daemon-reload"], check=True)
            refused = self.pod("up", "a", "--", *SERVE)
            shown = self.ls()
            there = os.path.exists(foreign)
            shutil.rmtree(folder, ignore_errors=True)
            subprocess.run(["systemctl", "--user", "daemon-reload"], check=True)
            self.assertEqual(refused.status, 78, refused)
            line = self.one_line(refused)
            self.assertIn(named, line)
            self.assertIn(foreign, line)
            self.assertTrue(there, "a foreign drop-in is not ours to delete")
            self.assertEqual(shown, {})
        self.assert_nothing_left_and_next_works()

    @only("systemd")
    def test_L10_the_start_is_refused(self):
        """A unit of the whole plane that refuses every start, put there between two ups."""
        folder = os.path.join(UNITS, f"{self.prefix}@.service.d")
        os.makedirs(folder)
        self.addCleanup(shutil.rmtree, folder, True)
        with open(os.path.join(folder, "refuse.conf"), "w") as drop_in:
            drop_in.write("[Unit]\nRefuseManualStart=yes\n")
        subprocess.run(["systemctl", "--user", "daemon-reload"], check=True)
        failed = self.pod("up", "a", "--", *SERVE)
        self.assertNotEqual(failed.status, 0, failed)
        self.one_line(failed)
        self.assertEqual(self.ls(), {})
        shutil.rmtree(folder)
        subprocess.run(["systemctl", "--user", "daemon-reload"], check=True)
        self.assert_nothing_left_and_next_works()

    @only("embedded")
    def test_L10_the_keeper_cannot_start(self):
        os.makedirs(os.path.join(self.pods_dir, "a.sock"), mode=0o700)
        failed = self.pod("up", "a", "--", *SERVE)
        self.assertNotEqual(failed.status, 0, failed)
        self.assertIn("a.sock", self.one_line(failed))
        self.assertTrue(os.path.isdir(os.path.join(self.pods_dir, "a.sock")))
        self.assertFalse(os.path.lexists(self.home("a")))
        os.rmdir(os.path.join(self.pods_dir, "a.sock"))
        self.assert_nothing_left_and_next_works()

    def test_L10_a_failed_up_keeps_a_home_that_was_there(self):
        report = self.idle("a")
        kept = os.path.join(report["home"], "workspace", "kept")
        open(kept, "w").close()
        record = os.path.join(self.pods_dir, "a.env")
        os.kill(report["pid"], 15)
        self.eventually(lambda: self.state("a") == "stopped", what="the end")
        with open(record, "rb") as before:
            recorded = before.read()
        failed = self.pod("up", "a", "--wait-secs", "2", "--health", "tcp", "--", *IDLE)
        self.assertEqual(failed.status, 1, failed)
        self.assertTrue(os.path.exists(kept))
        with open(record, "rb") as after:
            self.assertEqual(after.read(), recorded)
        self.assertIn("a", self.ls())
        self.assertEqual(self.pod("up", "a").status, 0)
        self.down("a")
        self.assert_no_residue(report["id"])

    # --- L35 --------------------------------------------------------------------------------------------------------------

    @only("embedded")
    def test_L35_a_stale_socket_is_cleaned_and_others_are_refused(self):
        path = os.path.join(self.pods_dir, "a.sock")
        os.makedirs(self.pods_dir, mode=0o700)
        here = os.getcwd()
        os.chdir(self.pods_dir)
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind("a.sock")
        os.chdir(here)
        self.assertEqual(set(self.ls()), {"a"})
        self.assertNotIn(self.state("a"), ("up", "starting", "restarting"))
        report = self.up("a")
        self.assertEqual(self.get(report["port"])[0], 200)
        self.down("a")
        self.assert_no_residue(report["id"])
        victim = os.path.join(self.dir, "victim")
        with open(victim, "w") as precious:
            precious.write("precious")
        for make in (lambda: open(path, "w").close(), lambda: os.symlink(victim, path), lambda: os.mkfifo(path)):
            make()
            for words in (("up", "a", "--", *SERVE), ("down", "a")):
                refused = self.pod(*words)
                self.assertNotEqual(refused.status, 0, (words, refused))
                self.assertIn("a.sock", refused.err)
                self.assertTrue(os.path.lexists(path))
            self.assertFalse(os.path.lexists(self.home("a")))
            os.unlink(path)
        with open(victim) as precious:
            self.assertEqual(precious.read(), "precious")
        self.down("a")
        self.assert_nothing_left_and_next_works()

    # --- prune --------------------------------------------------------------------------------------------------------------

    def test_prune_takes_the_dead_and_old_and_never_the_living(self):
        living = self.idle("living")
        restarting = self.idle("restarting", "/bin/sh", "-c", "sleep 1; exit 1")
        dead = self.idle("dead")
        os.kill(dead["pid"], 15)
        for name, age in (("old", 5 * 86400), ("young", 3600)):
            with open(os.path.join(self.pods_dir, f"{name}.env"), "w") as record:
                record.write(f"ID='{uuid.uuid4()}'\nCREATED='{int(time.time() - age)}'\nEXEC='[\"/bin/true\"]'\n")
        os.makedirs(os.path.join(self.home("new"), "os-home"), mode=0o700)
        self.eventually(lambda: self.state("dead") == "stopped", what="the end")
        self.eventually(lambda: self.state("restarting") == "restarting", seconds=30, what="the restart")
        before = set(self.ls())
        dry = self.pod("prune", "--dry-run", "--json")
        self.assertEqual(dry.status, 0, dry)
        self.assertEqual([(pod["name"], pod["status"]) for pod in dry.json], [("old", "would go")])
        self.assertGreaterEqual(dry.json[0]["age_s"], 5 * 86400 - 60)
        self.assertEqual(set(self.ls()), before)
        dry = self.pod("prune", "--dry-run", "--older-than", "30m", "--json")
        self.assertEqual([pod["name"] for pod in dry.json], ["old", "young"])
        text = self.pod("prune", "--dry-run", "--all")
        self.assertEqual(text.out.splitlines(), ["dead: would go", "new: would go", "old: would go", "young: would go"])
        done = self.pod("prune")
        self.assertEqual((done.status, done.out), (0, "old: gone\n"), done)
        none = self.pod("prune")
        self.assertEqual((none.status, none.out), (0, ""), none)
        self.assertIn("nothing to prune", none.err)
        done = self.pod("prune", "--all", "--json")
        self.assertEqual([(pod["name"], pod["status"], pod["reason"]) for pod in done.json], [("dead", "gone", None), ("new", "gone", None), ("young", "gone", None)])
        self.assertEqual(set(self.ls()), {"living", "restarting"})
        self.assertTrue(alive(living["pid"]))
        self.assertFalse(os.path.lexists(dead["home"]))
        self.assertTrue(os.path.isdir(restarting["home"]))

    def test_prune_leaves_what_no_up_made(self):
        theirs = os.path.join(self.home("theirs"), "photos")
        os.makedirs(theirs)
        os.makedirs(os.path.join(self.root, ".hidden"))
        before = tree_manifest(self.root)
        self.assertEqual(self.pod("prune", "--all").status, 0)
        self.assertEqual(tree_manifest(self.root), before)

    # --- logs -----------------------------------------------------------------------------------------------------------------

    def test_logs_are_cut_and_followed(self):
        script = "i=0; while [ $i -lt 50 ]; do echo line $i; i=$((i+1)); done; while :; do sleep 0.2; echo more $i; i=$((i+1)); done"
        self.idle("a", "/bin/sh", "-c", script)
        self.eventually(lambda: "line 49" in self.pod("logs", "a", "-n", "1000").out, what="the fiftieth line")
        self.assertEqual(len(self.pod("logs", "a", "-n", "3").out.splitlines()), 3)
        self.assertEqual(self.pod("logs", "a", "-n", "0").out, "")
        follow = self.start("logs", "a", "-n", "1", "-f")
        try:
            seen = [follow.stdout.readline() for _ in range(5)]
            self.assertEqual(len([line for line in seen if line.startswith(b"more ")]) >= 4, True, seen)
            self.assertIsNone(follow.poll())
        finally:
            follow.send_signal(2)
            follow.communicate(timeout=20)
        self.assertIn(follow.returncode, (0, -2, 130))
        # A reader that is gone ends it.
        gone = subprocess.Popen(["/bin/bash", "-c", '"$0" logs a -f | head -n 2 >/dev/null; echo ${PIPESTATUS[0]}', self.command()[0]], env=self.env,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = gone.communicate(timeout=30)
        self.assertEqual((out.strip(), err), (b"0", b""))
        missing = self.pod("logs", "b")
        self.assertEqual(missing.status, 3, missing)
        self.one_line(missing)

    # --- X59 --------------------------------------------------------------------------------------------------------------

    def assert_clean(self, result):
        for stream in (result.out, result.err):
            raw = stream.encode("utf-8", "surrogateescape")
            text = raw.decode("utf-8")
            self.assertEqual([c for c in text if c != "\n" and (ord(c) in FORBIDDEN or 0x80 <= ord(c) <= 0x9F or c in "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029")], [], raw)
        return result

    def test_X59_control_bytes_in_notes_names_and_tails(self):
        os.makedirs(self.root, mode=0o700)
        os.makedirs(self.pods_dir, mode=0o700)
        os.makedirs(os.path.join(self.home("noted"), "os-home"), mode=0o700)
        with open(os.path.join(self.pods_dir, "noted.refused"), "wb") as note:
            note.write(HOSTILE + b"\nCODE='x'\n" + HOSTILE * 10000)
        with open(os.path.join(self.pods_dir, "recorded.env"), "wb") as record:
            record.write(b"ID='x'\nAPPROVAL='" + HOSTILE.replace(b"\x00", b"").replace(b"\r", b"") + b"'\nPORT='\x1b[2J'\n")
        os.makedirs(os.path.join(os.fsencode(self.root), HOSTILE.replace(b"\x00", b"").replace(b"/", b"")))
        with open(os.path.join(self.dir, "hostile"), "wb") as body:
            body.write(HOSTILE + b"\n" + b"x" * (1 << 20) + b"\n" + HOSTILE + b"\n")
        for words in (("ls",), ("ls", "--json"), ("status", "noted"), ("status", "noted", "--json"), ("status", "recorded"), ("status", "recorded", "--json"),
                      ("prune", "--all", "--dry-run"), ("prune", "--all", "--dry-run", "--json"), ("url", "recorded"), ("env", "recorded")):
            seen = self.assert_clean(self.pod(*words))
            if "--json" in words and seen.status == 0:
                self.assertIsInstance(json.loads(seen.out), (list, dict))
        rows = [line for line in self.pod("ls").out.splitlines() if line.startswith(("noted ", "recorded "))]
        self.assertEqual(len(rows), 2)
        self.assertEqual({p["state"] for p in self.pod("ls", "--json").json if p["name"] == "noted"}, {"refused"})
        failed = self.assert_clean(self.pod("up", "a", "--", "/bin/sh", "-c", f"cat {self.dir}/hostile {self.dir}/hostile >&2; sleep 0.3; exit 4; : {{port}}"))
        self.assertEqual(failed.status, 1, failed.err[-300:])
        self.assertIn("red", failed.err)
        self.idle("b", "/bin/sh", "-c", f"cat {self.dir}/hostile; exec sleep 1000")
        self.eventually(lambda: "end" in self.pod("logs", "b").out, seconds=60, what="the log")
        self.assert_clean(self.pod("logs", "b"))
        name = "bad\x1b[31m\u202e"
        for words in (("up", name, "--", "/bin/true"), ("down", name), ("status", name), ("\x1b[2J",), ("up", "a", "--\x1b[2J"), ("up", "c", "--", "/no/\x1b[2J\nx")):
            refused = self.assert_clean(self.pod(*words))
            self.assertNotEqual(refused.status, 0)
            self.one_line(refused)


if __name__ == "__main__":
    unittest.main()
