"""A plane of its own for one measurement, and the clock."""

import os
import resource
import shutil
import socket
import statistics
import subprocess
import time


class CannotRun(Exception):
    pass


class UntilItFails:
    """Does what it is asked for until something cannot be run; why not, from then on."""

    why_not = None

    def does(self, action):
        if self.why_not:
            return None
        try:
            return action()
        except CannotRun as why:
            self.why_not = str(why)
            return None


def summary(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "n": len(values)} if values else None


class Stage:
    def __init__(self, top, options):
        self.top, self.options, self.rounds = top, options, options.rounds
        build = os.path.abspath(options.build)
        self.program = os.path.join(build, "kirocrew-pod")
        self.programs = os.path.join(build, "tests", "programs")
        self.server = os.path.join(self.programs, "http_server")
        self.prefix = f"bench{os.getpid()}"
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("KIROCREW")}
        self.env.update(KIROCREW_POD_ROOT=f"{top}/pods", KIROCREW_POD_ENV_DIR=f"{top}/registry", KIROCREW_POD_ARTIFACTS_DIR=f"{top}/artifacts",
                        KIROCREW_POD_BASE_PORT="41000", KIROCREW_POD_PORT_SPAN="5000", KIROCREW_POD_UNIT_PREFIX=self.prefix,
                        KIROCREW_POD_BACKEND="embedded")
        self.used = False

    def __enter__(self):
        os.makedirs(self.top)
        if not os.access(self.program, os.X_OK):
            raise SystemExit(f"there is no {self.program}; build first, or use --build")
        return self

    def __exit__(self, *_):
        if self.used:
            subprocess.run([self.program, "down", "--all", "--stop-secs", "1"], env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        unit = os.path.expanduser(f"~/.config/systemd/user/{self.prefix}@.service")
        if os.path.exists(unit):
            os.unlink(unit)
            subprocess.run(["systemctl", "--user", "daemon-reload"], stderr=subprocess.DEVNULL)
        shutil.rmtree(self.top, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.top, name)

    def pod(self, *words):
        """Runs the program; its output, which must be success."""
        self.used = True
        return run([self.program, *words], self.env)

    def need_user_manager(self):
        if subprocess.run(["systemctl", "--user", "show", "--property=Version"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode:
            raise CannotRun("no user manager answers; run it below tests/real/user-manager")

    def systemd(self):
        """From here on the backend is systemd."""
        self.need_user_manager()
        self.env["KIROCREW_POD_BACKEND"] = "systemd"

    def need(self, program):
        if not shutil.which(program):
            raise CannotRun(f"there is no {program}")
        return shutil.which(program)


def run(command, env=None, **how):
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **how)
    if done.returncode:
        raise CannotRun(f"{' '.join(command[:3])}… ended with {done.returncode}: {' '.join((done.stderr.strip() or done.stdout).split())[-300:]}")
    return done.stdout


def timed(action):
    """Milliseconds of wall time."""
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1000


def cpu_of(action):
    """Milliseconds of processor time of the children that end in the action, which other load does not lengthen much."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    action()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1000


def answers(port, seconds=30):
    """The wait that both sides are given: until an HTTP answer comes, asked every half millisecond."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            with socket.create_connection(("127.0.0.1", port), 5) as connection:
                connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
                if connection.recv(16).startswith(b"HTTP/1.1 200"):
                    return
        except OSError:
            pass
        time.sleep(0.0005)
    raise CannotRun(f"nothing answers on port {port}")


def listens(port):
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def wait_for(condition, why_not, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            raise CannotRun(why_not)
        time.sleep(0.01)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
