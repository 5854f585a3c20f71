"""Many at once, and many times."""

import os
import random
import subprocess
import threading
import time

from series import Tally, interrupted
from stage import SERVE, STATUSES, Stage

NAMES = ("a", "b", "c")


def hammer(seconds, workers, seed):
    """Mixed verbs on few names by many processes. Each ends in its time with a status that means something; afterwards nothing is left."""
    tally, lock = Tally("hammer"), threading.Lock()
    with Stage() as stage:
        end = time.monotonic() + seconds

        def work(number):
            chance = random.Random(f"{seed} {number}")
            while time.monotonic() < end:
                name = chance.choice(NAMES)
                words = chance.choice((("up", name, "--wait-secs", "20", "--", *SERVE), ("up", name, "--wait-secs", "20", "--", *SERVE), ("down", name, "--stop-secs", "1"),
                                       ("prune", "--all"), ("ls", "--json"), ("status", name, "--json")))
                began = time.monotonic()
                done = stage.run(*words)
                wrong = []
                if done.status not in STATUSES:
                    wrong.append(f"an unknown status: {done}")
                if words[0] == "ls" and (done.status or done.json is None):
                    wrong.append(f"`ls` fails: {done}")
                with lock:
                    tally.add(True, [f"hammer: {what}" for what in wrong], time.monotonic() - began)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        stage.violations = [what for what in stage.violations if what]
        for name in NAMES:
            last = stage.run("down", name, "--stop-secs", "2")
            if last.status:
                stage.wrong(f"converge: {last}")
        stage.check_gone()
        stage.check_canary()
        tally.violations += [f"hammer: {what}" for what in stage.violations]
    yield f"{seconds} s, {workers} workers, {len(NAMES)} names", tally


def keeper_of(pid):
    with open(f"/proc/{pid}/stat") as text:
        return int(text.read().rpartition(")")[2].split()[1])


def descriptors_and_memory(pid):
    with open(f"/proc/{pid}/smaps_rollup") as text:
        private = sum(int(line.split()[1]) for line in text if line.startswith("Private"))
    return len(os.listdir(f"/proc/{pid}/fd")), private


def at_rest(pid):
    """Of several looks the least: one that has just asked may not be gone yet."""
    looks = []
    for _ in range(10):
        looks.append(descriptors_and_memory(pid))
        time.sleep(0.02)
    return min(fds for fds, _ in looks), min(private for _, private in looks)


def units():
    return subprocess.run(["systemctl", "--user", "list-units", "--all", "--plain", "--no-legend"], stdout=subprocess.PIPE, check=True).stdout.splitlines()


def soak(cycles):
    """`up` and `down` again and again beside a pod that lives through it all and is looked at each time."""
    tally = Tally("soak")
    with Stage() as stage:
        systemd = stage.env["KIROCREW_POD_BACKEND"] == "systemd"
        stage.other = "kept"
        stage.settled()
        before_units = len(units()) if systemd else 0 # from here on: systemd keeps a slice for each template that it has once run
        kept = stage.run("up", "kept", "--json", "--", *SERVE).json
        keeper = None if systemd else keeper_of(kept["pid"])
        stage.sight()
        before = at_rest(keeper) if keeper else None
        mounts = len(open("/proc/self/mountinfo").readlines())
        for cycle in range(cycles):
            if interrupted.is_set():
                break
            began = time.monotonic()
            for words in (("up", "a", "--", *SERVE), ("down", "a")):
                done = stage.run(*words)
                if done.status:
                    stage.wrong(f"truth: without any fault: {done}")
            if cycle % 20 == 0 or cycle == cycles - 1:
                pod = stage.sight("kept")
                if not pod or pod["state"] != "up":
                    stage.wrong(f"truth: the pod that lives through it is {pod}")
                if left := stage.files():
                    stage.wrong(f"converge: files are left: {left}")
                if len(stage.processes()) != 2 - systemd:
                    stage.wrong(f"converge: processes are left: {stage.describe(stage.processes())}")
            tally.add(True, [f"soak, cycle {cycle}: {what}" for what in stage.violations], time.monotonic() - began)
            stage.violations.clear()
        after = at_rest(keeper) if keeper else None
        if keeper and after[0] > before[0]:
            tally.violations.append(f"soak: the keeper had {before[0]} descriptors and has {after[0]}")
        if keeper and after[1] > before[1] + 256:
            tally.violations.append(f"soak: the keeper had {before[1]} KiB and has {after[1]}")
        stage.run("down", "kept")
        stage.other = None
        stage.check_gone()
        if systemd and len(units()) != before_units:
            stage.wrong(f"converge: {before_units} units became {len(units())}")
        if len(open("/proc/self/mountinfo").readlines()) != mounts:
            stage.wrong("converge: mounts are left")
        tally.violations += [f"soak: {what}" for what in stage.violations]
    yield f"{tally.trials} cycles" + (f"; the keeper beside them: {before[0]} to {after[0]} descriptors, {before[1]} to {after[1]} KiB" if keeper else ""), tally
