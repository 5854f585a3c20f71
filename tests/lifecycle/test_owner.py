"""Pods that end with their owner, or at a time."""

import os
import signal
import subprocess
import sys
import time
import unittest

from plane import BACKEND, BIN, PYTHON, SERVE, PlaneTest, alive

SLEEP = ("/bin/sleep", "1000")
QUIET = ("--health", "none")
# The promise is 2 s for one pod and 5 s for a hundred; a loaded machine may ask for more.
SOON = float(os.environ.get("POD_OWNER_SECS", "2"))
HUNDRED = float(os.environ.get("POD_HUNDRED_SECS", "5"))


def watch_units(prefix):
    """The units that watch for pods of this plane, on the systemd backend."""
    if BACKEND != "systemd":
        return []
    listed = subprocess.run(
        ["systemctl", "--user", "list-units", "--all", "--plain", "--no-legend", f"{prefix}:watch:*"], stdout=subprocess.PIPE, check=True
    )
    return [line.split()[0] for line in listed.stdout.decode().splitlines()]


class Owned(PlaneTest):
    def owner(self):
        process = subprocess.Popen(["/bin/sleep", "1000"], stdin=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def owned(self, name, owner, *words, flags=QUIET):
        return self.up(name, *(words or SLEEP), flags=("--owner", str(owner.pid), *flags))

    def gone(self, name, report):
        return not os.path.lexists(report["home"]) and not self.processes_of(report["id"]) and name not in os.listdir(self.root)

    def assert_goes(self, name, report, seconds=SOON):
        """Within the promised time nothing of the pod is left but its watcher's last breath."""
        self.eventually(lambda: not any(e.startswith(name + ".") for e in os.listdir(self.pods_dir)), seconds, f"the end of {name}")
        self.assertFalse(os.path.lexists(report["home"]))
        self.assertEqual(self.processes_of(report["id"]), [])
        self.eventually(lambda: not self.watchers(name, report["id"]), 5, "the end of who watched")
        self.assert_no_residue(report["id"])

    def watchers(self, name, pod_id):
        """Processes and units that watch for the pod."""
        found = [unit for unit in watch_units(self.prefix) if f":{name}:" in unit]
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/cmdline", "rb") as words:
                    if words.read().split(b"\0")[-4:-1] == [b"_watch", name.encode(), pod_id.encode()]:
                        found.append(int(entry))
            except OSError:
                pass
        return found


class Owner(Owned):
    def test_a_pod_goes_when_its_owner_is_killed(self):
        owner = self.owner()
        report = self.owned("demo", owner, *SERVE, flags=())
        self.assertEqual(self.get(report["port"])[0], 200)
        owner.kill()
        self.assert_goes("demo", report)
        self.assertEqual(self.ls(), {})

    def test_an_owner_that_ends_and_is_not_waited_for_is_gone(self):
        owner = self.owner()
        report = self.owned("demo", owner)
        owner.terminate()
        self.assert_goes("demo", report)
        self.assertIsNone(owner.returncode)

    def test_a_pod_lives_as_long_as_its_owner(self):
        owner, other = self.owner(), self.owner()
        report = self.owned("demo", owner)
        other.kill()
        time.sleep(1)
        self.assertEqual(self.state("demo"), "up")
        shown = self.ls()["demo"]
        self.assertEqual((shown["owner"], shown["owner_alive"], shown["ttl_s"]), (owner.pid, True, None))
        self.assertEqual(self.pod("status", "demo", "--json").json["owner"], owner.pid)
        owner.kill()
        self.assert_goes("demo", report)

    def test_down_by_hand_takes_the_watcher_too(self):
        owner = self.owner()
        report = self.owned("demo", owner)
        if BACKEND == "systemd":
            self.assertEqual(len(watch_units(self.prefix)), 1)
        self.down("demo")
        self.eventually(lambda: not self.watchers("demo", report["id"]), 5, "the end of who watched")
        self.assert_no_residue(report["id"])

    def test_a_new_pod_of_the_same_name_is_left_alone(self):
        owner = self.owner()
        self.owned("demo", owner)
        self.down("demo")
        report = self.up("demo", *SLEEP, flags=QUIET)
        owner.kill()
        time.sleep(1)
        self.assertEqual(self.state("demo"), "up")
        self.assertTrue(alive(report["pid"]))

    def test_a_pod_that_does_not_run_goes_with_its_owner_as_well(self):
        owner = self.owner()
        report = self.owned("demo", owner, "/bin/sh", "-c", "sleep 0.5; exit 0")
        self.eventually(lambda: self.state("demo") == "stopped", what="the end of the payload")
        owner.kill()
        self.assert_goes("demo", report)

    def test_a_pod_that_waits_for_its_restart_goes_with_its_owner(self):
        owner = self.owner()
        report = self.owned("demo", owner, "/bin/sh", "-c", "sleep 0.5; exit 1")
        self.eventually(lambda: self.state("demo") == "restarting", what="the failure of the payload")
        owner.kill()
        self.assert_goes("demo", report)

    def test_daemons_and_those_deaf_to_TERM_go_too(self):
        owner = self.owner()
        deaf = "import os, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nos.fork() or os.setsid()\ntime.sleep(1000)"
        report = self.owned("demo", owner, PYTHON, "-c", deaf)
        owner.kill()
        self.assert_goes("demo", report, 30)

    def test_an_owner_that_is_not_there_is_refused_before_anything_is_made(self):
        ended = subprocess.Popen(["/bin/true"])
        ended.wait()
        for word, status in ((str(ended.pid), 78), ("0", 2), ("-1", 2), ("x", 2), ("", 2), ("99999999999", 2)):
            refused = self.pod("up", "demo", f"--owner={word}", *QUIET, "--", *SLEEP)
            self.assertEqual(refused.status, status, refused)
            self.assertIn("owner", self.one_line(refused))
            self.assertFalse(os.path.lexists(self.root))
            self.assertFalse(os.path.lexists(self.pods_dir))

    def test_a_zombie_owns_nothing(self):
        zombie = subprocess.Popen(["/bin/true"])
        self.addCleanup(zombie.wait)
        self.eventually(lambda: not alive(zombie.pid), what="the end of the process")
        refused = self.pod("up", "demo", "--owner", str(zombie.pid), *QUIET, "--", *SLEEP)
        self.assertEqual(refused.status, 78, refused)
        self.one_line(refused)

    def test_a_recycled_pid_never_keeps_a_pod(self):
        """The record is made to say what it would say if the pid had been given to another process, or the machine had been started anew."""
        for field, value in ((1, "1"), (2, "00000000-0000-4000-8000-000000000000")):
            owner = self.owner()
            report = self.owned("demo", owner)
            record = os.path.join(self.pods_dir, "demo.env")
            with open(record) as text:
                lines = text.read().splitlines()
            at = next(i for i, line in enumerate(lines) if line.startswith("OWNER="))
            words = lines[at][7:-1].split(" ")
            self.assertEqual(words[0], str(owner.pid))
            words[field] = value
            lines[at] = "OWNER='" + " ".join(words) + "'"
            with open(record, "w") as text:
                text.write("\n".join(lines) + "\n")
            shown = self.ls()["demo"]
            self.assertEqual((shown["owner"], shown["owner_alive"]), (owner.pid, False))
            again = self.pod("up", "demo", "--json", *QUIET, "--", *SLEEP)
            self.assertEqual(again.status, 0, again)
            self.assertNotEqual(again.json["id"], report["id"])
            self.assertEqual(self.processes_of(report["id"]), [])
            self.assertIsNone(self.ls()["demo"]["owner"])
            owner.kill()
            time.sleep(0.5)
            self.assertEqual(self.state("demo"), "up")
            self.down("demo")

    def test_the_last_owner_that_was_said_holds_at_once(self):
        first, second = self.owner(), self.owner()
        report = self.owned("demo", first)
        again = self.pod("up", "demo", "--json", "--owner", str(second.pid), *QUIET)
        self.assertEqual((again.status, again.json["id"]), (0, report["id"]), again)
        self.assertIn(f"pid {second.pid}", again.err)
        first.kill()
        time.sleep(1)
        self.assertEqual(self.state("demo"), "up")
        self.assertEqual(self.ls()["demo"]["owner"], second.pid)
        second.kill()
        self.assert_goes("demo", report)

    def test_up_without_an_owner_changes_nothing_and_none_sets_it_free(self):
        owner = self.owner()
        report = self.owned("demo", owner)
        self.assertEqual(self.pod("up", "demo").status, 0)
        self.assertEqual(self.ls()["demo"]["owner"], owner.pid)
        free = self.pod("up", "demo", "--owner", "none")
        self.assertEqual(free.status, 0, free)
        self.assertIsNone(self.ls()["demo"]["owner"])
        self.eventually(lambda: not self.watchers("demo", report["id"]), 5, "the end of who watched")
        owner.kill()
        time.sleep(1)
        self.assertEqual(self.state("demo"), "up")

    def test_a_running_pod_can_be_given_to_an_owner(self):
        report = self.up("demo", *SLEEP, flags=QUIET)
        owner = self.owner()
        self.assertEqual(self.pod("up", "demo", "--owner", str(owner.pid)).status, 0)
        owner.kill()
        self.assert_goes("demo", report)

    def test_an_owner_that_ends_while_up_still_waits(self):
        owner = self.owner()
        starting = self.start("up", "demo", "--owner", str(owner.pid), "--wait-secs", "60", "--", "/bin/sh", "-c", "sleep 1000; : {port}")
        self.eventually(lambda: os.path.isdir(os.path.join(self.home("demo"), "os-home")), what="the boot")
        owner.kill()
        out, err = starting.communicate(timeout=20)
        self.assertEqual((starting.returncode, out), (1, b""), err)
        self.assertIn(f"its owner, pid {owner.pid}, is gone", err.decode())
        self.eventually(lambda: not self.ls(), SOON, "the end of the pod")
        self.assert_no_residue()

    def test_up_and_its_owner_killed_together_while_it_waits(self):
        owner = self.owner()
        starting = self.start("up", "demo", "--owner", str(owner.pid), "--wait-secs", "60", "--", "/bin/sh", "-c", "sleep 1000; : {port}")
        self.eventually(lambda: os.path.isdir(os.path.join(self.home("demo"), "os-home")), what="the boot")
        starting.kill()
        owner.kill()
        starting.communicate(timeout=20)
        self.eventually(lambda: not self.ls(), SOON, "the end of the pod")
        self.eventually(lambda: not watch_units(self.prefix), 5, "the end of who watched")
        self.assert_no_residue()

    def test_a_failed_up_gives_a_stopped_pod_back_to_its_owner(self):
        if BACKEND != "systemd":
            return  # a stopped pod's keeper went with the failed `up`: what is left does not run, and `prune` takes it
        first, second = self.owner(), self.owner()
        report = self.owned("demo", first, "/bin/sh", "-c", "sleep 0.3; exit 0")
        self.eventually(lambda: self.state("demo") == "stopped", what="the end of the payload")
        failed = self.pod("up", "demo", "--owner", str(second.pid), "--health", "tcp", "--wait-secs", "1", "--", *SLEEP)
        self.assertEqual(failed.status, 1, failed)
        self.assertEqual(self.ls()["demo"]["owner"], first.pid)
        second.kill()
        time.sleep(1)
        self.assertTrue(os.path.isdir(self.home("demo")))
        first.kill()
        self.assert_goes("demo", report)

    def test_a_refused_pod_goes_with_its_owner(self):
        owner = self.owner()
        settings = os.path.join(self.dir, "settings.ini")
        with open(settings, "w") as text:
            text.write("[agent]\nexec = /bin/false\n")
        refused = self.pod("up", "demo", "--owner", str(owner.pid), *QUIET, "--", *SLEEP, config=settings)
        self.assertEqual(refused.status, 78, refused)
        self.assertEqual(self.state("demo"), "refused")
        owner.kill()
        self.eventually(lambda: not self.ls(), SOON, "the end of the pod")
        self.eventually(lambda: not watch_units(self.prefix), 5, "the end of who watched")
        self.assert_no_residue()

    def test_who_watches_is_started_again_when_it_is_killed(self):
        if BACKEND != "systemd":
            return  # the keeper watches: when it is killed, its pod is
        owner = self.owner()
        report = self.owned("demo", owner)
        watcher = [pid for pid in self.watchers("demo", report["id"]) if isinstance(pid, int)]
        self.assertEqual(len(watcher), 1)
        os.kill(watcher[0], signal.SIGKILL)
        self.eventually(lambda: [p for p in self.watchers("demo", report["id"]) if isinstance(p, int) and p != watcher[0]], 10, "another one")
        owner.kill()
        self.assert_goes("demo", report)

    def test_prune_takes_a_dead_pod_whose_owner_is_gone_at_any_age(self):
        owner = self.owner()
        report = self.owned("demo", owner, "/bin/sh", "-c", "sleep 0.3; exit 0")
        self.eventually(lambda: self.state("demo") == "stopped", what="the end of the payload")
        for watcher in self.watchers("demo", report["id"]):
            if isinstance(watcher, str):
                subprocess.run(["systemctl", "--user", "stop", watcher], check=True)
        if BACKEND == "embedded":
            for entry in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open(f"/proc/{entry}/cmdline", "rb") as words, open(f"/proc/{entry}/environ", "rb") as environ:
                        if b"_keep\0demo\0" in words.read() and self.pods_dir.encode() in environ.read():
                            os.kill(int(entry), signal.SIGKILL)
                except OSError:
                    pass
        self.assertEqual(self.pod("prune", "--json").json, [])
        owner.kill()
        owner.wait()
        self.assertEqual([pod["status"] for pod in self.pod("prune", "--json").json], ["gone"])
        self.assert_no_residue(report["id"])


class Hundred(Owned):
    COUNT = 100

    def plane_processes(self):
        """Every living process that was started for this plane, this test left out."""
        mark = f"KIROCREW_POD_ENV_DIR={self.pods_dir}".encode()
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/environ", "rb") as environ, open(f"/proc/{entry}/cmdline", "rb") as words:
                    if mark in environ.read().split(b"\0") and alive(entry):
                        found.append((int(entry), words.read()))
            except OSError:
                pass
        return found

    def files_left(self):
        left = [e for e in os.listdir(self.pods_dir) if not e.endswith(".lock")]
        return left + [e for e in os.listdir(self.root) if os.path.join(self.root, e) != self.artifacts]

    def test_a_hundred_owners_killed_at_once_leave_nothing(self):
        # A band of its own, in which nobody listens: the payloads do not.
        env = {"KIROCREW_POD_BASE_PORT": "31200", "KIROCREW_POD_PORT_SPAN": "1000"}
        script = '"$0" up "$1" --owner $$ --health none --wait-secs 120 -- /bin/sleep 1000 >/dev/null && echo ready && exec sleep 1000'
        names = [f"p{number}" for number in range(self.COUNT)]
        harnesses = []
        for first in range(0, self.COUNT, 20): # the end at once is what is asked for, not the beginning
            for name in names[first : first + 20]:
                harness = subprocess.Popen(["/bin/sh", "-c", script, BIN, name], env={**self.env, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
                self.addCleanup(harness.stdout.close)
                self.addCleanup(harness.wait)
                self.addCleanup(harness.kill)
                harnesses.append(harness)
            for harness in harnesses[first:]:
                self.assertEqual(harness.stdout.readline(), b"ready\n")
        pods = self.ls()
        self.assertEqual({name: pod["state"] for name, pod in pods.items()}, {name: "up" for name in names})
        self.assertEqual({pod["owner"] for pod in pods.values()}, {harness.pid for harness in harnesses})
        began = time.monotonic()
        for harness in harnesses:
            harness.kill()
        self.eventually(lambda: not self.files_left() and not self.plane_processes(), HUNDRED, f"the end of {self.COUNT} pods")
        seconds = time.monotonic() - began
        self.eventually(lambda: not watch_units(self.prefix), 5, "the end of the units that watched")
        self.assert_no_residue()
        print(f"\n{BACKEND}: {self.COUNT} pods whose owners were killed were gone after {seconds:.2f} s", file=sys.stderr)


class Ttl(Owned):
    def test_a_pod_goes_when_its_time_is_over(self):
        began = time.monotonic()
        report = self.up("demo", *SLEEP, flags=("--ttl", "3s", *QUIET))
        shown = self.ls()["demo"]
        self.assertIn(shown["ttl_s"], (0, 1, 2, 3))
        self.assertIsNone(shown["owner"])
        self.eventually(lambda: not os.path.exists(os.path.join(self.pods_dir, "demo.env")), 3 + SOON, "the end of the pod")
        self.assertGreaterEqual(time.monotonic() - began, 3)
        self.assert_goes("demo", report)

    def test_time_counts_anew_when_it_is_said_again(self):
        report = self.up("demo", *SLEEP, flags=("--ttl", "3s", *QUIET))
        self.assertEqual(self.pod("up", "demo", "--ttl", "1h").status, 0)
        self.assertGreater(self.ls()["demo"]["ttl_s"], 3000)
        time.sleep(4)
        self.assertEqual(self.state("demo"), "up")
        self.assertEqual(self.pod("up", "demo", "--ttl", "1s").status, 0)
        self.assert_goes("demo", report, 1 + SOON)

    def test_none_takes_the_time_off(self):
        self.up("demo", *SLEEP, flags=("--ttl", "2s", *QUIET))
        self.assertEqual(self.pod("up", "demo", "--ttl", "none").status, 0)
        self.assertIsNone(self.ls()["demo"]["ttl_s"])
        time.sleep(3)
        self.assertEqual(self.state("demo"), "up")

    def test_whichever_comes_first(self):
        owner = self.owner()
        report = self.owned("demo", owner, flags=("--ttl", "1h", *QUIET))
        owner.kill()
        self.assert_goes("demo", report)
        owner = self.owner()
        report = self.owned("demo", owner, flags=("--ttl", "1s", *QUIET))
        self.assert_goes("demo", report, 1 + SOON)
        self.assertTrue(alive(owner.pid))

    def test_bad_ages_are_refused_before_anything_is_made(self):
        for word in ("0s", "", "5", "-1s", "1y", "1.5h", "s"):
            refused = self.pod("up", "demo", f"--ttl={word}", *QUIET, "--", *SLEEP)
            self.assertEqual(refused.status, 2, refused)
            self.one_line(refused)
            self.assertFalse(os.path.lexists(self.root))

    def test_a_time_of_another_boot_is_read_as_wall_clock(self):
        report = self.up("demo", *SLEEP, flags=("--ttl", "1h", *QUIET))
        record = os.path.join(self.pods_dir, "demo.env")
        with open(record) as text:
            body = text.read()
        line = next(line for line in body.splitlines() if line.startswith("EXPIRES="))
        for epoch, left in ((int(time.time()) + 600, range(590, 601)), (int(time.time()) - 10, (0,))):
            with open(record, "w") as text:
                text.write(body.replace(line, f"EXPIRES='{epoch} 5 00000000-0000-4000-8000-000000000000'"))
            self.assertIn(self.ls()["demo"]["ttl_s"], left)
        self.down("demo")
        self.assert_no_residue(report["id"])


if __name__ == "__main__":
    unittest.main()
