"""The table of one run, or of one that was run in pieces: python3 tests/fault/table.py [--brief] FILE… adds up what `all --rows FILE` has
left there; --brief: one row for each scene, whoever it is done to, and how.

Status 1 when a part is missing, when anything was violated, or when nothing was injected in a whole row."""

import json
import sys

NUMBERS = ("trials", "injected", "violated")


def print_rows(rows):
    width = max((len(row["what"]) for row in rows), default=10)
    section = None
    for row in rows:
        if row["section"] != section:
            section = row["section"]
            print(f"\n{section:{width}}  {'trials':>8} {'injected':>9} {'violated':>9}")
        print(f"{row['what']:{width}}  {row['trials']:>8} {row['injected']:>9} {row['violated']:>9}")
    sums = [sum(row[number] for row in rows) for number in NUMBERS]
    print(f"\n{'all':{width}}  {sums[0]:>8} {sums[1]:>9} {sums[2]:>9}")


def add_up(pieces):
    """One row for all parts of the same, and what is wrong with the parts. One that was run again counts as it was the last time."""
    parts, rows, wrong = {}, [], []
    for piece in pieces:
        parts.setdefault((piece["section"], piece["what"]), {})[tuple(piece["part"])] = piece
    for (section, what), of_row in parts.items():
        rows.append({"section": section, "what": what, **{number: sum(piece[number] for piece in of_row.values()) for number in NUMBERS}})
        last = max(n for _, n in of_row)
        if sorted(of_row) != [(k, last) for k in range(1, last + 1)]:
            wrong.append(f"{section}: {what}: of the whole these parts were run: {sorted(of_row)}")
        if not rows[-1]["injected"]:
            wrong.append(f"{section}: {what}: nothing was injected")
    return rows, wrong


def brief(rows):
    sums = {}
    for row in rows:
        what = row["what"].split(": ")[0]
        sums.setdefault((row["section"], what), {"section": row["section"], "what": what, **dict.fromkeys(NUMBERS, 0)})
        for number in NUMBERS:
            sums[row["section"], what][number] += row[number]
    return list(sums.values())


def main():
    words, pieces = sys.argv[1:], []
    short = "--brief" in words
    for name in (word for word in words if word != "--brief"):
        with open(name) as file:
            pieces += [json.loads(line) for line in file]
    rows, wrong = add_up(pieces)
    if short:
        rows = brief(rows)
    sections = list(dict.fromkeys(row["section"] for row in rows))
    print_rows(sorted(rows, key=lambda row: sections.index(row["section"])))
    for what in wrong:
        print(f"WRONG {what}")
    return 1 if wrong or any(row["violated"] for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
