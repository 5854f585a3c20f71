"""What happens behind the tool's back: units that vanish, processes that nobody started, other rights, other mounts."""

import contextlib
import os
import shutil
import signal
import subprocess

from plane import BACKEND, PYTHON, PlaneTest, alive

SLEEP = ("/bin/sleep", "1000")

# Root's rights over other people's modes and files are taken away, so that root meets what a plain user meets.
PLAIN = ["setpriv", "--bounding-set=-dac_override,-dac_read_search,-fowner"] if os.getuid() == 0 else []

SERVER = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        known = self.path == "/api/health"
        self.send_response(200 if known else 404); self.end_headers()
        self.wfile.write(b"ok" if known else b"")
    def log_message(self, *words):
        pass
http.server.HTTPServer(("127.0.0.1", int(os.environ["KIROCREW_PORT"])), Handler).serve_forever()
"""


class BehindTest(PlaneTest):
    wrapper = ()

    def command(self, *words, config=None):
        return [*self.wrapper, *super().command(*words, config=config)]

    @contextlib.contextmanager
    def wrapped(self, *wrapper):
        """Calls of the program go through these words."""
        self.wrapper = wrapper
        try:
            yield
        finally:
            self.wrapper = ()

    def quiet(self, name, **how):
        """A pod that does nothing and is up at once."""
        return self.up(name, *SLEEP, flags=("--health", "none"), **how)

    def payload(self, source, *words):
        """The words of a Python payload, from a file outside the home."""
        path = os.path.join(self.dir, f"payload-{abs(hash(source))}.py")
        with open(path, "w") as text:
            text.write(source)
        return (PYTHON, path, *words)

    def checkout(self, name="checkout"):
        top = os.path.join(self.dir, name)
        program = os.path.join(top, ".venv", "bin", "kirocrew")
        os.makedirs(os.path.dirname(program))
        with open(program, "w") as text:
            text.write(f"#!{PYTHON}\n{SERVER}")
        os.chmod(program, 0o755)
        return top

    def process(self, *words, **how):
        """A process that is no pod's, ended with the test."""
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, **how)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def systemctl(self, *words):
        subprocess.run(["systemctl", "--user", *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def vanish(self, name, report):
        """The unit is stopped and its definition gone, as if it had never been; the home is left."""
        if BACKEND == "systemd":
            self.systemctl("stop", f"{self.prefix}@{name}.service")
            os.unlink(os.path.expanduser(f"~/.config/systemd/user/{self.prefix}@.service"))
            shutil.rmtree(os.path.expanduser(f"~/.config/systemd/user/{self.prefix}@{name}.service.d"), ignore_errors=True)
            self.systemctl("daemon-reload")
        else:
            self.kill_keeper(report)
            os.unlink(os.path.join(self.pods_dir, f"{name}.sock"))
        self.eventually(lambda: not self.processes_of(report["id"]), what="the end of its processes")

    def kill_keeper(self, report):
        with open(f"/proc/{report['pid']}/stat") as text:
            keeper = int(text.read().rpartition(")")[2].split()[1])
        self.assertGreater(keeper, 1)
        os.kill(keeper, signal.SIGKILL)
        self.eventually(lambda: not alive(keeper), what="the keeper's end")

    def in_mounts(self, script, *words):
        """Runs the shell script, its words as $1…, where it may mount without anybody else seeing it."""
        ours = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
        done = subprocess.run(
            ["unshare", *ours, "--mount", "--propagation", "private", "/bin/sh", "-ec", script, "sh", *words],
            env=self.env, cwd="/", timeout=60, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        return done.returncode, os.fsdecode(done.stdout), os.fsdecode(done.stderr)
