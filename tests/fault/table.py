"""The table of one run, or of one that was run in pieces: python3 tests/fault/table.py [--brief] FILE… adds up what `all --rows FILE` has
left there; --brief: one row for each scene, whoever it is done to, and how.

A column for each world. Status 1 when a part is missing, when anything was violated, or when nothing was injected in a whole row."""

import json
import sys

NUMBERS = ("trials", "injected", "violated")


def add_up(pieces, every_row=True):
    """One row for all parts of the same, and what is wrong. One that was run again counts as it was the last time. Without `every_row` it is enough
    that in each section something was injected."""
    parts, rows, wrong, acted = {}, [], [], {}
    for piece in pieces:
        parts.setdefault((piece["world"], piece["section"], piece["what"]), {})[tuple(piece["part"])] = piece
    for (world, section, what), of_row in parts.items():
        row = {"world": world, "section": section, "what": what, **{number: sum(piece[number] for piece in of_row.values()) for number in ("trials", "injected")}}
        violations = [f"{world}: {violation}" for piece in of_row.values() for violation in piece["violations"]]
        rows.append({**row, "violated": len(violations)})
        wrong += violations
        last = max(n for _, n in of_row)
        if sorted(of_row) != [(k, last) for k in range(1, last + 1)]:
            wrong.append(f"{world}: {section}: {what}: of the whole these parts were run: {sorted(of_row)}")
        kind = (world, section, what if every_row else "all")
        acted[kind] = acted.get(kind, 0) + row["injected"]
    wrong += [f"{': '.join(kind)}: nothing was injected" for kind, number in acted.items() if not number]
    return rows, wrong if rows else ["nothing was run"]


def brief(rows):
    return [{**row, "what": row["what"].split(": ")[0]} for row in rows]


def print_rows(rows):
    """Lines by section and what is done, in the order in which they came; columns by world."""
    worlds = list(dict.fromkeys(row["world"] for row in rows))
    cells, lines = {}, {}
    for row in rows:
        lines.setdefault(row["section"], {})[row["what"]] = None
        for what in (row["what"], None):
            cell = cells.setdefault((row["section"] if what else None, what, row["world"]), dict.fromkeys(NUMBERS, 0))
            for number in NUMBERS:
                cell[number] += row[number]
    width = max(len(what) for row in rows for what in (row["what"], row["section"]))

    def line(section, what, words):
        numbers = [cells.get((section, what, world)) for world in worlds]
        print(f"{words:{width}}" + "".join("".join(f" {cell[number]:>9}" if cell else f" {'-':>9}" for number in NUMBERS) for cell in numbers))

    print(f"{'':{width}}" + "".join(f" {world:>29}" for world in worlds))
    for section, whats in lines.items():
        print(f"\n{section:{width}}" + "".join(f" {number:>9}" for number in NUMBERS) * len(worlds))
        for what in sorted(whats):
            line(section, what, what)
    print()
    line(None, None, "all")


def report(pieces, every_row=True, short=False):
    """Prints the table; what is wrong."""
    rows, wrong = add_up(pieces, every_row)
    if rows:
        print_rows(brief(rows) if short else rows)
    return wrong


def main():
    words, pieces = sys.argv[1:], []
    for name in (word for word in words if word != "--brief"):
        with open(name) as file:
            pieces += [json.loads(line) for line in file]
    wrong = report(pieces, short="--brief" in words)
    for what in wrong:
        print(f"VIOLATED {what}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
