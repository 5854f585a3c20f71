"""What the harness must find, or it is no harness: planted bugs, and an injector that had nothing to do."""

import os
import subprocess
import time

from scenes import Up
from series import Crashes, Faults, Memory, Tally
from stage import FAULT, INJECT, Stage
from standstill import STANDSTILL, stood_still_since

# The bug, the kind of run that shows it, and a word of the violation.
BUGS = (
    ("crash", Faults, "died of signal"),
    ("crash", Memory, "died of signal"),
    ("lie", Faults, "said that it is up"),
    ("silence", Faults, "without a word"),
    ("residue", Faults, "says nothing of what is left"),
    ("residue", Crashes, "files are left"),
    ("stranger", Faults, "outside the plane was changed"),
    ("hang", Faults, "did not end within"),
    ("daemon", Faults, "processes are left"),
)


class PlantedStage(Stage):
    tool, deadline, patience = os.path.join(FAULT, "planted"), 2, 1

    def __init__(self, bug):
        super().__init__(PLANTED=bug)
        self.env["HOME"] = self.home


def violations_of(bug, runs, word=None):
    series = runs(Up, "control", runs.kinds[0])
    series.make_stage, series.quiet, series.until = (lambda: PlantedStage(bug)), True, word
    tally = Tally(series.row)
    series.run(tally)
    return tally


def stand_still():
    """Held as a whole, and let go on by another."""
    began, me = time.monotonic(), os.getpid()
    subprocess.run(["/bin/sh", "-c", f"kill -STOP {me}; sleep {STANDSTILL + 1}; kill -CONT {me}"], check=True)
    return stood_still_since(began)


def controls():
    """Each as a row: what was planted, and the trials, whose violations are what is wrong with the harness."""
    for runs in (Faults, Memory, Crashes):
        tally = violations_of("none", runs)
        tally.violations = [f"it finds what is not there: {what}" for what in tally.violations[:1]]
        yield f"no bug, {runs.__name__.lower()}", tally
    for bug, runs, word in BUGS:
        tally = violations_of(bug, runs, word)
        tally.violations = [] if any(word in what for what in tally.violations) else [f"the planted bug was not found: {bug}"]
        yield f"{bug}, {runs.__name__.lower()}", tally
    nothing = Tally("")
    done = subprocess.run([INJECT, "--at", "1000000", "--", "/bin/true"], stderr=subprocess.PIPE, timeout=60, check=False)
    nothing.add(True, [] if done.returncode == 3 and b'"injected":false' in done.stderr else ["it does not say that it did nothing"], 0)
    yield "an injector without its call", nothing
    still = Tally("")
    still.add(True, [] if stand_still() else ["it does not see that it stood still"], 0)
    yield "a machine that stands still", still
