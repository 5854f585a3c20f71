"""A plane of its own, what must stay as it is around it, and the four checks that follow every trial: canary, truth, bound, converge.

Everything is judged from outside: /proc, the file system, statuses and words."""

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "lifecycle"))
from plane import BACKEND, BIN, PROGRAMS, SPAN, alive, port_band, tree_manifest  # noqa: E402

FAULT = os.environ.get("FAULT_PROGRAMS") or os.path.join(os.path.dirname(PROGRAMS), "fault")
INJECT, FAIL_ALLOC = os.path.realpath(os.path.join(FAULT, "inject")), os.path.join(FAULT, "fail_alloc.so")
SERVE = (os.path.join(PROGRAMS, "http_server"), "{port}")
DEADLINE = 60  # a command that has not ended by then hangs; none may wait that long with the budgets below
STATUSES = {0, 1, 2, 3, 69, 70, 75, 78}
RUN_STATUSES = {126, 127, *(128 + number for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGPIPE, signal.SIGTERM))} # of the command, or in its place
UNITS = os.path.expanduser("~/.config/systemd/user")
CRASHES = {signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS, signal.SIGPIPE}


def ends_within(pid, seconds):
    """Whether a child has ended by then; it is still to be waited for."""
    pidfd = os.pidfd_open(pid)
    try:
        return bool(select.select([pidfd], [], [], seconds)[0])
    finally:
        os.close(pidfd)


class Done:
    """How one command ended, and what the injector saw."""

    def __init__(self, words, status, out, err, events=()):
        self.words, self.status = words, status
        self.out, self.err = os.fsdecode(out), os.fsdecode(err)
        self.events = list(events)

    def __str__(self):
        return f"{' '.join(self.words)}: status {self.status}, stdout {self.out.strip()!r}, stderr {self.err.strip()!r}"

    def event(self, name):
        return next((event for event in self.events if event["event"] == name), None)

    @property
    def json(self):
        try:
            return json.loads(self.out)
        except ValueError:
            return None


class Stage:
    """One plane that many trials use, one after the other. `violations` holds what was wrong in the trial under way."""

    tool, deadline, patience = os.path.realpath(BIN), DEADLINE, 10
    other = None # a pod beside `a`, which is not what is tried

    def __init__(self, settings="", **env):
        self.stack = contextlib.ExitStack()
        self.dir = os.path.realpath(tempfile.mkdtemp(prefix="fault-"))
        self.stack.callback(shutil.rmtree, self.dir, True)
        self.base_port = self.stack.enter_context(port_band())
        self.root, self.pods_dir = os.path.join(self.dir, "pods"), os.path.join(self.dir, "registry")
        self.artifacts, self.home = os.path.join(self.dir, "artifacts"), os.path.join(self.dir, "operator")
        self.violations = []
        self._make_canary()
        self.config = os.path.join(self.dir, "config.ini")
        self.settle(settings)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("KIROCREW", "XDG_", "FAIL_ALLOC", "KIRO_"))}
        self.systemd = BACKEND == "systemd"
        self.env.update(
            HOME=os.environ["HOME"] if self.systemd else self.home, # the user manager looks for units in its own
            KIROCREW_POD_ROOT=self.root,
            KIROCREW_POD_ENV_DIR=self.pods_dir,
            KIROCREW_POD_ARTIFACTS_DIR=self.artifacts,
            KIROCREW_POD_BASE_PORT=str(self.base_port),
            KIROCREW_POD_PORT_SPAN=str(SPAN - 2),
            KIROCREW_POD_UNIT_PREFIX="f" + os.path.basename(self.dir)[6:].replace("_", "x"),
            KIROCREW_POD_BACKEND=BACKEND,
            KIROCREW_POD_HEALTH_SECS="5",
            KIROCREW_POD_REPO=self.dir,
            PATH="/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            **env,
        )

    def settle(self, settings):
        with open(self.config, "w") as ini:
            ini.write(settings)

    def close(self):
        self.run("down", "--all", "--stop-secs", "1")
        self.other = None
        self.sweep()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(UNITS, self.env["KIROCREW_POD_UNIT_PREFIX"] + "@.service"))
        self.stack.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def wrong(self, what):
        self.violations.append(what)

    # --- canary -----------------------------------------------------------------------------------------------------------

    def _make_canary(self):
        outside = os.path.join(self.dir, "outside")
        store = os.path.join(self.home, "store")
        for path, text in ((f"{outside}/file", "precious"), (f"{outside}/deep/er/file", "too"), (f"{store}/token", "secret"), (f"{store}/more/x", "y")):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)
        os.symlink("file", os.path.join(outside, "link"))
        self.canaries = (outside, store)
        self.innocent = [subprocess.Popen(["/bin/sleep", "100000"], stdin=subprocess.DEVNULL, start_new_session=True) for _ in range(2)]
        for process in self.innocent:
            self.stack.callback(process.wait)
            self.stack.callback(process.kill)
        self.listener = self.stack.enter_context(socket.socket())
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", self.base_port + SPAN))
        self.listener.listen(8)
        self.manifest = [tree_manifest(top) for top in self.canaries]

    def check_canary(self):
        if [tree_manifest(top) for top in self.canaries] != self.manifest:
            self.wrong("canary: a tree outside the plane was changed")
        if any(process.poll() is not None for process in self.innocent):
            self.wrong("canary: an innocent process was ended")
        with socket.socket() as probe:
            probe.settimeout(5)
            if probe.connect_ex(self.listener.getsockname()):
                self.wrong("canary: a foreign listener is gone")
        with contextlib.suppress(OSError):
            self.listener.setblocking(False)
            while True:
                self.listener.accept()[0].close()

    # --- commands -----------------------------------------------------------------------------------------------------------

    def command(self, *words):
        return [self.tool, "--config", self.config, *words]

    def run(self, *words, env=None, **how):
        """Without any fault. A command that hangs is killed and is a violation."""
        try:
            done = subprocess.run(self.command(*words), env={**self.env, **(env or {})}, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=self.deadline, check=False, **how)
        except subprocess.TimeoutExpired:
            self.wrong(f"bound: {' '.join(words)} did not end within {self.deadline} s")
            return Done(words, -1, b"", b"")
        result = Done(words, done.returncode, done.stdout, done.stderr)
        if done.returncode < 0 and -done.returncode in CRASHES:
            self.wrong(f"truth: {words[0]} died of signal {-done.returncode}")
        return result

    @contextlib.contextmanager
    def injected(self, options, *words):
        """Runs the command under the injector and yields its Done; on the way out waits until the last process that was traced has ended."""
        read, write = os.pipe()
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            injector = subprocess.Popen([INJECT, *options, "--tool", self.tool, "--deadline", str(self.deadline), "--report", str(write), "--", *self.command(*words)],
                                        env=self.env, cwd=self.dir, stdin=subprocess.DEVNULL, stdout=out, stderr=err, pass_fds=[write])
            os.close(write)
            with open(read) as lines:
                try:
                    events = []
                    for line in lines:
                        events.append(json.loads(line))
                        if events[-1]["event"] == "command":
                            break
                    out.seek(0), err.seek(0)
                    last = events[-1] if events else {"status": -1, "signal": 0, "overdue": False}
                    done = Done(words, last.get("status", -1) if not last.get("signal") else -last["signal"], out.read(), err.read(), events)
                    yield done
                    if not ends_within(injector.pid, self.patience):
                        self.wrong(f"converge: processes are left: {self.describe(self.processes())}")
                finally:
                    injector.kill()
                    injector.wait()
                done.events += [json.loads(line) for line in lines if line.endswith("\n")]
        sent = int(options[options.index("--signal") + 1].split(",")[0]) if "--signal" in options else None
        self._judge_events(done, CRASHES - {sent})

    def _judge_events(self, done, crashes):
        if any(event.get("overdue") for event in done.events):
            self.wrong(f"bound: {done.words[0]} did not end within {self.deadline} s")
        for event in done.events:
            if event["event"] in ("ended", "command") and event["signal"] in crashes:
                self.wrong(f"truth: a {event['role']} process died of signal {event['signal']}")

    # --- what is there --------------------------------------------------------------------------------------------------------

    def processes(self):
        """Living processes of this plane, by their environment; one that is just becoming a program has none, but a directory."""
        marks, found = (f"\0KIROCREW_POD_ROOT={self.root}\0".encode(), f"\0KIROCREW_HOME={self.root}/".encode()), []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{entry}/environ", "rb", buffering=0) as file:
                    environ = b"\0" + file.readall()
                ours = any(mark in environ for mark in marks) or (environ == b"\0" and os.readlink(f"/proc/{entry}/cwd").startswith(self.root + "/"))
                if ours and alive(int(entry)) and os.readlink(f"/proc/{entry}/exe") != INJECT:
                    found.append(int(entry))
        return found

    def describe(self, pids):
        words = []
        for pid in pids:
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/cmdline", "rb") as text:
                    words.append(f"{pid} ({text.read().replace(bytes(1), b' ').decode(errors='replace').strip()})")
        return ", ".join(words) or "of somebody else"

    def files(self):
        """Everything of pod `a`, and of nobody known, in the plane; lock files and the directory of logs itself are left out."""
        found = []
        for top in (self.root, self.artifacts):
            if os.path.isdir(top):
                found += [os.path.relpath(os.path.join(top, entry), self.dir) for entry in os.listdir(top)]
        if os.path.isdir(self.pods_dir):
            found += [os.path.join("registry", entry) for entry in os.listdir(self.pods_dir) if not entry.endswith(".lock")]
        if self.systemd and os.path.isdir(UNITS):
            prefix = self.env["KIROCREW_POD_UNIT_PREFIX"] + "@"
            found += [entry for entry in os.listdir(UNITS) if entry.startswith(prefix) and entry != f"{prefix}.service"]
        return sorted(path for path in found if os.path.basename(path).split(".")[0] != self.other)

    def groups(self):
        """Control groups that a keeper of this plane has made, or was lost in."""
        tops = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}
        prefix = self.env["KIROCREW_POD_UNIT_PREFIX"] + "-"
        return [os.path.join(top, entry) for top in tops if os.path.isdir(top) for entry in os.listdir(top)
                if entry.startswith(prefix) and entry[len(prefix):].split("-")[0] != self.other]

    def sight(self, name="a"):
        """What `ls` says of it now, None: nothing."""
        listed = self.run("ls", "--json")
        if listed.status or listed.json is None:
            self.wrong(f"truth: afterwards `ls` fails: {listed}")
            return None
        return next((pod for pod in listed.json if pod["name"] == name), None)

    def check_words(self, done):
        """Who fails says so in lines of its own, with a cause."""
        if done.status == 0 or done.status < 0:
            return
        if done.status not in STATUSES | (RUN_STATUSES if done.words[0] == "run" else set()):
            self.wrong(f"truth: an unknown status: {done}")
        lines = [line for line in done.err.splitlines() if line]
        ours = [line for line in lines if line.startswith("kirocrew-pod: ")]
        silenced = any(event["event"] == "inject" and event["call"] in ("write", "writev") for event in done.events)
        if not ours and not silenced and done.json is None and not (done.words[0] == "run" and done.status > 128): # what `--json` prints tells what failed, too; a signal's status of `run` is an answer
            self.wrong(f"truth: it failed without a word: {done}")
        if any(not line.startswith(("kirocrew-pod: ", "  | ")) for line in lines) or any(not line.isprintable() for line in lines):
            self.wrong(f"truth: words that are not the tool's: {done}")
        if ours and len(ours[-1]) < len("kirocrew-pod: ") + 12:
            self.wrong(f"truth: no cause is named: {done}")

    def settles(self, living=()):
        """What is left when those that are on their way out have had their time."""
        end, pause = time.monotonic() + self.patience, 0.005
        while (left := set(self.processes()) - set(living)) and time.monotonic() < end:
            time.sleep(pause)
            pause = min(2 * pause, 0.1)
        return left

    def check_gone(self, at_once=True):
        """`at_once`: nobody may even be on his way out, as after a `down` that says so."""
        if not at_once:
            self.settles()
        if left := self.files():
            pod = self.sight() or {}
            self.wrong(f"converge: files are left: {left}, listed as {pod.get('state')}: {pod.get('reason')}")
        if left := self.processes():
            self.wrong(f"converge: processes are left: {self.describe(left)}")
        if left := self.groups():
            self.wrong(f"converge: control groups are left: {left}")

    def check_listed(self):
        """What is left of pod `a`, if anything is, is listed."""
        pod = self.sight()
        if not pod: # who ends by himself, because nobody waits for him any more, has time for that
            self.settles()
        left = [path for path in self.files() if not path.startswith("artifacts") and "/.tmp-" not in path and "/.draft-" not in path]
        if (left or self.processes()) and not pod:
            self.wrong(f"truth: `ls` says nothing of what is left: {left} {self.describe(self.processes())}")
        return pod

    def converge(self, way="down"):
        """The fault is lifted: one more command, and nothing is left."""
        if way == "prune":
            last = self.run("prune", "--all")
            if self.sight(): # it lives or belongs to a living one: that is not for prune
                way = "down"
        if way == "up":
            last = self.run("up", "a", "--", *SERVE)
            pod = self.sight()
            if last.status or not pod or pod["state"] != "up":
                self.wrong(f"converge: a new `up` fails: {last}, listed as {pod}")
        if way == "run":
            last = self.run("run", "a", "--payload", " ".join(SERVE), "--", "/bin/true")
        if way in ("up", "down"):
            last = self.run("down", "a", "--stop-secs", "2")
        if last.status:
            self.wrong(f"converge: {last}")
        self.check_gone(at_once=False)

    def sweep(self):
        """After a violation: the next trial begins clean, whatever is left."""
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        self.settles()
        self.empty()

    def empty(self):
        for top in (self.root, self.pods_dir, self.artifacts):
            shutil.rmtree(top, ignore_errors=True)
        for group in self.groups():
            with contextlib.suppress(OSError):
                os.rmdir(group)

    def settled(self):
        """The plane has seen a pod before, so that a command makes the same calls in every trial."""
        for words in (("up", "a", "--", *SERVE), ("down", "a")):
            done = self.run(*words)
            if done.status:
                raise RuntimeError(f"not even without a fault: {done}")

    def _lose_unit(self, name):
        prefix = self.env["KIROCREW_POD_UNIT_PREFIX"]
        subprocess.run(["systemctl", "--user", "stop", f"{prefix}@{name}.service"], check=True, stderr=subprocess.PIPE)
        with contextlib.suppress(FileNotFoundError): # what has ended is loaded anew when it is asked for, so no reload is needed
            os.unlink(os.path.join(UNITS, f"{prefix}@.service"))
        self.settles()

    def lost_keeper(self, pid, name="a"):
        """The keeper above this payload is killed, and with it everything that it started; or the unit ends and is not known any more."""
        if self.systemd:
            self._lose_unit(name)
            return
        with open(f"/proc/{pid}/stat") as text:
            keeper = int(text.read().rpartition(")")[2].split()[1])
        os.kill(keeper, signal.SIGKILL)
        self.settles()
