"""A plane of its own for each test: roots below a temporary directory, a port band that no other test has, a unit prefix.

Every test runs the real program and judges from outside: exit status, output, /proc, the file system. The backend comes from
POD_BACKEND (embedded, or systemd when the tests run under a user manager)."""

import contextlib
import errno
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
import unittest
import urllib.error
import urllib.request

BIN = os.environ["KIROCREW_POD_BIN"]
PROGRAMS = os.environ["TEST_PROGRAMS"]
SOURCE = os.environ["TEST_SOURCE"]
BACKEND = os.environ.get("POD_BACKEND", "embedded")
PYTHON = "/usr/bin/python3"
SERVE = [PYTHON, "-m", "http.server", "{port}", "--bind", "127.0.0.1"]
SPAN = 40


def skip(test, why):
    """A skip says why, and is a failure where everything must work."""
    if os.environ.get("MUST_WORK") == "1":
        raise AssertionError(f"cannot be skipped here: {why}")
    test.skipTest(why)


@contextlib.contextmanager
def port_band():
    """A base port whose band no other running test has, whoever runs it: one abstract socket a band, which like the ports belongs to the network."""
    for base in range(11000, 21000, SPAN + 10):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as claim:
            try:
                claim.bind(f"\0kirocrew-pod-band-{base}")
            except OSError as taken:
                if taken.errno != errno.EADDRINUSE:
                    raise
                continue
            yield base
            return
    raise AssertionError("no free port band")


class Result:
    def __init__(self, status, out, err, seconds):
        self.status, self.out, self.err, self.seconds = status, out, err, seconds

    def __repr__(self):
        return f"status {self.status} after {self.seconds:.2f} s\nstdout: {self.out}\nstderr: {self.err}"

    @property
    def json(self):
        return json.loads(self.out)


class PlaneTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="pod-"))
        self.addCleanup(self._remove_dir)
        self.base_port = self.stack.enter_context(port_band())
        self.root = os.path.join(self.dir, "pods")
        self.pods_dir = os.path.join(self.dir, "registry")
        self.artifacts = os.path.join(self.dir, "artifacts")
        self.prefix = "t" + os.path.basename(self.dir)[4:].replace("_", "x")
        self.env = {
            k: v
            for k, v in os.environ.items()
            if not k.startswith(("KIROCREW", "XDG_CONFIG", "XDG_DATA")) and k not in ("KIRO_HOME",)
        }
        self.env.update(
            KIROCREW_POD_ROOT=self.root,
            KIROCREW_POD_ENV_DIR=self.pods_dir,
            KIROCREW_POD_ARTIFACTS_DIR=self.artifacts,
            KIROCREW_POD_BASE_PORT=str(self.base_port),
            KIROCREW_POD_PORT_SPAN=str(SPAN),
            KIROCREW_POD_UNIT_PREFIX=self.prefix,
            KIROCREW_POD_BACKEND=BACKEND,
            KIROCREW_POD_HEALTH_SECS="30",
            KIROCREW_POD_REPO=self.dir,
            PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        )
        self.addCleanup(self._down_all)

    def _remove_dir(self):
        subprocess.run(["chmod", "-R", "u+rwX", self.dir], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.dir, ignore_errors=True)
        unit = os.path.expanduser(f"~/.config/systemd/user/{self.prefix}@.service")
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unit)

    def _down_all(self):
        with contextlib.suppress(Exception):
            self.pod("down", "--all", "--stop-secs", "1", timeout=60)

    # --- the program ---------------------------------------------------------------------------------------------------

    def command(self, *words, config=None):
        return [BIN, *(["--config", config] if config else []), *words]

    def pod(self, *words, env=None, timeout=60, cwd=None, config=None, **how):
        began = time.monotonic()
        done = subprocess.run(
            self.command(*words, config=config),
            env={**self.env, **(env or {})},
            cwd=cwd or self.dir,
            timeout=timeout,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **how,
        )
        return Result(
            done.returncode,
            done.stdout.decode("utf-8", "surrogateescape"),
            done.stderr.decode("utf-8", "surrogateescape"),
            time.monotonic() - began,
        )

    def start(self, *words, env=None, **how):
        how.setdefault("stdout", subprocess.PIPE)
        how.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(self.command(*words), env={**self.env, **(env or {})}, cwd=self.dir, stdin=subprocess.DEVNULL, **how)

    def up(self, name, *words, flags=(), **how):
        result = self.pod("up", name, "--json", *flags, "--", *(words or SERVE), **how)
        self.assertEqual(result.status, 0, result)
        return result.json

    def down(self, *names, status=0, flags=(), **how):
        result = self.pod("down", *flags, *names, **how)
        self.assertEqual(result.status, status, result)
        return result

    def ls(self):
        result = self.pod("ls", "--json")
        self.assertEqual(result.status, 0, result)
        return {pod["name"]: pod for pod in result.json}

    def state(self, name):
        pods = self.ls()
        return pods[name]["state"] if name in pods else None

    # --- what is seen from outside ---------------------------------------------------------------------------------------

    def home(self, name):
        return os.path.join(self.root, name)

    def get(self, port, path="/", timeout=5):
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=timeout) as answer:
            return answer.status, answer.read()

    def eventually(self, check, seconds=10, what="it"):
        """Polls until check() is true: a bound for a hang, never a measure."""
        end = time.monotonic() + seconds
        while True:
            value = check()
            if value:
                return value
            if time.monotonic() > end:
                self.fail(f"{what} did not happen within {seconds} s")
            time.sleep(0.02)

    def processes_of(self, pod_id):
        """Pids of living processes that carry this pod's generation in their environment."""
        mark = f"KIROCREW_POD_ID={pod_id}".encode()
        found = []
        for entry in os.listdir("/proc"):
            if not entry.isdigit():
                continue
            with contextlib.suppress(OSError):
                with open(f"/proc/{entry}/environ", "rb") as environ:
                    if mark in environ.read().split(b"\0"):
                        found.append(int(entry))
        return found

    def control_groups(self):
        """Those that a keeper of this plane has made, wherever it may."""
        with open("/proc/self/mountinfo") as mounts:
            tops = [line.split()[4] for line in mounts if " - cgroup2 " in line]
        return [os.path.join(top, one) for mount in tops for top, inner, _ in os.walk(mount) for one in inner if one.startswith(f"{self.prefix}-")]

    def sweep_control_groups(self):
        """Empty ones of which `down` could not know, or which it had no right to remove."""
        for group in self.control_groups():
            os.rmdir(group)

    def assert_no_residue(self, *pod_ids):
        """The plane holds nothing but lock files, and no process or unit of the pods is left."""
        left = []
        for top in (self.root, self.artifacts):
            if os.path.isdir(top):
                left += [os.path.join(top, e) for e in os.listdir(top) if os.path.join(top, e) != self.artifacts]
        if os.path.isdir(self.pods_dir):
            left += [e for e in os.listdir(self.pods_dir) if not e.endswith(".lock")]
        self.assertEqual(left, [])
        for pod_id in pod_ids:
            self.assertEqual(self.processes_of(pod_id), [])
        self.assertEqual(self.control_groups(), [])
        if BACKEND == "systemd":
            units = subprocess.run(
                ["systemctl", "--user", "list-units", "--all", "--plain", "--no-legend", f"{self.prefix}@*"],
                stdout=subprocess.PIPE,
                check=True,
            ).stdout.decode()
            self.assertEqual(units.strip(), "")
            unit_dir = os.path.expanduser("~/.config/systemd/user")
            self.assertEqual([e for e in os.listdir(unit_dir) if e.startswith(self.prefix + "@") and e != f"{self.prefix}@.service"], [])

    def one_line(self, result):
        """stderr is one line that begins with the program's name and holds no control character."""
        lines = result.err.splitlines()
        self.assertEqual(len(lines), 1, result)
        self.assertTrue(lines[0].startswith("kirocrew-pod: "), result)
        self.assertTrue(lines[0].isprintable(), result)
        return lines[0]


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat", "rb") as stat_file:
            return stat_file.read().rpartition(b")")[2].split()[0] != b"Z"
    except OSError:
        return False


def tree_manifest(top):
    """Every entry below `top` with type, mode, size, mtime and content: compared before and after, nothing may differ."""
    manifest = {}
    for where, directories, files in os.walk(os.fsencode(top)):
        for entry in directories + files:
            path = os.path.join(where, entry)
            st = os.lstat(path)
            body = b""
            if stat.S_ISREG(st.st_mode):
                with open(path, "rb") as content:
                    body = content.read()
            elif stat.S_ISLNK(st.st_mode):
                body = os.readlink(path)
            manifest[path] = (stat.S_IFMT(st.st_mode), stat.S_IMODE(st.st_mode), st.st_size, st.st_mtime_ns, body)
    return manifest
