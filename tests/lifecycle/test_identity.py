"""What stands in the way of a home, and whose stores are staged in it."""

import os
import shutil
import sqlite3
import stat
import threading
import unittest

from checkouts import CheckoutTest
from plane import tree_manifest


def modes(top):
    """Directories and files below it, with their permission bits."""
    for where, directories, files in os.walk(top):
        for entry in directories:
            yield os.path.join(where, entry), "directory", stat.S_IMODE(os.lstat(os.path.join(where, entry)).st_mode)
        for entry in files:
            yield os.path.join(where, entry), "file", stat.S_IMODE(os.lstat(os.path.join(where, entry)).st_mode)


class Identity(CheckoutTest):
    def test_I01_a_link_in_place_of_any_component_is_refused_and_its_victim_untouched(self):
        victim = os.path.join(self.dir, "victim")
        os.makedirs(os.path.join(victim, "inner"))
        with open(os.path.join(victim, "file"), "w") as text:
            text.write("mine")
        store = os.path.join(self.dir, "store")
        os.makedirs(store)
        with open(os.path.join(store, "token"), "w") as text:
            text.write("secret of the operator")
        self.identity("store", store, ".local/share/store")
        self.agent("at-once")
        report = self.stopped()
        before = tree_manifest(victim)
        components = ("os-home", "os-home/.aws", "os-home/.aws/sso", "os-home/.aws/sso/cache", "os-home/.local", "os-home/.local/share",
                      "os-home/.local/share/store", "workspace", "run", "kiro", "config.json")
        for number, component in enumerate(components):
            path = os.path.join(report["home"], component)
            aside = os.path.join(self.dir, "aside")
            os.rename(path, aside)
            for target in (victim, os.path.join(victim, "not-there")) if number < 4 else (victim,):
                os.symlink(target, path)
                with self.subTest(component=component, target=target):
                    refused = self.refused()
                    self.assertIn(os.path.basename(component), refused.err)
                    self.assertEqual(self.ls()["a"]["state"], "refused")
                    self.assertIn(os.path.basename(component), self.ls()["a"]["reason"])
                    self.assertEqual(tree_manifest(victim), before)
                    self.assertEqual(os.readlink(path), target)
                os.unlink(path)
            os.rename(aside, path)
        self.raised()
        self.assertEqual(tree_manifest(victim), before)

    def test_I01_a_link_in_place_of_home_or_record_is_refused_before_anything_is_made(self):
        victim = os.path.join(self.dir, "victim")
        os.makedirs(victim)
        with open(os.path.join(victim, "file"), "w") as text:
            text.write("PORT='1'\n")
        before = tree_manifest(victim)
        os.makedirs(self.root, mode=0o700)
        os.makedirs(self.pods_dir, mode=0o700)
        for path in (self.home("a"), os.path.join(self.pods_dir, "a.env")):
            for target in (victim, os.path.join(victim, "file"), os.path.join(victim, "not-there")):
                os.symlink(target, path)
                with self.subTest(path=path, target=target):
                    refused = self.refused()
                    self.assertIn(os.path.basename(path), refused.err)
                    self.assertEqual(tree_manifest(victim), before)
                    self.assertEqual(os.readlink(path), target)
                os.unlink(path)
        self.raised()

    def test_I02_a_hard_link_where_a_store_file_goes_is_left_alone(self):
        sentinel, store = os.path.join(self.dir, "sentinel"), os.path.join(self.dir, "store")
        with open(sentinel, "w") as text:
            text.write("of somebody")
        os.chmod(sentinel, 0o640)
        os.makedirs(store)
        with open(os.path.join(store, "token"), "w") as text:
            text.write("secret of the operator")
        self.agent("at-once")
        self.identity("store", store, ".local/share/store")
        report = self.stopped()
        staged = os.path.join(report["os_home"], ".local/share/store/token")
        os.unlink(staged)
        os.link(sentinel, staged)
        before = os.lstat(sentinel)
        self.raised()
        after = os.lstat(sentinel)
        self.assertEqual((after.st_ino, after.st_mode, after.st_mtime_ns, after.st_nlink), (before.st_ino, before.st_mode, before.st_mtime_ns, 2))
        self.assertTrue(os.path.samefile(sentinel, staged))
        self.down("a")
        with open(sentinel) as text:
            self.assertEqual(text.read(), "of somebody")
        self.assertEqual(os.lstat(sentinel).st_nlink, 1)

    def make_stores(self):
        """The operator's data directory: a live database whose row sits in the WAL only, and a token that others may read."""
        data = os.path.join(self.dir, "data")
        store = os.path.join(data, "kiro-cli")
        os.makedirs(os.path.join(store, "deep"))
        os.makedirs(os.path.join(data, "amazon-q"))
        with open(os.path.join(data, "amazon-q", "plain"), "w") as text:
            text.write("q")
        for name in ("token", "deep/token"):
            with open(os.path.join(store, name), "w") as text:
                text.write("minted by the host")
            os.chmod(os.path.join(store, name), 0o644)
        database = sqlite3.connect(os.path.join(store, "data.sqlite3"))
        self.addCleanup(database.close)
        database.executescript("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE auth(k, v); INSERT INTO auth VALUES('a', 'host');")
        database.commit()
        return data, store, database

    def rows(self, path):
        copy = sqlite3.connect(path)
        try:
            self.assertEqual(copy.execute("PRAGMA integrity_check").fetchall(), [("ok",)])
            return copy.execute("SELECT v FROM auth ORDER BY rowid").fetchall()
        finally:
            copy.close()

    def test_stores_are_staged_at_boot_and_what_the_pod_has_is_never_changed(self):
        data, store, database = self.make_stores()
        self.agent("at-once")
        with self.manager_environment(XDG_DATA_HOME=data):
            before = tree_manifest(data)
            report = self.raised()
            self.assertEqual(tree_manifest(data), before, "the host's store, -wal and -shm and times included")
            share = os.path.join(report["os_home"], ".local/share")
            self.assertEqual(sorted(os.listdir(os.path.join(share, "kiro-cli"))), ["data.sqlite3", "deep", "token"])
            with open(os.path.join(share, "amazon-q", "plain")) as text:
                self.assertEqual(text.read(), "q")
            for path, kind, mode in modes(report["os_home"]):
                self.assertEqual(mode, 0o700 if kind == "directory" else 0o600, path)
            self.assertEqual(os.listdir(os.path.join(report["os_home"], ".aws/sso/cache")), [])
            staged = os.path.join(share, "kiro-cli", "data.sqlite3")
            self.assertEqual(self.rows(staged), [("host",)])
            # The pod refreshes its token, the host goes on: neither sees the other.
            mine = sqlite3.connect(staged)
            mine.executescript("UPDATE auth SET v = 'pod'")
            mine.close()
            with open(os.path.join(share, "kiro-cli", "token"), "w") as text:
                text.write("refreshed by the pod")
            database.executescript("INSERT INTO auth VALUES('b', 'later')")
            database.commit()
            with open(os.path.join(store, "token"), "w") as text:
                text.write("refreshed by the host")
            before, mine = tree_manifest(data), tree_manifest(os.path.join(share, "kiro-cli"))
            self.boot_again("a", report["pid"])
            self.eventually(lambda: self.ls()["a"]["state"] == "up" and self.ls()["a"]["pid"] != report["pid"], seconds=40, what="the second boot")
            self.assertEqual(tree_manifest(os.path.join(share, "kiro-cli")), mine)
            self.assertEqual(self.rows(staged), [("pod",)])
            self.assertEqual(tree_manifest(data), before)
            self.down("a")
            self.assertEqual(tree_manifest(data), before)
            self.assert_no_residue(report["id"])

    def test_a_command_payload_gets_only_the_stores_that_an_ini_names(self):
        data, store, _ = self.make_stores()
        config = os.path.join(self.dir, "config.ini")
        with open(config, "w") as ini:
            ini.write(f"[identity mine]\nsource = {os.path.join(store, 'deep')}\nstaged = .config/mine\n")
        with self.manager_environment(XDG_DATA_HOME=data):
            report = self.quiet("a", config=config)
            self.assertEqual(os.listdir(os.path.join(report["os_home"], ".config/mine")), ["token"])
            self.assertFalse(os.path.exists(os.path.join(report["os_home"], ".local/share/kiro-cli")))

    def test_I05_the_umask_changes_nothing(self):
        data, _, _ = self.make_stores()
        self.agent("at-once")
        seen = []
        with self.manager_environment(XDG_DATA_HOME=data):
            for umask in (0o000, 0o077, 0o777):
                report = self.raised(preexec_fn=lambda mask=umask: os.umask(mask))
                found = {os.path.relpath(path, report["home"]): (kind, mode) for path, kind, mode in modes(report["home"])}
                self.assertEqual([path for path, (kind, mode) in found.items() if kind == "directory" and mode != 0o700], [])
                self.assertEqual([path for path, (kind, mode) in found.items() if kind == "file" and mode & 0o077], [])
                self.assertEqual(stat.S_IMODE(os.lstat(report["home"]).st_mode), 0o700)
                seen.append(found)
                self.down("a")
        self.assertEqual(seen[0], seen[1])
        self.assertEqual(seen[0], seen[2])

    def test_I06_what_is_no_file_is_named_and_hangs_nobody(self):
        _, store, _ = self.make_stores()
        self.agent("at-once")
        self.identity("odd", store, ".odd")
        os.mkfifo(os.path.join(store, "fifo"))
        os.symlink("/dev/zero", os.path.join(store, "zero"))
        report = self.raised()
        self.assertEqual(sorted(os.listdir(os.path.join(report["os_home"], ".odd"))), ["data.sqlite3", "deep", "token"])
        logs = self.pod("logs", "a").out
        for name in ("fifo", "zero"):
            self.assertIn(name, logs)
        self.down("a")
        seed = os.path.join(self.dir, "seed")
        os.makedirs(seed)
        for make in (os.mkfifo, lambda path: os.symlink("/dev/zero", path)):
            path = os.path.join(seed, "config.json")
            make(path)
            refused = self.refused("b", "--seed", seed)
            self.assertIn("config.json", refused.err)
            os.unlink(path)
        os.mkfifo(os.path.join(self.pods_dir, "c.env"))
        refused = self.refused("c")
        self.assertIn("c.env", refused.err)

    def test_I07_each_copy_holds_what_was_committed_before_it_began(self):
        data, store, database = self.make_stores()
        database.close()
        self.agent("at-once")
        stop, done = threading.Event(), [0]

        def write():
            connection = sqlite3.connect(os.path.join(store, "data.sqlite3"), timeout=30)
            while not stop.wait(0.005):
                connection.execute("INSERT INTO auth VALUES('n', ?)", (done[0] + 1,))
                connection.commit()
                done[0] += 1
            connection.close()

        writer = threading.Thread(target=write)
        writer.start()
        try:
            with self.manager_environment(XDG_DATA_HOME=data):
                for number in range(4):
                    least = done[0]
                    report = self.raised(f"w{number}")
                    most = done[0] + 1
                    copied = self.rows(os.path.join(report["os_home"], ".local/share/kiro-cli/data.sqlite3"))
                    self.assertEqual(copied, [("host",), *((n,) for n in range(1, len(copied)))])
                    self.assertTrue(least <= len(copied) - 1 <= most, (least, len(copied) - 1, most))
                    self.down(f"w{number}")
        finally:
            stop.set()
            writer.join()
        self.assertGreater(done[0], 0)

    def test_I08_a_dead_owner_and_a_source_that_cannot_be_written(self):
        data, store, database = self.make_stores()
        saved = os.path.join(self.dir, "saved")
        shutil.copytree(store, saved)
        database.close()
        shutil.rmtree(store)
        os.rename(saved, store)
        os.unlink(os.path.join(store, "data.sqlite3-shm"))
        self.assertTrue(os.path.exists(os.path.join(store, "data.sqlite3-wal")))
        os.chmod(store, 0o555)
        self.agent("at-once")
        with self.manager_environment(XDG_DATA_HOME=data):
            before = tree_manifest(data)
            report = self.raised()
            self.assertEqual(self.rows(os.path.join(report["os_home"], ".local/share/kiro-cli/data.sqlite3")), [("host",)])
            self.assertEqual(tree_manifest(data), before)

    def test_I10_a_home_that_is_not_complete_does_not_boot(self):
        self.agent("at-once")
        report = self.raised("a", "--seed", "connections-two")
        self.vanish("a", report)
        os.unlink(os.path.join(report["home"], "fixture.yaml"))
        refused = self.pod("_run", "a")
        self.assertEqual(refused.status, 78, refused)
        self.assertIn("not complete", refused.err)
        self.assertEqual(self.state("a"), "refused")
        self.down("a")
        again = self.raised("a", "--seed", "connections-two")
        self.assertTrue(os.path.exists(os.path.join(again["home"], "fixture.yaml")))


if __name__ == "__main__":
    unittest.main()
