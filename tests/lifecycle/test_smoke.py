"""The main line: up, ls, status, url, env, exec, logs, down."""

import os
import shutil
import subprocess
import unittest

from plane import PlaneTest, alive


class Smoke(PlaneTest):
    def test_a_pod_comes_answers_is_listed_and_goes(self):
        report = self.up("demo")
        self.assertEqual(report["status"], "up")
        self.assertEqual(self.get(report["port"])[0], 200)
        listed = self.ls()["demo"]
        self.assertEqual((listed["state"], listed["health"], listed["id"], listed["pid"]), ("up", "ok", report["id"], report["pid"]))
        alone = self.pod("status", "demo", "--json").json
        self.assertGreaterEqual(alone.pop("age_s"), listed.pop("age_s"))
        self.assertEqual(alone, listed)
        self.assertEqual(self.pod("url", "demo").out, f"http://127.0.0.1:{report['port']}\n")
        self.assertTrue(alive(report["pid"]))
        self.down("demo")
        self.assert_no_residue(report["id"])
        self.assertEqual(self.ls(), {})

    def test_exec_and_env_speak_of_the_pod(self):
        report = self.up("demo")
        ran = self.pod("exec", "demo", "--", "/bin/sh", "-c", "echo $KIROCREW_POD_NAME $PORT $HOME; pwd; exit 7")
        self.assertEqual(ran.status, 7)
        self.assertEqual(ran.out.split("\n")[:2], [f"demo {report['port']} {report['os_home']}", f"{report['home']}/workspace"])
        env = self.pod("env", "demo").out
        shown = subprocess.run(["/bin/sh", "-c", f"{env}\nprintf %s \"$KIROCREW_POD_ID\""], stdout=subprocess.PIPE, check=True).stdout.decode()
        self.assertEqual(shown, report["id"])

    def test_exec_of_what_cannot_be_executed_is_told_as_a_shell_tells_it(self):
        report = self.up("demo", "/bin/sleep", "1000", flags=("--health", "none"))
        script = os.path.join(self.dir, "script")
        with open(script, "w") as text:
            text.write("#!/no/such/interpreter\n")
        os.chmod(script, 0o755)
        for word, status in (("no-such-command", 127), ("/no/such/command", 127), (script, 127), ("/etc", 126), ("/etc/passwd", 126)):
            refused = self.pod("exec", "demo", "--", word)
            self.assertEqual((refused.status, refused.out), (status, ""), (word, refused))
            self.assertIn(word, self.one_line(refused))
        shutil.rmtree(os.path.join(report["home"], "workspace"))
        failed = self.pod("exec", "demo", "--", "true")
        self.assertEqual(failed.status, 1, failed)
        self.assertIn("workspace", self.one_line(failed))
        self.assertEqual(self.pod("exec", "other", "--", "no-such-command").status, 3)

    def test_logs_hold_what_the_payload_wrote(self):
        report = self.up("demo")
        self.get(report["port"], "/?needle")
        self.eventually(lambda: "needle" in self.pod("logs", "demo").out, what="the request in the log")


if __name__ == "__main__":
    unittest.main()
