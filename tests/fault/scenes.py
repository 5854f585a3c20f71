"""What is tried: a state before, a command, what must be true after it, and the way back."""

import json
import os
import signal
import sqlite3
import subprocess
import time

from stage import PROGRAMS, SERVE

QUIET = ("--health", "none", "--", "/bin/sleep", "100000")
FAKE_AGENT, FAKE_MCP = os.path.join(PROGRAMS, "fake_agent"), os.path.join(PROGRAMS, "fake_mcp")
BUSY = 75
LIVING = {"up", "starting", "restarting"}


def ends_within_secs(over, seconds):
    end = time.monotonic() + seconds
    while not over() and time.monotonic() < end:
        time.sleep(0.05)


class Scene:
    """`settings`: the INI; `roles`: whose calls are tried; `words`: the command."""

    settings, roles, words, changes = "", ("control",), (), True
    ways = ("down", "prune", "up") # back, by turns
    below_systemd = 1 # there every so many-th call
    patient = False # most of its trials only wait
    deaf = False # the keeper may never answer again

    def prepare(self, stage):
        pass

    def truth(self, stage, done):
        pass

    def back(self, stage, way):
        stage.converge(way)

    def must(self, stage, *words):
        done = stage.run(*words)
        if done.status:
            raise RuntimeError(f"the state before cannot be made: {done}")
        return done


class Up(Scene):
    name, roles = "up", ("control", "boot", "keeper")
    words = ("up", "a", "--json", "--wait-secs", "5", "--", *SERVE)

    def truth(self, stage, done):
        pod = stage.check_listed()
        if done.status != 0:
            return
        report = done.json
        if self.deaf and pod and pod["state"] == "failed" and "could not be asked" in pod["reason"]:
            return
        if not pod or pod["state"] not in LIVING:
            stage.wrong(f"truth: it said that it is up, and is listed as {pod}")
        elif report is None or report.get("status") != "up" or (report.get("home"), report.get("port")) != (pod["home"], pod["port"]):
            stage.wrong(f"truth: its report is not the pod's: {done.out!r}")


class UpBoot(Up):
    """As seen from the boot alone."""

    roles = ("boot",)


class UpFirst(Up):
    """The plane does not exist yet."""

    name, roles = "up, the first", ("control",)

    def prepare(self, stage):
        stage.empty()


class UpRich(Up):
    """Stores, an agent behind the sandbox, and a seed: the longer boot."""

    name, roles = "up, stores and agent", ("boot",)
    words = ("up", "a", "--json", "--wait-secs", "20", "--seed", "connections-two", "--", *SERVE)
    settings = f"[agent]\nexec = {FAKE_AGENT} at-once\n[identity kept]\nsource = {{store}}\nstaged = .local/share/kept\n"

    def prepare(self, stage):
        store = os.path.join(stage.dir, "kept")
        if not os.path.isdir(store):
            os.makedirs(store)
            with open(os.path.join(store, "token"), "w") as text:
                text.write("secret")
            with sqlite3.connect(os.path.join(store, "data.sqlite3")) as database:
                database.execute("pragma journal_mode=wal")
                database.execute("create table t(x)")
                database.executemany("insert into t values (?)", [(n,) for n in range(500)])
            stage.settle(self.settings.format(store=store))

    def truth(self, stage, done):
        super().truth(stage, done)
        staged = os.path.join(stage.root, "a", "os-home", ".local", "share", "kept")
        database = os.path.join(staged, "data.sqlite3")
        if not os.path.exists(database):
            if os.path.exists(os.path.join(staged, "token")):
                stage.wrong("truth: a store whose database was not staged is not void")
            return
        copy = sqlite3.connect(f"file:{database}?mode=ro", uri=True)
        if copy.execute("pragma quick_check").fetchone() != ("ok",) or copy.execute("select count(*) from t").fetchone() != (500,):
            stage.wrong("truth: a staged database is not whole")
        copy.close()


class Down(Scene):
    name, words = "down", ("down", "a", "--stop-secs", "2")

    def prepare(self, stage):
        self.must(stage, "up", "a", "--", *SERVE)

    def truth(self, stage, done):
        stage.check_listed()
        if done.status == 0:
            stage.check_gone()


class DownOrphan(Down):
    name = "down, of an orphan"

    def prepare(self, stage):
        up = self.must(stage, "up", "a", "--json", *QUIET)
        stage.lost_keeper(up.json["pid"])


class DownHeld(DownOrphan):
    """An orphan in whose home somebody works: whatever cannot be looked at, it is not deleted."""

    name = "down, of a home in use"

    def prepare(self, stage):
        super().prepare(stage)
        self.worker = subprocess.Popen(["/bin/sleep", "100000"], cwd=os.path.join(stage.root, "a", "workspace"), stdin=subprocess.DEVNULL)
        with open(os.path.join(stage.root, "a", "workspace", "work"), "w") as file:
            file.write("of hours")

    def truth(self, stage, done):
        if not os.path.exists(os.path.join(stage.root, "a", "workspace", "work")):
            stage.wrong("truth: a home was deleted in which somebody works")
        if done.status == 0:
            stage.wrong(f"truth: it was deleted, it says: {done}")
        stage.check_listed()

    def back(self, stage, way):
        self.worker.kill()
        self.worker.wait()
        super().back(stage, way)


class Prune(DownOrphan):
    name, words = "prune", ("prune", "--all")


class Ls(Scene):
    """Nothing is changed, and whatever it says with status 0 is so."""

    name, words, changes = "ls", ("ls", "--json"), False

    def prepare(self, stage):
        if not stage.processes():
            self.must(stage, "up", "a", "--", *SERVE)
        self.before, self.keys = stage.files(), set(stage.sight() or ())

    def truth(self, stage, done):
        if stage.files() != self.before:
            stage.wrong("truth: looking has changed something")
        if done.status != 0:
            return
        pod = next((pod for pod in done.json or () if pod["name"] == "a"), None)
        if not pod:
            stage.wrong(f"truth: status 0, but a living pod is not listed: {done}")
        elif pod["state"] in ("stopped", "orphan", "refused", "foreign", "unfinished") or set(pod) != self.keys:
            stage.wrong(f"truth: a living pod is listed as {pod}")

    def back(self, stage, way):
        pod = stage.sight()
        if not pod or pod["state"] != "up":
            stage.wrong(f"converge: the pod is not up any more: {pod}")


class Probe(Ls):
    """An agent and an MCP server behind the sandbox; nothing of them is left. A manager is asked once, for what the pod's state is."""

    patient, below_systemd = True, 4
    name, words = "probe", ("probe", "a", "--json", "--timeout", "5")
    settings = f"[agent]\nexec = {FAKE_AGENT} at-once\n"

    def prepare(self, stage):
        stage.settle(self.settings)
        if not stage.processes():
            self.must(stage, "up", "a", "--", *SERVE)
            self.must(stage, "mcp", "add", "a", "s", "--", FAKE_MCP, "well")
        self.before = stage.files()
        self.living, self.answered = set(stage.processes()), False

    def truth(self, stage, done):
        if stage.files() != self.before:
            stage.wrong("truth: probing has changed the plane")
        self.answered = done.status == 0
        if not self.answered:
            return
        report = done.json
        if not report or (report.get("agent") or {}).get("verdict") != "viable":
            stage.wrong(f"truth: status 0 without a viable agent: {done.out!r}")
        elif [(one.get("server"), one.get("status")) for one in report.get("mcp", ())] != [("s", "ok")]:
            stage.wrong(f"truth: status 0 without a server that answered: {done.out!r}")

    def back(self, stage, way):
        super().back(stage, way)
        if left := stage.settles(self.living):
            stage.wrong(f"converge: processes are left: {stage.describe(left)}")
        if not self.answered and (again := stage.run(*self.words)).status:
            stage.wrong(f"converge: a probe without a fault fails: {again}")
        scratches = os.path.join(stage.root, "a", "run", "mcp-tmp")
        if os.path.isdir(scratches) and os.listdir(scratches):
            stage.wrong(f"converge: scratch is left: {os.listdir(scratches)}")


class Run(Scene):
    """A pod for the time of a command: when that has ended, or `run` was killed, it is gone without being asked."""

    name, ways = "run", (*Scene.ways, "run")
    words = ("run", "a", "--wait-secs", "5", "--payload", " ".join(SERVE), "--", "/bin/true")

    def truth(self, stage, done):
        stage.check_listed()
        if done.status == 0 or done.status < 0:
            stage.check_gone(at_once=done.status == 0)


class RunKilled(Run):
    """`run` is killed by its own command, and the pod's guard takes it down, when it can: else it is listed, and whoever asks does it."""

    name, roles, patient = "run, killed", ("guard",), True
    words = (*Run.words[:-1], "/bin/sh", "-c", "kill -9 $PPID")

    def truth(self, stage, done):
        if done.status != -signal.SIGKILL:
            stage.wrong(f"truth: it was not killed: {done}")
        ends_within_secs(lambda: not stage.processes(), 2)
        stage.check_listed()

    def back(self, stage, way):
        ends_within_secs(lambda: stage.run("down", "a", "--stop-secs", "2").status != BUSY, stage.patience)
        stage.converge()


SCENES = [Up, UpFirst, UpRich, Down, DownOrphan, DownHeld, Prune, Run, RunKilled, Ls, Probe]
