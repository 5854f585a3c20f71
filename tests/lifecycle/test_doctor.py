"""`doctor`: what it says of a host as it is, and of one with a fault of each kind. It looks only."""

import json
import os
import shutil
import subprocess
import unittest

from behind import PLAIN, BehindTest
from plane import BACKEND, BIN, tree_manifest

LEVELS = ("ok", "warning", "problem")


def for_root(test):
    """Of what only root can bring about there is a test for root alone; the judgement is tested for all (unit/test_doctor)."""
    return test if os.getuid() == 0 else None


class Doctor(BehindTest):
    def doctor(self, status=0, **how):
        """The findings by name. The exit status follows from the gravest one, and the text says what the JSON says."""
        result = self.pod("doctor", "--json", **how)
        report = result.json
        found = {check["check"]: check for check in report["checks"]}
        self.assertEqual(len(found), len(report["checks"]))
        worst = max((check["status"] for check in report["checks"]), key=LEVELS.index)
        self.assertEqual((report["status"], result.status), (worst, 1 if worst == "problem" else 0), result)
        self.assertEqual(result.status, status, result)
        text = self.pod("doctor", **how)
        self.assertEqual(text.status, status)
        for check in report["checks"]:
            self.assertIn(check["status"], LEVELS)
            self.assertRegex(text.out, rf"(?m)^{check['status']} +{check['check']} ")
            if check["remedy"]:
                self.assertIn("remedy: " + check["remedy"], text.out)
        return found

    def expect(self, check, status, detail, remedy=None):
        self.assertEqual(check["status"], status, check)
        self.assertIn(detail, check["detail"])
        if remedy is None:
            self.assertIsNone(check["remedy"], check)
        else:
            self.assertIn(remedy, check["remedy"] or "", check)

    def test_a_host_that_can_do_it_has_no_problem_and_nothing_is_made(self):
        before = tree_manifest(self.dir)
        found = self.doctor()
        self.assertEqual(tree_manifest(self.dir), before)
        for check in ("settings", "sandbox", "user-namespaces", "root", "pods-dir", "artifacts", "leftovers", "units", "git"):
            self.assertEqual(found[check]["status"], "ok", found[check])
        self.assertIn("the first `up` makes it", found["root"]["detail"])
        self.assertEqual(set(found), {"settings", "manager", "linger", "cgroup2", "user-namespaces", "sandbox", "journal", "root", "pods-dir",
                                      "artifacts", "agent", "leftovers", "units", "git"})

    def test_a_plane_in_use_stays_well(self):
        self.quiet("a")
        before = tree_manifest(self.root)
        self.expect(self.doctor()["leftovers"], "ok", "no orphaned")
        self.assertEqual(tree_manifest(self.root), before)

    def test_the_remedy_of_the_manager_can_work_here(self):
        nowhere = {"XDG_RUNTIME_DIR": os.path.join(self.dir, "nowhere"), "DBUS_SESSION_BUS_ADDRESS": ""}
        booted, logind = os.path.isdir("/run/systemd/system"), os.path.isdir("/run/systemd/users")
        auto = self.doctor(env={**nowhere, "KIROCREW_POD_BACKEND": "auto"})["manager"]
        self.assertEqual(auto["status"], "warning" if booted else "ok")
        self.assertIn("the embedded keeper supervises", auto["detail"])
        asked = self.doctor(status=1, env={**nowhere, "KIROCREW_POD_BACKEND": "systemd"})["manager"]
        self.expect(asked, "problem", "nowhere", "KIROCREW_POD_BACKEND to auto")
        for check in (auto, asked):
            if not (booted and logind):
                self.assertNotIn("enable-linger", json.dumps(check))
            if not booted:
                self.assertNotIn("systemctl", json.dumps(check))
        # What it advises works.
        self.assertEqual(self.pod("up", "a", "--health", "none", "--", "/bin/sleep", "1000", env={**nowhere, "KIROCREW_POD_BACKEND": "auto"}).status, 0)

    @for_root
    def test_no_bubblewrap(self):
        hide = 'mkdir -p "$1/u" "$1/w"; mount -t tmpfs t "$1/u"; mkdir "$1/u/up" "$1/u/w"; mount -t overlay -o "lowerdir=/usr/bin,upperdir=$1/u/up,workdir=$1/u/w" o /usr/bin; rm -f /usr/bin/bwrap; shift; exec "$@"'
        status, out, _ = self.in_mounts(hide, self.dir, BIN, "doctor", "--json")
        found = {check["check"]: check for check in json.loads(out)["checks"]}
        self.assertEqual(status, 1)
        self.expect(found["sandbox"], "problem", "bwrap is not installed", "apt-get install bubblewrap")

    @for_root
    def test_a_bubblewrap_that_cannot_work(self):
        fake = os.path.join(self.dir, "bwrap")
        with open(fake, "w") as text:
            text.write("#!/bin/sh\necho 'bwrap: No permissions to create a new namespace' >&2\nexit 1\n")
        os.chmod(fake, 0o755)
        status, out, _ = self.in_mounts('mount --bind "$1" /usr/bin/bwrap; shift; exec "$@"', fake, BIN, "doctor", "--json")
        self.assertEqual(status, 1)
        found = {check["check"]: check for check in json.loads(out)["checks"]}
        self.expect(found["sandbox"], "problem", "No permissions to create a new namespace")

    @for_root
    def test_no_user_namespaces(self):
        # A user namespace of our own has a limit of its own: nobody else is touched.
        words = ["unshare", "--user", "--map-root-user", "--mount", "/bin/sh", "-ec", 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"', "sh", BIN, "doctor", "--json"]
        done = subprocess.run(words, env=self.env, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=60)
        found = {check["check"]: check for check in json.loads(done.stdout)["checks"]}
        self.assertEqual(done.returncode, 1)
        self.expect(found["user-namespaces"], "problem", "No space left", "sysctl -w user.max_user_namespaces")
        self.assertEqual(found["sandbox"]["status"], "problem")

    def test_a_root_that_is_a_link(self):
        target = os.path.join(self.dir, "elsewhere")
        os.mkdir(target, 0o700)
        os.symlink(target, self.root)
        self.expect(self.doctor()["root"], "ok", f"{self.root} is a link to {target}")
        os.rmdir(target)
        self.expect(self.doctor(status=1)["root"], "problem", "which is not there", "KIROCREW_POD_ROOT")
        self.assertFalse(os.path.exists(target))

    def test_roots_that_cannot_be_used(self):
        with open(self.root, "w"):
            pass
        found = self.doctor(status=1)
        self.expect(found["root"], "problem", "is not a directory", "move it away")
        self.expect(found["leftovers"], "problem", "Not a directory")
        self.assertNotIn("doctor", found["leftovers"]["detail"])
        os.unlink(self.root)
        os.mkdir(self.root)
        for mode, words in ((0o777, "is writable for others"), (0o720, "is writable for others"), (0o500, "is not writable for us")):
            os.chmod(self.root, mode)
            with self.wrapped(*PLAIN):
                self.expect(self.doctor(status=1)["root"], "problem", words, "chmod ")
                remedy = self.pod("doctor", "--json").json["checks"]
            subprocess.run(next(c["remedy"] for c in remedy if c["check"] == "root").split(", or ")[0], shell=True, check=True)
            self.assertEqual(self.doctor()["root"]["status"], "ok")

    def test_a_root_of_another_user(self):
        if os.getuid() == 0:
            os.mkdir(self.root)
            os.chown(self.root, 65534, 65534)
            self.expect(self.doctor(status=1)["root"], "problem", "belongs to uid 65534", f"chown 0 {self.root}")
        else:
            found = self.doctor(status=1, env={"KIROCREW_POD_ROOT": "/usr/share"})
            self.expect(found["root"], "problem", "belongs to uid 0", f"as root: chown {os.getuid()} /usr/share")
            found = self.doctor(status=1, env={"KIROCREW_POD_ROOT": "/usr/share/pods"})
            self.expect(found["root"], "problem", "cannot be made", "KIROCREW_POD_ROOT")

    def test_a_parent_that_everybody_may_write_to(self):
        open_to_all = os.path.join(self.dir, "open")
        os.mkdir(open_to_all)
        os.chmod(open_to_all, 0o777)
        found = self.doctor(status=1, env={"KIROCREW_POD_ROOT": os.path.join(open_to_all, "pods")})
        self.expect(found["root"], "problem", "no sticky bit", "KIROCREW_POD_ROOT")

    def test_a_full_file_system(self):
        full = 'mkdir -p "$KIROCREW_POD_ROOT"; mount -t tmpfs -o size=1m,mode=700 t "$KIROCREW_POD_ROOT"; dd if=/dev/zero of="$KIROCREW_POD_ROOT/.fill" bs=4k 2>/dev/null || :; exec "$@"'
        status, out, _ = self.in_mounts(full, BIN, "doctor", "--json")
        self.assertEqual(status, 1)
        found = {check["check"]: check for check in json.loads(out)["checks"]}
        self.expect(found["root"], "problem", "is full", "kirocrew-pod prune")
        nodes = 'mkdir -p "$KIROCREW_POD_ROOT"; mount -t tmpfs -o nr_inodes=2,mode=700 t "$KIROCREW_POD_ROOT"; exec "$@"'
        status, out, _ = self.in_mounts(nodes, BIN, "doctor", "--json")
        self.assertEqual(status, 1)
        found = {check["check"]: check for check in json.loads(out)["checks"]}
        self.expect(found["root"], "problem", "no inodes", "kirocrew-pod prune")

    def test_orphans_and_the_remedy_ends_them(self):
        self.vanish("a", self.quiet("a"))
        found = self.doctor()["leftovers"]
        self.expect(found, "warning", "1 orphaned or unfinished pod: a", "kirocrew-pod down a")
        self.down(*found["remedy"].split()[2:])
        self.assertEqual(self.doctor()["leftovers"]["status"], "ok")

    def test_what_no_up_made_is_no_leftover_and_is_named_as_ls_names_it(self):
        for name in ("mine", "not a name"):
            os.makedirs(os.path.join(self.root, name))
        self.quiet("living")
        self.vanish("dead", self.quiet("dead"))
        found = self.doctor()
        self.expect(found["leftovers"], "warning", "1 orphaned or unfinished pod: dead", "kirocrew-pod down dead")
        self.expect(found["strangers"], "warning", "2 things in the pods root that no `up` made: mine 'not a name'", f"out of {self.root}")
        self.assertEqual({name: pod["state"] for name, pod in self.ls().items()}, {"living": "up", "dead": "orphan", "mine": "orphan", "not a name": "foreign"})
        self.down("--all")
        found = self.doctor()
        self.assertEqual((found["leftovers"]["status"], found["strangers"]["status"]), ("ok", "warning"))
        for name in ("mine", "not a name"):
            os.rmdir(os.path.join(self.root, name))
        self.assertNotIn("strangers", self.doctor())

    def unit_dir(self):
        config = os.path.join(self.dir, "config")
        os.makedirs(os.path.join(config, "systemd", "user"), exist_ok=True)
        return {"XDG_CONFIG_HOME": config}, os.path.join(config, "systemd", "user")

    def test_stale_units(self):
        env, units = self.unit_dir()
        drop_in = os.path.join(units, f"{self.prefix}@gone.service.d")
        foreign = os.path.join(units, f"{self.prefix}@mine.service.d")
        for top, file in ((drop_in, "50-kirocrew-pod.conf"), (foreign, "override.conf")):
            os.mkdir(top)
            with open(os.path.join(top, file), "w") as text:
                text.write("[Service]\nMemoryMax=1G\n")
        self.expect(self.doctor(env=env)["units"], "warning", f"1 drop-in directory of pods that have no record: {drop_in}", f"rm -r {drop_in}")
        shutil.rmtree(drop_in)
        self.expect(self.doctor(env=env)["units"], "ok", "no unit template")

    def test_a_template_of_a_program_that_is_gone(self):
        env, units = self.unit_dir()
        rendered = self.pod("render", "a", "--for", "systemd", env=env).out
        gone = os.path.join(self.dir, "gone")
        with open(os.path.join(units, f"{self.prefix}@.service"), "w") as text:
            text.write(rendered.replace(f'ExecStart="{BIN}"', f'ExecStart="{gone}"'))
        found = self.doctor(env=env)["units"]
        self.expect(found, "warning", f"starts {gone}, which is not there", "kirocrew-pod install" if BACKEND == "systemd" else None)
        with open(os.path.join(units, f"{self.prefix}@.service"), "w") as text:
            text.write(rendered.replace(self.pods_dir, self.pods_dir + "2"))
        found = self.doctor(env=env, status=1 if BACKEND == "systemd" else 0)["units"]
        self.expect(found, "problem" if BACKEND == "systemd" else "warning", "another plane", "KIROCREW_POD_UNIT_PREFIX")

    def test_bad_settings_are_a_finding(self):
        found = self.doctor(status=1, env={"KIROCREW_POD_BASE_PORT": "x"})
        self.expect(found["settings"], "problem", "KIROCREW_POD_BASE_PORT", "correct it")
        self.assertNotIn("root", found)
        self.assertIn("sandbox", found)

    def test_the_agent_command(self):
        found = self.doctor()["agent"]
        if not shutil.which("kiro-cli"):
            self.expect(found, "warning", "kiro-cli", "install kiro-cli")
        config = os.path.join(self.dir, "config.ini")
        with open(config, "w") as text:
            text.write("[agent]\nexec = /bin/true acp\n")
        self.expect(self.doctor(config=config)["agent"], "ok", "/bin/true")

    def removed(self, group):
        try:
            os.rmdir(group)  # busy until the last process is buried
        except OSError:
            return False
        return True

    @for_root
    def test_an_own_control_group_that_is_given_to_us(self):
        if BACKEND == "systemd":
            return  # there the group is the manager's
        mount = subprocess.run(["findmnt", "-rn", "-t", "cgroup2", "-o", "TARGET"], stdout=subprocess.PIPE, check=True).stdout.decode().split()[0]
        group = os.path.join(mount, f"doctor-{os.getpid()}")
        os.mkdir(group)
        self.addCleanup(self.eventually, lambda: self.removed(group), what="the end of the control group")
        os.chmod(self.dir, 0o755)
        uid = subprocess.run(["id", "-u", "podtest"], stdout=subprocess.PIPE, check=True).stdout.decode().strip()
        enter = ["/bin/sh", "-ec", f'echo 0 >{group}/cgroup.procs; exec setpriv --reuid {uid} --regid {uid} --clear-groups "$@"', "sh"]
        env = {"KIROCREW_POD_ROOT": "/tmp/none-of-ours", "HOME": "/tmp"}
        with self.wrapped(*enter):
            before = {c["check"]: c for c in self.pod("doctor", "--json", env=env).json["checks"]}["cgroup2"]
        self.expect(before, "warning", f"{group} is not writable for us", f"as root: chown {uid} {group}")
        subprocess.run(before["remedy"].removeprefix("as root: "), shell=True, check=True)
        with self.wrapped(*enter):
            after = {c["check"]: c for c in self.pod("doctor", "--json", env=env).json["checks"]}["cgroup2"]
        self.assertNotIn("writable", after["detail"])


if __name__ == "__main__":
    unittest.main()
