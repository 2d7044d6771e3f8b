"""The line ledger: counted lines of each room against the budgets of docs/design.md.

A line counts if it holds a token other than { } ( ) [ ] ; , and comments and blanks are free.
"""
import collections
import pathlib
import re
import sys

import sources

COMPILER = "base ir symbolic shape graph schedule kernel opt engine".split()
BUDGETS = {"compiler": 6000, "tensor": 3000, "core": 7500, "total": 18000}
MOST_LINES, MOST_COLUMNS = 600, 100

TOKEN = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|//[^\n]*|/\*.*?\*/',
                   re.DOTALL)


def without_comments(text):
    def blank(match):
        piece = match.group(0)
        return "\n" * piece.count("\n") if piece.startswith(("//", "/*")) else piece
    # The mark of thousands in 1'000 would open a character literal.
    return TOKEN.sub(blank, re.sub(r"(?<=\d)'(?=\d)", "", text))


def counted(text):
    """The numbers of the lines that count."""
    lines = without_comments(text).split("\n")
    return [n for n, line in enumerate(lines, 1) if re.search(r"[^\s{}()\[\];,]", line)]


def measure(root):
    rooms, faults = collections.Counter(), []
    for path, room in sources.files(root):
        text = path.read_text()
        lines = len(counted(text))
        rooms[room or "mote.h"] += lines
        place = path.relative_to(root).as_posix()
        if lines > MOST_LINES:
            faults.append(f"{place}: {lines} counted lines, at most {MOST_LINES}")
        faults += [f"{place}:{n}: {len(line)} columns, at most {MOST_COLUMNS}"
                   for n, line in enumerate(text.split("\n"), 1) if len(line) > MOST_COLUMNS]
    sums = {"compiler": sum(rooms[r] for r in COMPILER), "tensor": rooms["tensor"]}
    sums["core"] = sums["compiler"] + sums["tensor"]
    sums["total"] = sum(rooms.values())
    faults += [f"{k}: {sums[k]} counted lines, the budget is {BUDGETS[k]}"
               for k in BUDGETS if sums[k] > BUDGETS[k]]
    return rooms, sums, faults


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    rooms, sums, faults = measure(root)
    for room, lines in rooms.items():
        if lines:
            print(f"{room:10} {lines:6}")
    print(*faults, sep="\n", end="\n" if faults else "")
    print(" ".join(f"{name} {n}" for name, n in sums.items()))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
