"""Series of trials: one scene, one role of process, one kind of fault, call after call until the command was left alone."""

import contextlib
import os
import signal
import threading
import time

from scenes import Up
from stage import BACKEND, FAIL_ALLOC, SERVE, Stage
from standstill import stood_still_since

ERRNOS = 8 # of a call, at most (calls.c)
EACH = "4" # of the same call on each of many processes or files: inject.c, --each


class Tally:
    """Of one row of the table. Shared by the threads that work on it."""

    def __init__(self, row):
        self.row, self.trials, self.acted, self.violations, self.seconds = row, 0, 0, [], 0.0
        self.lock = threading.Lock()

    def add(self, acted, violations, seconds):
        with self.lock:
            self.trials += 1
            self.acted += acted
            self.violations += violations
            self.seconds += seconds


interrupted = threading.Event() # what is under way is ended in order, and nothing begun


class Numbers:
    """Which calls are still to be tried: taken by all who work on the same series, until one of them has met the end."""

    def __init__(self, first, step):
        self.next, self.step, self.ended, self.lock = first, step, False, threading.Lock()

    def take(self):
        with self.lock:
            n, self.next = self.next, self.next + self.step
            return None if self.ended else n


class Series:
    """`stride` and `offset` (from 1): which calls. `options(n, k)`: the injector's words."""

    kinds, make_stage, quiet, until = (), Stage, False, None
    roles = ("control", "boot", "keeper", "guard") # to whom it is done
    said = None # the command of the trial under way
    whole = False # every call is tried, although this is one of several that share them

    def __init__(self, scene, role, kind, stride=1, offset=1):
        self.scene, self.role, self.kind, self.stride, self.offset = scene, role, kind, stride, offset
        self.row = (scene.name, role, kind)
        self.numbers, self.workers = Numbers(offset, stride), 0

    def __str__(self):
        return f"{self.scene.name}, {self.role}, {self.kind}"

    def run(self, tally):
        """By several threads at once, each with a copy and a stage of its own."""
        with self.make_stage() as stage:
            stage.settled()
            while not self.numbers.ended and not interrupted.is_set() and (n := self.numbers.take()):
                if not self.try_call(stage, tally, n) and not self.numbers.ended:
                    self.numbers.ended = True
                    self.quiet or print(f"done {self}, {n} calls, stride {self.stride}", flush=True)

    def try_call(self, stage, tally, n):
        """False: there is no such call any more."""
        reached = False
        for k in self.variants(n):
            began = time.monotonic()
            acted, reached_now = self.undisturbed(stage, n, k)
            reached |= reached_now
            self.note(stage, tally, f"{self}, call {n}/{k} ({self.where})", acted, time.monotonic() - began)
            if not reached_now or self.exhausted:
                break
        return reached and not any(self.until in what for what in tally.violations if self.until)

    def undisturbed(self, stage, n, k):
        """A trial. One in which something was wrong while the machine stood still is made again, and that is said."""
        for last in (False, False, True):
            began, failure, found = time.monotonic(), None, (False, False)
            self.exhausted = False
            try:
                found = self.trial(stage, n, k)
            except RuntimeError as what: # the state before could not be made
                failure = what
            if not (failure or stage.violations) or last or not stood_still_since(began):
                break
            print(f"AGAIN {self}, call {n}/{k}: the machine stood still: {failure or stage.violations}", flush=True)
            self.clean(stage)
        if failure:
            raise failure
        return found

    def clean(self, stage):
        stage.violations.clear()
        stage.sweep()
        stage.settled()

    def note(self, stage, tally, where, acted, seconds):
        tally.add(acted, [f"{where}: {what}" for what in stage.violations], seconds)
        for what in () if self.quiet else stage.violations:
            print(f"{time.strftime('%T')} VIOLATED {where}: {what}", flush=True)
        if stage.violations:
            self.quiet or print(f"    it said: {self.said}", flush=True)
            self.clean(stage)

    def variants(self, n):
        return (0,)

    def trial(self, stage, n, k):
        """Whether something was done, and whether there was an n-th call at all."""
        scene = self.scene()
        scene.deaf = self.role == "keeper" and self.kind == "fails for ever"
        scene.prepare(stage)
        with stage.injected([*self.options(n, k), "--role", self.role, "--each", EACH], *scene.words) as done:
            self.after(stage, scene, done, n)
        self.said = done
        acted = done.event("inject")
        reached = acted or done.event("no-such-errno") # EINTR for ever, or it has fewer errnos than that
        self.exhausted = isinstance(self, Faults) and bool(reached) and k + 1 >= reached["errnos"]
        self.where = " ".join(str(acted[key]) for key in ("call", "errno", "dir", "path") if acted[key]) if acted else "nothing"
        return bool(acted), bool(reached)

    def after(self, stage, scene, done, n):
        """A fault that has not come yet waits in the keeper, for the command that ends it: that one must be honest, and the next one converges."""
        late = self.role == "keeper" and not done.event("inject") and self.injects
        if late:
            first = stage.run("down", "a", "--stop-secs", "2")
            stage.check_words(first)
            if first.status == 0:
                stage.check_gone()
        else:
            self.judge(stage, scene, done)
        scene.back(stage, "down" if late else self.way(n))
        stage.check_canary()

    def judge(self, stage, scene, done):
        stage.check_words(done)
        scene.truth(stage, done)

    def way(self, n):
        return "down"

    injects = True


class Faults(Series):
    """Each call fails: with each errno that it can have, once, or from then on."""

    kinds = ("fails once", "fails for ever")

    def variants(self, n):
        return range(ERRNOS) if self.stride == 1 or self.whole else [(n // self.stride) % 4]

    def options(self, n, k):
        return ["--at", str(n), "--errno", str(k), *(["--for-ever"] if self.kind == "fails for ever" else [])]


class Crashes(Series):
    """The process is killed before, or after, each call that changes something."""

    kinds = ("killed before", "killed after")

    def options(self, n, k):
        return ["--at", str(n), "--changing", "--kill", self.kind.split()[1]]

    def judge(self, stage, scene, done):
        if self.role != "control": # the control process goes on and must be honest
            super().judge(stage, scene, done)
        elif scene.changes:
            stage.check_listed()

    def way(self, n):
        return self.scene.ways[n % len(self.scene.ways)]


class Signals(Series):
    """X45: a signal that asks for an end, one of five by turns, at each call; or one more of them so many calls later. Whoever outlives it goes on or
    takes back, and says so."""

    kinds, roles = ("is asked to end", "is asked twice"), ("control",)
    asking = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE)

    def variants(self, n):
        return [n // self.stride % len(self.asking)]

    def options(self, n, k):
        again = f",{1 + (n + 7 * k) % 29}" if self.kind == "is asked twice" else ""
        return ["--at", str(n), "--signal", f"{int(self.asking[k])}{again}"]

    def way(self, n):
        return self.scene.ways[n % len(self.scene.ways)]


class Twice(Crashes):
    """A `down` that is killed after an `up` that was killed: the `up` at a call that its own series has reached, by turns."""

    kinds = ("killed after a killed up",)
    variants_of_up = range(1, 40, 3)

    def variants(self, n):
        return self.variants_of_up if self.stride == 1 or self.whole else [1 + (n * 7) % 39]

    def trial(self, stage, n, k):
        up, down = Up(), self.scene()
        reached = False
        with stage.injected(["--at", str(k), "--changing", "--kill", "before", "--role", "control", "--each", EACH], *up.words):
            stage.check_listed()
            with stage.injected(["--at", str(n), "--changing", "--kill", "after", "--role", "control", "--each", EACH], *down.words) as done:
                stage.check_listed()
                down.back(stage, down.ways[(n + k) % len(down.ways)])
                stage.check_canary()
            reached = done.event("inject")
        self.where = f"up killed at {k}, down at {reached['call']} {reached['path']}" if reached else "nothing"
        return bool(reached), bool(reached) or n < 40 # however short what a killed `up` has left makes it


class Swaps(Series):
    """Exactly before each call that goes by a name in the plane, that name is taken by a link that leads out. Whatever the command then says: nothing
    outside is touched."""

    kinds = ("a link in its place",)
    calls = "openat,openat2,mkdirat,unlinkat,renameat,renameat2,linkat,newfstatat,statx,fchmodat"

    def options(self, n, k):
        return ["--at", str(n), "--only", self.calls, "--hook", self.hook]

    def trial(self, stage, n, k):
        inside = f"case $INJECT_DIR/ in {stage.root}/*|{stage.pods_dir}/*|{stage.artifacts}/*) ;; *) exit 3;; esac; case $INJECT_PATH in ''|.|..|*/*) exit 3;; esac"
        target = f"case $INJECT_PATH in *.*) t={stage.canaries[0]}/file;; *) t={stage.canaries[0]}/deep;; esac"
        self.hook = f'{inside}; {target}; cd "$INJECT_DIR" || exit 3; if [ -e "$INJECT_PATH" ]; then mv -T "$INJECT_PATH" "$INJECT_PATH.aside" || exit 3; fi; ln -s $t "$INJECT_PATH"'
        acted, reached = super().trial(stage, n, k)
        hook = self.done.event("hook") # the keeper's may come after the command's end
        self.swapped = bool(hook) and hook["status"] == 0
        if self.swapped:
            stage.sweep()
            stage.settled()
        return acted and self.swapped, reached

    def after(self, stage, scene, done, n):
        self.done = done
        stage.check_words(done)
        stage.run("ls", "--json")
        stage.run("down", "a", "--stop-secs", "1")
        stage.check_canary()
        for pid in stage.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


class Thief(Series):
    """X33: the port is taken, exactly before the boot becomes the payload, by somebody who answers perfectly. Only the first payload is robbed."""

    kinds = ("the port is stolen",)

    def options(self, n, k):
        return ["--at", str(n), "--only", "execve", "--hook", self.hook]

    def trial(self, stage, n, k):
        self.pid_file = os.path.join(stage.dir, "thief")
        self.hook = (f"port=$(sed -n \"s/^PORT='\\(.*\\)'/\\1/p\" {stage.pods_dir}/a.env); cd /; env -i setsid {SERVE[0]} $port </dev/null >/dev/null 2>&1 & echo $! >{self.pid_file}; "
                     f"for i in 1 2 3 4 5 6 7 8 9; do sleep 0.02; done; echo $port >{self.pid_file}.port")
        return super().trial(stage, n, k)

    def after(self, stage, scene, done, n):
        try:
            if done.event("inject"):
                self.judge_robbed(stage, done)
        finally:
            if os.path.exists(self.pid_file):
                with open(self.pid_file) as text:
                    os.kill(int(text.read()), signal.SIGKILL)
                os.unlink(self.pid_file)
        super().after(stage, scene, done, n)

    def judge_robbed(self, stage, done):
        with open(self.pid_file + ".port") as text:
            stolen = int(text.read())
        if done.status == 0 and (done.json or {}).get("port") == stolen:
            stage.wrong(f"truth: it is up on port {stolen}, which answers, but belongs to somebody else")
        pod = stage.sight()
        if done.status == 0 and (not pod or pod["port"] == stolen):
            stage.wrong(f"truth: it said that it is up, and is listed as {pod}")


class Memory(Series):
    """The n-th allocation fails, or it and all that follow."""

    kinds = ("once", "for ever")
    injects = False

    def trial(self, stage, n, k):
        scene = self.scene()
        scene.prepare(stage)
        told = os.path.join(stage.dir, "told")
        done = stage.run(*scene.words, env=dict(LD_PRELOAD=FAIL_ALLOC, FAIL_ALLOC_TOOL=stage.tool, FAIL_ALLOC_ROLE=self.role, FAIL_ALLOC_AT=str(n),
                                                FAIL_ALLOC_EVER="1" if self.kind == "for ever" else "0", FAIL_ALLOC_TOLD=told))
        self.said = done
        self.after(stage, scene, done, n)
        acted = os.path.exists(told)
        if acted:
            os.unlink(told)
        self.where = f"allocation {n}"
        return acted, acted


def series_of(kind_class, scenes, stride=1, chance=None):
    for scene in scenes:
        step = stride if BACKEND == "embedded" else stride * scene.below_systemd
        for role in scene.roles:
            if role not in (kind_class.roles if BACKEND == "embedded" else ("control",)): # what the user manager starts is not traced
                continue
            for kind in kind_class.kinds:
                yield kind_class(scene, role, kind, step, chance.randint(1, step) if chance else 1)


def part_of(series, part, parts):
    """Every so many-th of its calls: all parts together are the whole, each call once."""
    one = type(series)(series.scene, series.role, series.kind, series.stride * parts, series.offset + part * series.stride)
    one.whole = series.whole or series.stride == 1
    return one
