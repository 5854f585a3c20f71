"""`down` of homes as payloads leave them: any mode, depth, width and name, links and mounts that lead out, and somebody who exchanges them meanwhile."""

import json
import os
import subprocess
import tempfile
import unittest

from behind import PLAIN, BehindTest
from plane import PROGRAMS, tree_manifest

NAMES = [b"new\nline", b"esc\x1b[31mred", b"not-utf8-\xff", b"n" * 255, b"-rf", b" ", b"tab\tquote\"'\\", b"\xe2\x80\xaereversed"]


def make_files(directory, count):
    at = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    for number in range(count):
        os.close(os.open(f"{number:06}", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)


def make_nested(top, levels, name):
    """Relative, because no path reaches so deep."""
    at = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY | os.O_DIRECTORY, dir_fd=at)
        os.close(at)
        at = below
    os.close(os.open("leaf", os.O_CREAT | os.O_WRONLY, dir_fd=at))
    os.close(at)


class Trees(BehindTest):
    def setUp(self):
        super().setUp()
        # In memory where there is such a place: on a disk that others use, too, a removal of this many entries waits for each.
        self.memory = tempfile.mkdtemp(prefix="pod-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else self.dir)

    def _remove_dir(self):
        # What a failed test leaves may be too deep for any walk by path.
        subprocess.run(["rm", "-rf", self.dir, self.memory], stderr=subprocess.DEVNULL)
        super()._remove_dir()

    def root_in_memory(self):
        self.root = self.env["KIROCREW_POD_ROOT"] = os.path.join(self.memory, "pods")

    def victim(self):
        top = os.path.join(self.dir, "victim")
        os.makedirs(os.path.join(top, "below"))
        for path in ("precious", "below/precious"):
            with open(os.path.join(top, path), "w") as text:
                text.write("precious")
        return top

    def test_L12_directories_and_files_without_permission_bits(self):
        report = self.quiet("one")
        top = os.path.join(report["home"], "workspace")
        closed = []
        for mode in (0o555, 0o000, 0o111, 0o222):
            for path in (f"d{mode:o}", f"d{mode:o}/inside", f"d{mode:o}/inside/deep"):
                os.mkdir(os.path.join(top, path))
                with open(os.path.join(top, path, "file"), "w") as text:
                    text.write("x")
                os.chmod(os.path.join(top, path, "file"), 0o444)
                closed.append((os.path.join(top, path), mode))
        for path, mode in reversed(closed):
            os.chmod(path, mode)
        with self.wrapped(*PLAIN):
            self.down("one")
        self.assert_no_residue(report["id"])

    def test_L12_a_home_without_permission_bits(self):
        for mode in (0o555, 0o000):
            report = self.quiet("one")
            os.chmod(os.path.join(report["home"], "os-home"), mode)
            os.chmod(report["home"], mode)
            with self.wrapped(*PLAIN):
                self.down("one")
            self.assert_no_residue(report["id"])

    def test_L13_deep_with_64_descriptors_and_little_stack(self):
        self.root_in_memory()
        report = self.quiet("one")
        for top, levels, name in (("long", 5000, "d" * 40), ("short", 9000, "d")):
            path = os.path.join(report["home"], top)
            os.mkdir(path)
            make_nested(path, levels, name)
        with self.wrapped("prlimit", "--nofile=64:64", "--stack=262144", "--"):
            self.down("one")
        self.assert_no_residue(report["id"])

    def test_L14_wide_in_little_memory(self):
        self.root_in_memory()
        report = self.quiet("one")
        wide = os.path.join(report["home"], "wide")
        os.mkdir(wide)
        make_files(wide, 50000)
        with self.wrapped("prlimit", "--data=8388608", "--"):
            self.down("one")
        self.assert_no_residue(report["id"])

    # --- links and mounts that lead out ------------------------------------------------------------------------------------

    def race(self, rounds, prepare, pairs, statuses):
        """Homes of a pod without a unit, deleted while the pairs of names are exchanged."""
        victim = self.victim()
        before = tree_manifest(victim)
        exchanged = 0
        self.down("one")  # makes what the plane needs
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        for _ in range(rounds):
            prepare(victim)
            racer = self.process(os.path.join(PROGRAMS, "exchanger"), *pairs, stdout=subprocess.PIPE)
            self.assertEqual(racer.stdout.readline(), b"racing\n")
            done = self.pod("down", "one")
            racer.terminate()
            exchanged += int(racer.communicate(timeout=30)[0])
            self.assertEqual(tree_manifest(victim), before)
            self.assertIn(done.status, statuses, done)
        self.assertGreater(exchanged, rounds * 10, "the racer did not race")
        return exchanged

    def test_L16_a_directory_exchanged_with_a_link(self):
        self.root_in_memory()
        home, retired = self.home("one"), os.path.join(self.root, ".one@retired")

        def prepare(victim):
            if os.listdir(self.root):
                self.down("one")
            self.assertEqual(os.listdir(self.root), [])
            os.makedirs(os.path.join(home, "os-home"))
            for inside in ("d", "d/below"):
                os.mkdir(os.path.join(home, inside))
                make_files(os.path.join(home, inside), 60)
            os.symlink(victim, os.path.join(home, "link"))

        pairs = [f"{top}/{name}" for top in (home, retired) for name in ("d", "link")]
        self.race(200, prepare, pairs, (0, 1))
        self.down("one")
        self.assert_no_residue()

    def test_L16_the_home_itself_exchanged_with_a_link(self):
        self.root_in_memory()
        home, retired, link = self.home("one"), os.path.join(self.root, ".one@retired"), os.path.join(self.root, ".link")

        def prepare(victim):
            for path in (home, retired, link):
                if os.path.islink(path):
                    os.unlink(path)
            if os.path.isdir(link):
                os.rename(link, retired)
            if os.path.isdir(home):
                os.makedirs(os.path.join(home, "os-home"), exist_ok=True)
            if os.listdir(self.root):
                self.down("one")
            self.assertEqual(os.listdir(self.root), [])
            os.makedirs(os.path.join(home, "os-home"))
            make_files(home, 60)
            os.symlink(victim, link)

        self.race(50, prepare, [home, link, retired, link], (0, 1, 78))

    def test_L17_mounts_in_the_home_are_left_and_named(self):
        report = self.quiet("one")
        victim = self.victim()
        before = tree_manifest(victim)
        for point in ("bound", "memory", "od\x1bd\n"):
            os.makedirs(os.path.join(report["home"], "workspace", point))
        status, out, err = self.in_mounts(
            """cd "$1/workspace"
            mount --bind "$2" bound
            mount -t tmpfs none memory && echo kept >memory/file
            mount -t tmpfs none "$5"
            cd /
            status=0; "$3" down one || status=$?
            cat "$4/workspace/memory/file"
            ls "$4/workspace"
            exit $status""",
            report["home"], victim, self.command()[0], os.path.join(self.root, ".one@retired"), "od\x1bd\n")
        self.assertEqual(status, 1, (out, err))
        self.assertEqual(out.splitlines()[0], "kept")
        self.assertEqual(tree_manifest(victim), before)
        for line in err.splitlines():
            self.assertTrue(line.isprintable(), line)
        for point in ("bound", "memory"):
            self.assertRegex(err, rf"(?m)^kirocrew-pod: left: .*workspace/{point}\b")
        self.assertRegex(err, r"(?m)^kirocrew-pod: left: .*workspace/od\\x1bd\\")
        self.assertEqual(self.state("one"), "unfinished")
        self.down("one")
        self.assertEqual(tree_manifest(victim), before)
        self.assert_no_residue(report["id"])

    def test_L17_links_that_lead_out_are_removed_and_not_followed(self):
        report = self.quiet("one")
        victim = self.victim()
        before = tree_manifest(victim)
        workspace = os.path.join(report["home"], "workspace")
        os.symlink(victim, os.path.join(workspace, "absolute"))
        os.symlink(os.path.relpath(victim, workspace), os.path.join(workspace, "relative"))
        os.symlink("/proc/self/root", os.path.join(workspace, "magic"))
        os.symlink("loop", os.path.join(workspace, "loop"))
        os.link(os.path.join(victim, "precious"), os.path.join(workspace, "hard"))
        self.down("one")
        after = tree_manifest(victim)
        self.assertEqual(after, before)
        self.assert_no_residue(report["id"])

    # --- names -----------------------------------------------------------------------------------------------------------------

    def test_L18_any_name_in_the_home_is_removed_byte_for_byte(self):
        report = self.quiet("one")
        top = os.fsencode(report["home"])
        for name in NAMES:
            os.makedirs(os.path.join(top, b"workspace", name, name))
            open(os.path.join(top, b"workspace", name, name, name), "w").close()
            open(os.path.join(top, b"run", name), "w").close()
        self.down("one")
        self.assert_no_residue(report["id"])

    def test_L18_any_name_in_the_root_is_one_escaped_line(self):
        report = self.quiet("one")
        root = os.fsencode(self.root)
        for name in NAMES:
            os.mkdir(os.path.join(root, name))
            open(os.path.join(root, name, b"file"), "w").close()
        before = tree_manifest(root)
        table = self.pod("ls")
        self.assertEqual(table.status, 0, table)
        lines = table.out.split("\n")
        self.assertEqual(lines.pop(), "")
        self.assertEqual(len(lines), 2 + len(NAMES), table)
        for line in lines:
            self.assertTrue(line.isprintable(), ascii(line))
            self.assertEqual(line.encode("utf-8").decode("utf-8"), line)
        raw = subprocess.run(self.command("ls", "--json"), env=self.env, stdout=subprocess.PIPE, check=True).stdout
        listed = json.loads(raw.decode("utf-8"))
        self.assertEqual(len(listed), 1 + len(NAMES))
        self.assertEqual(raw.count(b"\n"), 1)
        self.assertNotIn(b"\x1b", raw)
        self.assertEqual(len({pod["name"] for pod in listed}), 1 + len(NAMES))
        for pod in listed:
            self.assertEqual(pod["state"], "up" if pod["name"] == "one" else "foreign")
        self.down("one")
        for name in NAMES:
            refused = subprocess.run(self.command("down", "--", name), env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual(refused.returncode, 2, refused)
            (line,) = refused.stderr.decode("utf-8").splitlines()
            self.assertTrue(line.isprintable(), ascii(line))
        pruned = self.pod("prune", "--all")
        self.assertEqual(pruned.status, 0, pruned)
        everything = self.pod("down", "--all")
        self.assertEqual(everything.status, 0, everything)
        kept = {path: what for path, what in before.items() if not path.startswith(os.fsencode(report["home"]))}
        self.assertEqual(tree_manifest(root), kept)


if __name__ == "__main__":
    unittest.main()
