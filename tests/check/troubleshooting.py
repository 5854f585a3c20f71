"""Every message that docs/TROUBLESHOOTING.md explains is one that the program can print: the fixed parts of the quoted ones stand in its sources."""

import glob
import os
import re
import sys

TREE = sys.argv[1]
# What stands for something else in a quoted message.
PLACEHOLDER = r"…|\bFILE\b|\bPATH\b|\bN\b|\bP\b|\bX\b|\bdemo\b|\bup\b|--|\(X\)|KIROCREW_POD_|[0-9]+|kirocrew-pod|/|: |; | \|"


def strings():
    """The string constants of the sources, adjacent ones joined, conversions taken for placeholders."""
    for path in glob.glob(f"{TREE}/*/**/*.c", recursive=True):
        if os.path.relpath(path, TREE).split(os.sep)[0] not in ("cmd", "pod", "fsops"):
            continue
        with open(path) as text:
            source = text.read()
        for constant in re.findall(r'"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*', source):
            yield re.sub(r'"\s*"', "", constant)[1:-1]


def fragments(message):
    return [part.strip(" `'\"().,") for part in re.split(PLACEHOLDER, message)]


def main():
    known = "\n".join(strings())
    with open(f"{TREE}/docs/TROUBLESHOOTING.md") as text:
        document = text.read()
    quoted = [cell for row in re.findall(r"(?m)^\| (`.*?) \|(?!$)", document) for cell in re.findall(r"`([^`]+)`", row.split(" | ")[0])]
    looked, missing = 0, []
    for message in quoted:
        for fragment in fragments(message):
            if len(fragment) < 5:
                continue
            looked += 1
            if fragment not in known:
                missing.append(f"{message!r}: nobody prints {fragment!r}")
    print("\n".join(missing) or f"troubleshooting: {looked} parts of {len(quoted)} messages are printed somewhere")
    assert "this sentence is printed by nobody" not in known
    return 1 if missing or looked < 40 else 0


sys.exit(main())
