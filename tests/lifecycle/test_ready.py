"""Ready or not, and whose port it is: each end of `up` has its own words, and none says up without proof."""

import os
import signal
import socket
import subprocess
import time
import unittest

from plane import PYTHON, SERVE, PlaneTest

ANSWER = """
import http.server, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(int(sys.argv[2])); self.end_headers()
    def log_message(self, *words):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


class Squatter:
    """A server that is no pod, in a process of its own."""

    def __init__(self, test, port, status):
        self.process = subprocess.Popen([PYTHON, "-c", ANSWER, str(port), str(status)])
        test.addCleanup(self.end)
        test.eventually(lambda: listens(port), what="the squatter's listener")

    def end(self):
        self.process.kill()
        self.process.wait()


def listens(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Ready(PlaneTest):
    def preferred(self, name):
        answer = subprocess.run(["cksum"], input=name.encode(), stdout=subprocess.PIPE, check=True).stdout
        return self.base_port + int(answer.split()[0]) % int(self.env["KIROCREW_POD_PORT_SPAN"]) + 1

    def test_L08_up_of_a_running_pod_changes_nothing(self):
        first = self.up("one")
        again = self.pod("up", "one", "--json")
        self.assertEqual(again.status, 0, again)
        for key in ("id", "port", "pid", "home"):
            self.assertEqual(again.json[key], first[key])
        flagged = self.pod("up", "one", "--memory-max", "1G")
        self.assertEqual(flagged.status, 0, flagged)
        self.assertIn("next boot", flagged.err)
        self.assertEqual(self.ls()["one"]["pid"], first["pid"])

    def recorded(self, name):
        with open(os.path.join(self.pods_dir, f"{name}.env")) as record:
            return record.read()

    def test_L08_only_what_differs_is_said_to_apply_at_the_next_boot(self):
        first = self.up("one", *SERVE, flags=("--health", "http:/", "--memory-max", "512M"))
        before = self.recorded("one")
        for words in (("--health", "http:/", "--", *SERVE), ("--health", "http:/", "--memory-max", "512M", "--", *SERVE), ("--memory-max", "512M"), ()):
            same = self.pod("up", "one", *words)
            self.assertEqual((same.status, same.err), (0, ""), (words, same))
            self.assertEqual(self.recorded("one"), before, words)
        for words, line in ((("--memory-max", "256M"), "MEMORY_MAX='256M'"), (("--health", "http:/?x"), "HEALTH='http:/?x'"), (("--port", str(first["port"])), None)):
            told = self.pod("up", "one", *words)
            self.assertEqual(told.status, 0, told)
            self.assertEqual(self.one_line(told), "kirocrew-pod: one runs already: the new flags apply at its next boot")
            self.assertIn(line or f"PORT='{first['port']}'", self.recorded("one"))
            again = self.pod("up", "one", *words)
            self.assertEqual((again.status, again.err), (0, ""), (words, again))
        self.assertEqual(self.ls()["one"]["pid"], first["pid"])

    def test_L08_a_running_pod_keeps_its_port_and_says_so(self):
        first = self.up("one")
        before = self.recorded("one")
        for words in ((), ("--", *SERVE), ("--memory-max", "256M"), ("--json",)):
            refused = self.pod("up", "one", "--port", str(first["port"] + 1), *words)
            self.assertEqual((refused.status, refused.out), (78, ""), refused)
            self.assertIn(f"a pod that runs keeps its port: it has port {first['port']}; take it down", self.one_line(refused))
            self.assertEqual(self.recorded("one"), before)
        self.assertEqual(self.get(first["port"])[0], 200)
        self.assertEqual(self.ls()["one"]["pid"], first["pid"])

    def test_L08_a_pin_on_the_port_of_another_pod_harms_neither(self):
        first = self.up("one")
        failed = self.pod("up", "two", "--port", str(first["port"]), "--", *SERVE)
        self.assertEqual(failed.status, 78, failed)
        self.assertIn(str(first["port"]), self.one_line(failed))
        self.assertIn(str(first["pid"]), failed.err)
        pods = self.ls()
        self.assertEqual(list(pods), ["one"])
        self.assertEqual((pods["one"]["state"], pods["one"]["pid"]), ("up", first["pid"]))

    def test_L26_up_after_the_start_limit_works_at_once(self):
        flag = os.path.join(self.dir, "broken")
        words = ("/bin/sh", "-c", f"test ! -e {flag} && exec {PYTHON} -m http.server {{port}}; exit 9")
        first = self.up("loop", *words)
        open(flag, "w").close()
        os.kill(first["pid"], signal.SIGKILL)
        self.eventually(lambda: self.state("loop") == "failed", seconds=90, what="the start limit")
        self.assertIn("too often", self.ls()["loop"]["reason"])
        os.unlink(flag)
        mended = self.pod("up", "loop", "--json")
        self.assertEqual(mended.status, 0, mended)
        self.assertEqual((mended.json["id"], mended.json["port"]), (first["id"], first["port"]))

    def test_L27_kill_9_of_the_main_process_keeps_home_and_port(self):
        first = self.up("one")
        with open(os.path.join(first["home"], "workspace", "kept"), "w") as kept:
            kept.write("kept")
        os.kill(first["pid"], signal.SIGKILL)
        self.eventually(lambda: self.state("one") == "restarting", what="the wait for a restart")
        self.eventually(lambda: self.state("one") == "up", seconds=30, what="the restart")
        second = self.ls()["one"]
        self.assertNotEqual(second["pid"], first["pid"])
        self.assertEqual((second["port"], second["id"]), (first["port"], first["id"]))
        with open(os.path.join(first["home"], "workspace", "kept")) as kept:
            self.assertEqual(kept.read(), "kept")
        self.down("one")
        self.assert_no_residue(first["id"])

    def test_L31_a_squatter_that_answers_well_is_foreign(self):
        for status in (200, 401, 403):
            port = self.preferred("a")
            squatter = Squatter(self, port, status)
            # The payload never binds, so that only the squatter answers.
            failed = self.pod("up", "a", "--port", str(port), "--health", "http:/", "--", "/bin/sleep", "1000")
            self.assertEqual(failed.status, 78, failed)
            self.assertIn(f"pid {squatter.process.pid} ", failed.err)
            self.assertEqual(self.ls(), {})
            squatter.end()

    def test_L31_a_squatter_that_comes_after_the_choice_is_foreign_too(self):
        port = self.preferred("a")
        starting = self.start("up", "a", "--port", str(port), "--health", "http:/", "--wait-secs", "20", "--", "/bin/sleep", "1000")
        self.eventually(lambda: self.state("a") == "starting", what="the start")
        squatter = Squatter(self, port, 200)
        _, err = starting.communicate(timeout=40)
        self.assertEqual(starting.returncode, 1, err)
        self.assertIn("foreign", err.decode())
        self.assertIn(f"pid {squatter.process.pid} ", err.decode())
        self.assertEqual(self.ls(), {})

    def test_L31_a_running_pod_whose_port_is_taken_over_is_shown_foreign(self):
        report = self.up("a", "/bin/sleep", "1000", flags=("--health", "none"))
        self.assertEqual(self.state("a"), "up")
        record = os.path.join(self.pods_dir, "a.env")
        with open(record, "a") as text:
            text.write("HEALTH='tcp'\n")
        squatter = Squatter(self, report["port"], 200)
        seen = self.ls()["a"]
        self.assertEqual(seen["state"], "foreign")
        self.assertIn(f"pid {squatter.process.pid} ", seen["reason"])

    def test_L32_two_names_with_one_preferred_port_get_two(self):
        by_port = {}
        for number in range(1000):
            name = f"n{number}"
            twin = by_port.setdefault(self.preferred(name), name)
            if twin != name:
                break
        first, second = self.up(twin), self.pod("up", name, "--json", "--", *SERVE)
        self.assertEqual(second.status, 0, second)
        self.assertIn("moved", second.err)
        self.assertNotEqual(first["port"], second.json["port"])
        self.down(name)
        again = self.up(name)
        self.assertEqual(again["port"], second.json["port"])

    def many_records(self, count):
        """Of pods that do not run, with ports outside of the band; the text of the record of `demo`."""
        self.up("demo")
        with open(os.path.join(self.pods_dir, "demo.env")) as text:
            lines = [line for line in text if not line.startswith(("PORT", "HOME_ID", "ID"))]
        for number in range(count):
            with open(os.path.join(self.pods_dir, f"other{number}.env"), "w") as text:
                text.writelines([*lines, f"PORT='{30000 + number}'\n"])
        self.down("demo")

    def test_L32_the_ports_of_many_pods_are_known_and_a_change_is_seen(self):
        self.many_records(80)
        wanted, (lock,) = self.preferred("demo"), [os.path.join(self.pods_dir, name) for name in os.listdir(self.pods_dir) if name.endswith("@plane.lock")]
        for _ in range(2): # what was written within the last two seconds is read again
            time.sleep(2.1)
            self.assertEqual(self.up("demo")["port"], wanted)
            self.down("demo")
        self.assertGreater(os.path.getsize(lock), 80 * 40, "what was read is not kept")
        record = os.path.join(self.pods_dir, "other7.env")
        before = os.stat(record)
        with open(record, "r+b") as text: # in place, as long as before, and the times set back
            bytes_ = text.read()
            text.seek(0)
            text.write(bytes_.replace(b"PORT='30007'", f"PORT='{wanted}'".encode()))
        os.utime(record, ns=(before.st_atime_ns, before.st_mtime_ns))
        for content in (None, b"", b"pod claims 1\0\0\0\0", os.urandom(9000)):
            if content is not None:
                with open(lock, "wb") as kept:
                    kept.write(content)
            self.assertNotEqual(self.up("demo")["port"], wanted)
            self.down("demo")
        os.unlink(record)
        self.assertEqual(self.up("demo")["port"], wanted)

    def test_L32_a_full_band_is_one_clear_refusal(self):
        self.env["KIROCREW_POD_PORT_SPAN"] = "2"
        self.up("a")
        self.up("b")
        failed = self.pod("up", "c", "--", *SERVE)
        self.assertEqual(failed.status, 78, failed)
        self.assertIn("every port of the band is taken", self.one_line(failed))
        self.assertEqual(sorted(self.ls()), ["a", "b"])

    def test_L33_four_ways_to_fail_have_four_verdicts(self):
        said = {}
        for name, words, flags in (
            ("early", ("/bin/sh", "-c", "echo tail-early >&2; sleep 0.02; exit 4; : {port}"), ()),
            ("late", ("/bin/sh", "-c", "echo tail-late >&2; sleep 3; kill -TERM $$; : {port}"), ()),
            ("deaf", ("/bin/sh", "-c", "echo tail-deaf >&2; sleep 1000; : {port}"), ("--wait-secs", "2")),
            ("sick", (PYTHON, "-c", "import sys; print('tail-sick', file=sys.stderr, flush=True)\n" + ANSWER, "{port}", "503"),
             ("--health", "http:/", "--wait-secs", "10")),
        ):
            failed = self.pod("up", name, "--json", *flags, "--", *words)
            self.assertEqual((failed.status, failed.out), (1, ""), failed)
            self.assertIn(f"tail-{name}", failed.err)
            said[name] = failed.err.splitlines()[-1]
        self.assertIn("died before it was ready: status 4", said["early"])
        self.assertIn("died before it was ready: signal 15", said["late"])
        self.assertIn("not ready within 2 s", said["deaf"])
        self.assertIn("--wait-secs", said["deaf"])
        self.assertIn("status 503", said["sick"])
        self.assertEqual(self.ls(), {})
        self.assert_no_residue()

    def test_L34_budgets_work_are_echoed_and_validated(self):
        for bad in ("0", "-1", "99999999999999999999", "ten", "", "1e3", " 5"):
            refused = self.pod("up", "a", f"--wait-secs={bad}", "--", *SERVE)
            self.assertEqual(refused.status, 2, refused)
            self.assertIn("--wait-secs", self.one_line(refused))
        refused = self.pod("up", "a", "--", *SERVE, env={"KIROCREW_POD_HEALTH_SECS": "soon"})
        self.assertNotEqual(refused.status, 0)
        self.assertIn("KIROCREW_POD_HEALTH_SECS", self.one_line(refused))
        late = self.pod("up", "a", "--wait-secs", "3", "--", "/bin/sh", "-c", "sleep 1000; : {port}")
        self.assertIn("within 3 s", late.err)
        self.assertGreaterEqual(late.seconds, 3)
        clamped = self.pod("up", "a", "--", "/bin/sh", "-c", "sleep 1000; : {port}", env={"KIROCREW_POD_HEALTH_SECS": "1"})
        self.assertIn("within 5 s", clamped.err)
        slow = self.pod("up", "a", "--wait-secs", "40", "--json", "--", "/bin/sh", "-c", f"sleep 6; exec {PYTHON} -m http.server {{port}}")
        self.assertEqual(slow.status, 0, slow)
        self.assertEqual(self.ls().keys(), {"a"})


if __name__ == "__main__":
    unittest.main()
