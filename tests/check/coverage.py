#!/usr/bin/env python3
"""What the tests have passed through: branches and lines of a build with -DCOVERAGE=ON, a table, and 1 where it is too little.

    coverage.py TREE BUILD                    the table, and each file below its target
    coverage.py TREE BUILD --missing PREFIX   each branch that was not taken in the files that begin with it
    coverage.py TREE COUNTERS --of PROGRAM FUNCTION   "taken/branches" of one function of another program

A function that forks is counted as if it returned once: its branches behind the fork may be missed, never invented.
"""
import json
import pathlib
import subprocess
import sys

# directory: what has a target, per cent
TARGETS = {
    "fsops": ("branches", 95),
    "pod/model": ("branches", 95),
    "pod/system": ("lines", 85),
    "pod/lifecycle": ("lines", 85),
    "cmd": ("lines", 85),
}


def exported(counters, program):
    """What llvm-cov knows of `program`. The layers are the same object files in every program, and their counters are added up."""
    merged = counters / "merged.profdata"
    subprocess.run(["llvm-profdata", "merge", "-sparse", "-o", merged, *counters.glob("*.profraw")], check=True)
    said = subprocess.run(["llvm-cov", "export", program, f"-instr-profile={merged}"], check=True, stdout=subprocess.PIPE).stdout
    return json.loads(said)["data"][0]


def compiled(tree, build):
    """What must be in the table: the layers' sources that this build has."""
    commands = json.loads((build / "compile_commands.json").read_text())
    names = (pathlib.Path(command["file"]) for command in commands)
    return sorted(str(name) for name in names if str(name.parent.relative_to(tree)) in TARGETS)


class Sum:
    def __init__(self):
        self.figures = {"branches": [0, 0], "lines": [0, 0]}

    def add(self, summary):
        for kind, figure in self.figures.items():
            figure[0] += summary[kind]["covered"]
            figure[1] += summary[kind]["count"]

    def share(self, kind):
        taken, there = self.figures[kind]
        return 100 * taken / there if there else 100

    def row(self, name, kind, target):
        columns = "".join(f"  {self.figures[k][0]:6}/{self.figures[k][1]:<6}{self.share(k):5.1f} %" for k in self.figures)
        return f"{name:36}{columns}   {kind} >= {target} %"


def table(tree, build, files):
    directories, below = {}, []
    for name in compiled(tree, build):
        path = pathlib.Path(name).relative_to(tree)
        directory = str(path.parent)
        if name not in files:
            print(f"coverage: {path} was compiled and is not counted")
            return 1
        alone = Sum()
        alone.add(files[name]["summary"])
        directories.setdefault(directory, Sum()).add(files[name]["summary"])
        if alone.share(TARGETS[directory][0]) < TARGETS[directory][1]:
            below.append(alone.row(str(path), *TARGETS[directory]))
    print(f"{'':36}  {'branches taken':21}  {'lines passed':21}")
    failed = 0
    for directory, (kind, target) in TARGETS.items():
        print(directories[directory].row(directory, kind, target))
        failed |= directories[directory].share(kind) < target
    print("single files below the target of their directory:", *below, sep="\n  ")
    print("coverage: " + ("below its target" if failed else "every target is met"))
    return int(failed)


def missing(tree, files, prefix):
    for name, file in sorted(files.items()):
        path = str(pathlib.Path(name).relative_to(tree)) if name.startswith(f"{tree}/") else name
        if not path.startswith(prefix):
            continue
        text = pathlib.Path(name).read_text().splitlines()
        for line, column, _, end, true, false, *_ in sorted(file["branches"]):
            never = " and ".join(word for word, count in (("true", true), ("false", false)) if not count)
            if never:
                print(f"{path}:{line}:{column}: never {never}: {text[line - 1][column - 1:end - 1]}    | {text[line - 1].strip()}")


def main(words):
    tree, build = (pathlib.Path(word).resolve() for word in words[:2])
    if words[2:3] == ["--of"]:
        branches = [function for function in exported(build, words[3])["functions"] if function["name"].endswith(words[4])][0]["branches"]
        print(f"{sum((branch[4] > 0) + (branch[5] > 0) for branch in branches)}/{2 * len(branches)}")
        return 0
    files = {file["filename"]: file for file in exported(build / "coverage", build / "kirocrew-pod")["files"]}
    if words[2:3] == ["--missing"]:
        missing(tree, files, words[3])
        return 0
    return table(tree, build, files)


sys.exit(main(sys.argv[1:]))
