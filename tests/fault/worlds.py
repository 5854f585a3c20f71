"""Worlds that are too small, or end: file systems without room, files that may not grow, power cuts. Mounting needs root."""

import contextlib
import fcntl
import os
import resource
import subprocess
import time

from series import Tally
from stage import INJECT, SERVE, Stage

FS_IOC_SHUTDOWN, WITHOUT_LOG_FLUSH = 0x8004587D, b"\2\0\0\0"
UP = ("up", "a", "--json", "--wait-secs", "5", "--", *SERVE)


class MountedStage(Stage):
    """Root, pods dir and logs are on a file system of their own, where another pod lies as well."""

    other = "old"

    def __init__(self, *mount):
        super().__init__()
        self.mount = mount
        self.disk = os.path.join(self.dir, "disk")
        os.mkdir(self.disk)
        self.root, self.pods_dir, self.artifacts = (os.path.join(self.disk, name) for name in ("pods", "registry", "artifacts"))
        self.env.update(KIROCREW_POD_ROOT=self.root, KIROCREW_POD_ENV_DIR=self.pods_dir, KIROCREW_POD_ARTIFACTS_DIR=self.artifacts)
        self.enter()
        self.stack.callback(self.leave)

    def enter(self):
        subprocess.run(["mount", *self.mount, self.disk], check=True, stderr=subprocess.PIPE)

    def leave(self):
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, 9)
        self.settles()
        subprocess.run(["umount", self.disk], check=True)

    def old_pod(self):
        """A pod of earlier days, whose keeper is lost; its record must survive whatever comes."""
        done = self.run("up", "old", "--json", "--health", "none", "--", "/bin/sleep", "100000")
        self.lost_keeper(done.json["pid"], "old")
        with open(os.path.join(self.pods_dir, "old.env"), "rb") as record:
            self.record = record.read()

    def check_old(self):
        try:
            with open(os.path.join(self.pods_dir, "old.env"), "rb") as record:
                if record.read() != self.record:
                    self.wrong("truth: another pod's record was changed")
        except OSError as error:
            self.wrong(f"truth: another pod's record is lost: {error}")

    def fill(self, leave_blocks=None, leave_inodes=None):
        """Until no more than that is free."""
        filler = os.path.join(self.disk, "filler")
        os.makedirs(filler, exist_ok=True)
        n = 0
        while True:
            st = os.statvfs(self.disk)
            if (leave_blocks is not None and st.f_bavail <= leave_blocks) or (leave_inodes is not None and st.f_favail <= leave_inodes):
                return
            with open(os.path.join(filler, str(n)), "wb") as file:
                if leave_blocks is not None:
                    file.write(bytes(st.f_bsize))
            n += 1

    def empty_filler(self):
        subprocess.run(["rm", "-rf", os.path.join(self.disk, "filler")], check=True)


def finish(tally, stage, where, began):
    for what in stage.violations:
        print(f"VIOLATED {where}: {what}", flush=True)
    tally.add(True, [f"{where}: {what}" for what in stage.violations], time.monotonic() - began)
    broken = bool(stage.violations)
    stage.violations.clear()
    return broken


def try_up(stage, run):
    """An `up` where there may be no room for it, then `down`, still without room."""
    done = run()
    stage.check_words(done)
    pod = stage.sight()
    if done.status == 0 and (not pod or pod["state"] != "up"):
        stage.wrong(f"truth: it said that it is up, and is listed as {pod}")
    stage.check_old()
    last = stage.run("down", "a", "--stop-secs", "2")
    if last.status:
        stage.wrong(f"converge: without room: {last}")
    stage.check_gone()
    stage.check_canary()


def try_down(stage):
    """A pod that came up while there was room goes when there is none."""
    last = stage.run("down", "a", "--stop-secs", "2")
    if last.status:
        stage.wrong(f"converge: without room: {last}")
    stage.check_old()
    stage.check_gone()


def small_disks(step):
    """Rows: what was small, and its tally."""
    for what, options, room, most in (("tmpfs of 64 KiB", "size=64k", "leave_blocks", 12), ("tmpfs without inodes", "size=1m,nr_inodes=60", "leave_inodes", 30)):
        for verb in ("up", "down"):
            tally = Tally(what)
            with MountedStage("-t", "tmpfs", "-o", options, "none") as stage:
                stage.settled()
                stage.old_pod()
                for left in range(0, most, step):
                    began = time.monotonic()
                    if verb == "down":
                        stage.run(*UP)
                    stage.fill(**{room: left})
                    try_up(stage, lambda: stage.run(*UP)) if verb == "up" else try_down(stage)
                    stage.empty_filler()
                    if finish(tally, stage, f"{what}, {verb}, {left} left", began):
                        stage.sweep(), stage.settled(), stage.old_pod()
            yield f"{what}: {verb}", tally
    tally = Tally("RLIMIT_FSIZE")
    with MountedStage("-t", "tmpfs", "-o", "size=4m", "none") as stage:
        stage.settled()
        stage.old_pod()
        for limit in (0, 1, 2, 35, 37, 64, 128, 200, 256, 300, 400, 512, 1024, 4096)[::step]:
            began = time.monotonic()
            try_up(stage, lambda: stage.run(*UP, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))))
            finish(tally, stage, f"RLIMIT_FSIZE {limit}", began)
    yield "RLIMIT_FSIZE: up", tally


# --- power ------------------------------------------------------------------------------------------------------------------------

def cut(disk):
    fd = os.open(disk, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.ioctl(fd, FS_IOC_SHUTDOWN, WITHOUT_LOG_FLUSH)
    os.close(fd)


def check_whole(stage):
    """Records and notes are old or new; a record that is there says who it is."""
    for entry in os.listdir(stage.pods_dir) if os.path.isdir(stage.pods_dir) else ():
        if not entry.endswith((".env", ".refused")):
            continue
        with open(os.path.join(stage.pods_dir, entry), "rb") as file:
            text = file.read()
        if not text.endswith(b"\n") or (entry.endswith(".env") and b"ID='" not in text):
            stage.wrong(f"truth: after the power cut {entry} is torn: {text!r}")


def power_cuts(step):
    """X53, rows as above. The hook stops the file system exactly before the n-th changing call; what was not synced by then is lost."""
    hook = "exec python3 -c 'import fcntl, os, sys; fcntl.ioctl(os.open(sys.argv[1], os.O_RDONLY), %d, %r)' " % (FS_IOC_SHUTDOWN, WITHOUT_LOG_FLUSH)
    for verb, words in (("up", UP), ("down", ("down", "a", "--stop-secs", "2"))):
        tally = Tally(verb)
        with Stage() as outer:
            image = os.path.join(outer.dir, "image")
            with open(image, "wb") as file:
                file.truncate(32 << 20)
            subprocess.run(["mkfs.ext4", "-q", "-F", image], check=True, stdout=subprocess.DEVNULL)
            with MountedStage("-o", "loop", image) as stage:
                stage.settled()
                stage.old_pod()
                os.sync()
                n = 1
                while power_cut(stage, tally, verb, words, hook, n):
                    n += step
        yield f"X53 power cut: {verb}", tally


def power_cut(stage, tally, verb, words, hook, n):
    began = time.monotonic()
    if verb == "down":
        stage.run(*UP)
        os.sync()
    with stage.injected(["--at", str(n), "--changing", "--role", "control", "--hook", f"{hook} {stage.disk}"], *words) as done:
        acted = done.event("inject")
        if acted:
            for pid in stage.processes():
                with contextlib.suppress(OSError):
                    os.kill(pid, 9)
            stage.settles()
        else:
            stage.run("down", "a", "--stop-secs", "2")
    if acted:
        stage.leave()
        stage.enter()
    check_whole(stage)
    stage.check_old()
    stage.check_listed()
    last = stage.run("down", "a", "--stop-secs", "2")
    if last.status:
        stage.wrong(f"converge: {last}")
    stage.run("prune", "--older-than", "9d")
    stage.check_gone()
    if finish(tally, stage, f"power cut, {verb}, call {n} ({acted['call'] + ' ' + acted['path'] if acted else ''})", began):
        stage.sweep(), stage.settled(), stage.old_pod(), os.sync()
    return bool(acted)


def possible():
    """None, or why not."""
    if os.getuid() != 0:
        return "mounting needs root"
    return None if os.path.exists(INJECT) else "no injector"
