"""The examples of docs/examples, each run as it stands there, from a copy."""

import os
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.environ["TEST_SOURCE"], "tests", "lifecycle"))

from behind import BehindTest  # noqa: E402
from plane import BACKEND, BIN, SOURCE, skip  # noqa: E402


PREFIX = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "kirocrew-pod-vitest")


class ExampleTest(BehindTest):
    def setUp(self):
        super().setUp()
        self.copy = os.path.join(self.dir, "examples")
        shutil.copytree(os.path.join(SOURCE, "docs", "examples"), self.copy)
        self.tmp = os.path.join(self.dir, "tmp")
        os.mkdir(self.tmp)
        # The examples choose a plane of their own; what is left of the environment is the newcomer's.
        self.env = {k: v for k, v in self.env.items() if not k.startswith("KIROCREW_POD_") or k.endswith(("_BASE_PORT", "_PORT_SPAN"))}
        self.env.update(KIROCREW_POD_BIN=BIN, TMPDIR=self.tmp, PYTHONDONTWRITEBYTECODE="1")

    def example(self, name, *words, status=0, **env):
        done = subprocess.run(words, env={**self.env, **env}, cwd=os.path.join(self.copy, name), stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        said = done.stdout.decode(errors="replace")
        self.assertEqual(done.returncode, status, said)
        return said

    def processes(self):
        """Those that were started for a pod below our temporary directory."""
        left = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/environ", "rb") as text:
                    if f"KIROCREW_HOME={self.tmp}".encode() in text.read():
                        left.append(entry)
            except OSError:
                continue
        return left

    def assert_nothing_is_left(self):
        self.assertEqual(self.processes(), [])
        self.assertEqual([top for top, _, _ in os.walk(self.tmp) if os.path.basename(top) == "os-home"], [])


class Examples(ExampleTest):
    def test_bash(self):
        self.assertIn("passed", self.example("bash", "./test.sh"))
        self.assert_nothing_is_left()
        self.assertEqual(os.listdir(self.tmp), [])

    def test_bash_that_fails_leaves_nothing_either(self):
        with open(os.path.join(self.copy, "bash", "test.sh")) as text:
            script = text.read()
        with open(os.path.join(self.copy, "bash", "test.sh"), "w") as text:
            text.write(script.replace("/hello.txt\")", "/other.txt\")"))
        self.example("bash", "./test.sh", status=22)
        self.assert_nothing_is_left()
        self.assertEqual(os.listdir(self.tmp), [])

    def end_with_their_owner(self):
        self.eventually(lambda: not self.processes(), what="the end of what the pod ran")
        homes = lambda: [top for top, _, _ in os.walk(self.tmp) if os.path.basename(top) == "os-home"]
        self.eventually(lambda: not homes(), what="the end of its home")

    def test_bash_that_is_killed_leaves_no_pod(self):
        path = os.path.join(self.copy, "bash", "test.sh")
        with open(path) as text:
            script = text.read()
        with open(path, "w") as text:
            text.write(script.replace('answer=$(', 'kill -9 $$\nanswer=$('))
        self.assertIn("web is up", self.example("bash", "./test.sh", status=-9))
        self.end_with_their_owner()

    def test_pytest_that_is_killed_leaves_no_pod(self):
        with open(os.path.join(self.copy, "pytest", "test_service.py"), "a") as text:
            text.write("\n\ndef test_that_kills_its_run(pod):\n    import os\n\n    os.kill(os.getpid(), 9)\n")
        self.example("pytest", "/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", status=-9)
        self.end_with_their_owner()

    def test_pytest(self):
        if subprocess.run(["/usr/bin/python3", "-c", "import pytest"], stderr=subprocess.DEVNULL).returncode:
            skip(self, "python3-pytest is not installed")
        said = self.example("pytest", "/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider")
        self.assertIn("2 passed", said)
        self.assert_nothing_is_left()

    def verify(self, *files):
        done = subprocess.run(["systemd-analyze", "verify", "--user", "--man=no", *files], env={"XDG_RUNTIME_DIR": self.dir, **self.env},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        return done.returncode, done.stdout.decode()

    def test_systemd_units_are_well(self):
        timer = os.path.join(self.copy, "systemd", "kirocrew-pod-prune.timer")
        service = self.service()
        self.assertEqual(self.verify(service, timer), (0, ""))
        with open(timer, "a") as text:
            text.write("[Timer]\nOnCalendar=nonsense\n")
        self.assertIn("nonsense", self.verify(service, timer)[1])

    def service(self):
        """The service with our program in the place of the installed one, and in our plane."""
        path = os.path.join(self.copy, "systemd", "kirocrew-pod-prune.service")
        with open(path) as text:
            service = text.read()
        self.assertIn("ExecStart=/usr/bin/kirocrew-pod prune ", service)
        plane = f'Environment="KIROCREW_POD_ROOT={self.root}" "KIROCREW_POD_ENV_DIR={self.pods_dir}" KIROCREW_POD_UNIT_PREFIX={self.prefix}\n'
        with open(path, "w") as text:
            text.write(service.replace("/usr/bin/kirocrew-pod", BIN) + plane)
        return path

    def test_the_service_prunes_and_the_timer_starts(self):
        if BACKEND != "systemd":
            return  # it needs a manager: real/examples_systemd
        directory = os.path.expanduser("~/.config/systemd/user")
        os.makedirs(directory, exist_ok=True)
        for file in (self.service(), os.path.join(self.copy, "systemd", "kirocrew-pod-prune.timer")):
            shutil.copy(file, directory)
            self.addCleanup(os.unlink, os.path.join(directory, os.path.basename(file)))
        self.systemctl("daemon-reload")
        os.mkdir(self.pods_dir, 0o700)
        old, new = (os.path.join(self.pods_dir, f"{name}.env") for name in ("old", "new"))
        for path, created in ((old, 1), (new, int(time.time()))):
            with open(path, "w") as record:
                record.write(f"CREATED='{created}'\nBACKEND='embedded'\nEXEC='[\"/bin/true\"]'\nHEALTH='none'\n")
        self.systemctl("start", "kirocrew-pod-prune.service")
        self.assertFalse(os.path.exists(old))
        self.assertTrue(os.path.exists(new))
        self.systemctl("start", "kirocrew-pod-prune.timer")
        self.addCleanup(self.systemctl, "stop", "kirocrew-pod-prune.timer")


class Vitest(ExampleTest):
    """With the real vitest from npm, kept in the user's cache, so that only the first run fetches it."""

    def install(self):
        words = ["npm", "install", "--prefix", PREFIX, "--ignore-scripts", "--no-save", "--no-audit", "--no-fund", "--no-update-notifier", "vitest@3"]
        os.makedirs(PREFIX, exist_ok=True)
        try:
            done = subprocess.run(words, cwd=PREFIX, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=540)
        except (OSError, subprocess.TimeoutExpired) as error:
            skip(self, f"npm: {error}")
        if done.returncode:
            skip(self, f"npm: {done.stdout.decode(errors='replace')[-500:]}")

    def test_vitest(self):
        if not os.path.exists(os.path.join(PREFIX, "node_modules", "vitest", "package.json")):
            self.install()
        os.symlink(os.path.join(PREFIX, "node_modules"), os.path.join(self.copy, "vitest", "node_modules"))
        said = self.example("vitest", "node", "node_modules/vitest/vitest.mjs", "run", HOME=self.dir, CI="1", NO_COLOR="1")
        self.assertIn("2 passed", said)
        self.assert_nothing_is_left()
        self.assertEqual([entry for entry in os.listdir(self.tmp) if entry.startswith("plane-")], [])


if __name__ == "__main__":
    unittest.main()
