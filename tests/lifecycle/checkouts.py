"""Pods of a KiroCrew checkout, whose kirocrew-pod.ini names the agent and the stores."""

import contextlib
import os
import signal
import subprocess

from behind import BehindTest
from plane import BACKEND, PROGRAMS

FAKE_AGENT = os.path.join(PROGRAMS, "fake_agent")


def quoted(words):
    return " ".join("'" + word.replace("'", "'\\''") + "'" for word in words)


class CheckoutTest(BehindTest):
    def setUp(self):
        super().setUp()
        self.tree = self.checkout()
        self.settings = {}

    def agent(self, *words, timeout="20", signed_out="bitte zuerst", program=FAKE_AGENT):
        self.settings["agent"] = {"exec": quoted((program, *words)), "timeout": timeout, "signed-out": signed_out}
        self.write_settings()

    def agent_that_says(self, words, status):
        """Ends with this status and these last words, which an INI line could not hold."""
        said = os.path.join(self.dir, "said")
        with open(said, "w") as text:
            text.write(words)
        self.agent("-c", f"cat {said} >&2; exit {status}", program="/bin/sh")

    def identity(self, name, source, staged):
        self.settings[f"identity {name}"] = {"source": source, "staged": staged}
        self.write_settings()

    def write_settings(self):
        with open(os.path.join(self.tree, "kirocrew-pod.ini"), "w") as ini:
            for section, keys in self.settings.items():
                ini.write(f"[{section}]\n" + "".join(f"{key} = {value}\n" for key, value in keys.items()))

    def raise_pod(self, name="a", *flags, **how):
        return self.pod("up", name, "--checkout", self.tree, "--json", *flags, **how)

    def raised(self, name="a", *flags, **how):
        result = self.raise_pod(name, *flags, **how)
        self.assertEqual(result.status, 0, result)
        return result.json

    def refused(self, name="a", *flags, status=78, **how):
        result = self.raise_pod(name, *flags, **how)
        self.assertEqual(result.status, status, result)
        return result

    def note(self, name="a"):
        return os.path.join(self.pods_dir, f"{name}.refused")

    def unit(self, name, *properties):
        shown = subprocess.run(["systemctl", "--user", "show", f"{self.prefix}@{name}.service", *(f"-p{p}" for p in properties)],
                               stdout=subprocess.PIPE, check=True).stdout.decode()
        return dict(line.split("=", 1) for line in shown.splitlines())

    def boot_again(self, name, pid):
        """The service manager starts it once more; systemd at once, the keeper because its payload was killed."""
        if BACKEND == "systemd":
            # A boot that is refused at once makes the start job "done" or "failed", as it comes: the state tells, not the job.
            subprocess.run(["systemctl", "--user", "restart", f"{self.prefix}@{name}.service"], check=False, stderr=subprocess.DEVNULL)
        else:
            os.kill(pid, signal.SIGKILL)

    def stopped(self, name="a"):
        """A pod of the checkout with a home and a record whose unit is gone."""
        report = self.raised(name)
        self.vanish(name, report)
        return report

    @contextlib.contextmanager
    def manager_environment(self, **variables):
        """What the boot inherits: from the caller with the keeper, from the user manager with systemd."""
        self.env.update(variables)
        if BACKEND == "systemd":
            self.systemctl("set-environment", *(f"{name}={value}" for name, value in variables.items()))
        try:
            yield
        finally:
            if BACKEND == "systemd":
                self.systemctl("unset-environment", *variables)
            for name in variables:
                del self.env[name]
