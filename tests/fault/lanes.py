"""The whole in lanes: for each world, a backend and a user, one process on each processor has its part of all series; then one has what is not in parts.

A lane has its processor for itself, since a tracer that shares it with whom it traces is woken at once, and as root a PID namespace, in which a walk of
/proc is short. Elsewhere it has neither, and takes longer."""

import json
import os
import pwd
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
USER_MANAGER = os.path.join(HERE, os.pardir, "real", "user-manager")
NAMESPACE = ("unshare", "--fork", "--pid", "--mount-proc", "--kill-child", "bash", "-c", '"$@"; exit $?', "lane") # the shell reaps
PLAIN = "podtest"
REST = "rest"
JOBS = 3 # trials at once in a lane


def me():
    return pwd.getpwuid(os.geteuid()).pw_name


def worlds(options):
    """Those named, or of a sample the one of the caller, or all that can be had here."""
    root = os.geteuid() == 0
    known = options.sample or not root
    users = options.user or ([me()] if known else [me(), PLAIN])
    backends = options.backend or ([os.environ["POD_BACKEND"]] if "POD_BACKEND" in os.environ else ["embedded"] if options.sample else ["embedded", "systemd"])
    return [(backend, user) for backend in backends for user in users]


def way_in(backend, user):
    """The words before a command that is to run in this world, and its environment."""
    other, env = user != me(), {**os.environ, "POD_BACKEND": backend}
    if backend == "systemd":
        return [USER_MANAGER, *(["--user", user] if other else []), "--"], env
    words = list(NAMESPACE) if os.geteuid() == 0 else []
    if other:
        entry = pwd.getpwnam(user)
        env.update(HOME=entry.pw_dir, USER=user, LOGNAME=user, TMPDIR="/tmp")
        words += ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}", "--init-groups"]
    return words, env


class Lanes:
    def __init__(self, words, told_to_stop):
        self.words, self.running, self.stopped, self.told_to_stop = [*words, "--until", told_to_stop], [], False, told_to_stop
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.stop)

    def stop(self, *_):
        """By a file that each lane looks for: a signal would not come through what makes its namespace, and would end its user manager first."""
        self.stopped = True
        with open(self.told_to_stop, "w"):
            pass

    def start(self, world, rows, *more, processor=None):
        words, env = way_in(*world)
        pin = [] if processor is None else ["taskset", "--cpu-list", str(processor)]
        self.running.append((subprocess.Popen([*pin, *words, sys.executable, "-B", os.path.join(HERE, "all"), *self.words, *more, "--rows", rows], env=env,
                                              stdin=subprocess.DEVNULL), f"{', '.join(world)}: {' '.join(more)}"))

    def join(self):
        """What did not come to its end."""
        broken = []
        for lane, what in self.running:
            if lane.wait() or self.stopped:
                broken.append(f"{what}: {'interrupted' if self.stopped else 'ended with status ' + str(lane.returncode)}")
        self.running = []
        return broken


def run_lanes(options, words, before):
    """The rows of all but those of `before`, and what was broken off."""
    processors, broken, rows = sorted(os.sched_getaffinity(0)), [], []
    with tempfile.TemporaryDirectory(prefix="lanes-") as directory:
        os.chmod(directory, 0o1777)
        lanes = Lanes(words, os.path.join(directory, "stop"))
        done = os.path.join(directory, "done")
        with open(done, "w") as file:
            file.writelines(json.dumps(row) + "\n" for row in before)
        lanes.words += ["--done", done]
        for world in worlds(options):
            if lanes.stopped:
                broken.append(f"{', '.join(world)}: not begun")
                continue
            files = [os.path.join(directory, f"{'-'.join(world)}-{k}") for k in range(len(processors) + 1)]
            for k, processor in enumerate(processors, 1):
                lanes.start(world, files[k], "--lane", f"{k}/{len(processors)}", processor=processor)
            broken += lanes.join()
            if not lanes.stopped:
                lanes.start(world, files[0], "--lane", REST)
                broken += lanes.join()
            for name in filter(os.path.exists, files):
                with open(name) as file:
                    rows += [json.loads(line) for line in file]
    return rows, broken
