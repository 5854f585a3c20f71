"""The launchd backend, forced, with a launchctl that really runs and restarts what a property list says."""

import contextlib
import json
import os
import plistlib
import signal
import time
import unittest

from plane import BACKEND, PYTHON, SERVE, SOURCE, PlaneTest, alive

BACKEND_IS_FORCED = BACKEND != "embedded"  # one pass is enough: what runs is launchd in both


@unittest.skipIf(BACKEND_IS_FORCED, "launchd is forced here, whatever the backend of this pass; it runs in the embedded pass")
class Launchd(PlaneTest):
    def setUp(self):
        super().setUp()
        self.domain = os.path.join(self.dir, "domain")
        self.bin = os.path.join(self.dir, "bin")
        os.mkdir(self.domain)
        os.mkdir(self.bin)
        launchctl = os.path.join(self.bin, "launchctl")
        with open(launchctl, "w", encoding="utf-8") as script:
            script.write(f'#!/bin/sh\nexec {PYTHON} -B "{SOURCE}/tests/lifecycle/launchctl_stub.py" "$@"\n')
        os.chmod(launchctl, 0o755)
        self.env.update(KIROCREW_POD_BACKEND="launchd", KIROCREW_POD_PATH=f"{self.bin}:/usr/bin:/bin", LAUNCHCTL_STUB=self.domain)
        self.addCleanup(self._end_jobs)

    def _end_jobs(self):
        """Of a test that failed: supervisors are ours, each by its pid."""
        for entry in os.listdir(self.domain):
            with contextlib.suppress(OSError, ValueError), open(os.path.join(self.domain, entry), encoding="utf-8") as file:
                state = json.load(file)
                if state["pid"]:
                    os.killpg(state["pid"], signal.SIGKILL)
                os.kill(state["supervisor"], signal.SIGKILL)

    def label(self, name):
        return f"dev.kirocrew.pod.{self.prefix}.{name}"

    def job(self, name):
        with contextlib.suppress(FileNotFoundError), open(os.path.join(self.domain, self.label(name) + ".json"), encoding="utf-8") as file:
            return json.load(file)
        return None

    def plist(self, name):
        return os.path.join(self.pods_dir, self.label(name) + ".plist")

    def payload(self, text):
        path = os.path.join(self.dir, "payload")
        with open(path, "w", encoding="utf-8") as script:
            script.write(text)
        os.chmod(path, 0o755)
        return path

    def assert_nothing_left(self, *pod_ids):
        self.assert_no_residue(*pod_ids)
        self.assertEqual(os.listdir(self.domain), [])

    def test_a_pod_comes_answers_is_listed_and_goes(self):
        report = self.up("demo")
        self.assertEqual((report["status"], report["backend"]), ("up", "launchd"))
        self.assertEqual(self.get(report["port"])[0], 200)
        self.assertEqual(self.job("demo")["pid"], report["pid"])
        with open(self.plist("demo"), "rb") as file:
            plist = plistlib.load(file)
        self.assertEqual((plist["Label"], plist["ProgramArguments"][1:]), (self.label("demo"), ["_run", "demo"]))
        listed = self.ls()["demo"]
        self.assertEqual(
            (listed["state"], listed["health"], listed["pid"], listed["backend"], listed["id"]), ("up", "ok", report["pid"], "launchd", report["id"])
        )
        status = self.pod("status", "demo", "--json").json
        self.assertEqual({**status, "age_s": 0}, {**listed, "age_s": 0})
        again = self.up("demo")
        self.assertEqual((again["pid"], self.job("demo")["runs"]), (report["pid"], 1))
        self.get(report["port"], "/?needle")
        self.eventually(lambda: "needle" in self.pod("logs", "demo").out, what="the request in the log")
        self.down("demo")
        self.assertFalse(alive(report["pid"]))
        self.assert_nothing_left(report["id"])
        self.assertEqual(self.ls(), {})

    def test_what_the_payload_has_started_goes_with_it(self):
        started = os.path.join(self.dir, "started")
        payload = self.payload(f'#!/bin/sh\nsetsid sleep 1000 & echo $! >"{started}"\nexec {PYTHON} -m http.server "$PORT" --bind 127.0.0.1\n')
        report = self.up("demo", payload, "{port}")
        with open(started, encoding="utf-8") as file:
            daemon = int(file.read())
        self.assertTrue(alive(daemon))
        self.down("demo")
        self.eventually(lambda: not alive(daemon), what="the end of what it started")
        self.assert_nothing_left(report["id"])

    def test_a_payload_that_dies_is_started_again(self):
        report = self.up("demo")
        os.kill(report["pid"], signal.SIGKILL)
        self.eventually(lambda: self.job("demo")["signal"] == 9, what="the end of the job")
        self.assertEqual(self.state("demo"), "restarting")
        self.eventually(lambda: self.state("demo") == "up", seconds=60, what="the next start")
        self.assertNotEqual(self.ls()["demo"]["pid"], report["pid"])
        self.down("demo")
        self.assert_nothing_left(report["id"])

    def test_a_payload_that_will_not_end_is_killed_after_the_grace(self):
        payload = self.payload(
            "#!/usr/bin/python3\nimport os, signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
            f"os.execv('{PYTHON}', ['{PYTHON}', '-m', 'http.server', os.environ['PORT'], '--bind', '127.0.0.1'])\n"
        )
        report = self.up("demo", payload, "{port}")
        self.down("demo", flags=["--stop-secs", "1"])
        self.assertFalse(alive(report["pid"]))
        self.assert_nothing_left(report["id"])

    def test_V02_a_refusal_with_its_note_ends_with_0_and_once(self):
        payload = self.payload("#!/no/such/interpreter\n")
        result = self.pod("up", "demo", "--", payload)
        self.assertEqual(result.status, 3, result)
        self.assertIn("/no/such/interpreter", result.err)
        time.sleep(7)  # more than launchd's throttle: a job that failed would have been started again
        job = self.job("demo")
        self.assertEqual((job["code"], job["signal"], job["runs"]), (0, None, 1))
        listed = self.ls()["demo"]
        self.assertEqual(listed["state"], "refused")
        self.assertIn("/no/such/interpreter", listed["reason"])
        self.payload("#!/bin/sh\nexec sleep 1000\n")
        self.up("demo", payload)
        self.assertEqual(self.state("demo"), "up")
        self.down("demo")
        self.assert_nothing_left()

    def test_V02_a_refusal_without_a_note_keeps_its_status(self):
        payload = self.payload(f'#!/bin/sh\nexec {PYTHON} -m http.server "$PORT" --bind 127.0.0.1\n')
        report = self.up("demo", payload, "{port}")
        note = os.path.join(self.pods_dir, "demo.refused")
        os.mkdir(note)  # nothing can be written there, not even by root
        os.unlink(payload)
        os.kill(report["pid"], signal.SIGKILL)
        self.eventually(lambda: self.job("demo")["code"] == 3, seconds=60, what="the honest status")
        self.assertEqual(self.state("demo"), "refused")
        supervisor = self.job("demo")["supervisor"]
        os.kill(supervisor, signal.SIGSTOP)  # no further start while nothing but the status tells
        try:
            os.rmdir(note)
            listed = self.ls()["demo"]
            if self.job("demo")["pid"] is None:
                self.assertEqual(listed["state"], "refused")
                self.assertIn("status 3", listed["reason"])
        finally:
            os.kill(supervisor, signal.SIGCONT)
        self.eventually(lambda: self.job("demo")["code"] == 0, seconds=60, what="the end with a note")
        self.assertEqual(self.state("demo"), "refused")
        self.down("demo")
        self.assert_nothing_left(report["id"])

    def test_an_answer_that_is_not_understood_is_never_gone(self):
        report = self.up("demo")
        for failure, status in (("print:113:Bad request.", 1), ("print:5:Could not print service: 5: Input/output error", 1)):
            result = self.down("demo", status=status, env={"LAUNCHCTL_STUB_FAIL": failure})
            self.one_line(result)
            self.assertTrue(alive(report["pid"]))
            self.assertTrue(os.path.isdir(self.home("demo")))
        result = self.pod("ls", "--json", env={"LAUNCHCTL_STUB_FAIL": "print:5:Could not print service"})
        self.assertEqual([pod["state"] for pod in result.json], ["failed"])
        self.assertEqual(self.state("demo"), "up")
        self.down("demo")
        self.assert_nothing_left(report["id"])

    def test_without_launchctl_it_is_refused(self):
        os.unlink(os.path.join(self.bin, "launchctl"))
        result = self.pod("up", "demo", "--", *SERVE)
        self.assertEqual(result.status, 69, result)
        self.assertIn("launchctl", self.one_line(result))
        self.assertFalse(os.path.exists(self.home("demo")))

    def test_V05_hostile_paths_reach_the_boot_exactly(self):
        root = os.path.join(self.dir, "p&<q>\"'%h$HOME\u00fc")
        self.env.update(KIROCREW_POD_ROOT=root)
        report = self.up("demo")
        with open(f"/proc/{report['pid']}/environ", "rb") as environ:
            self.assertIn(os.fsencode(f"KIROCREW_POD_ROOT={root}"), environ.read().split(b"\0"))
        self.assertEqual(report["home"], os.path.join(root, "demo"))
        self.down("demo")
        for bad in (b"/bad\x01", b"/bad\xff"):
            result = self.pod("up", "other", "--", *SERVE, env={"KIROCREW_POD_ROOT": os.fsdecode(os.fsencode(self.dir) + bad)})
            self.assertEqual(result.status, 78, result)
            self.one_line(result)
            self.assertEqual([e for e in os.listdir(self.pods_dir) if e.endswith(".plist")], [])


if __name__ == "__main__":
    unittest.main()
