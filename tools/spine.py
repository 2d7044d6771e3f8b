"""Distinct counted lines of the library that examples/spine.cpp executes, by room, from gcov."""
import collections
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import loc
import sources

BUDGET = 1500


def run_example(build):
    for old in build.rglob("*.gcda"):
        old.unlink()
    with tempfile.TemporaryDirectory() as cache:
        subprocess.run([build / "examples/spine"], check=True, stdout=sys.stderr,
                       env={**os.environ, "MOTE_CACHE_DIR": cache, "MOTE_DEVICE": "CLANG"})


def executed(build, root):
    """The executed lines of each file, over every object that includes it."""
    lines = collections.defaultdict(set)
    for data in sorted(build.rglob("*.gcda")):
        text = subprocess.run(["gcov", "--json-format", "--stdout", data], cwd=build, check=True,
                              capture_output=True, text=True).stdout
        for report in text.splitlines():
            parsed = json.loads(report)
            for file in parsed["files"]:
                path = pathlib.Path(parsed["current_working_directory"], file["file"]).resolve()
                if path.is_relative_to(root):
                    lines[path] |= {x["line_number"] for x in file["lines"] if x["count"]}
    return lines


def main():
    root = pathlib.Path(__file__).resolve().parents[1]
    build = pathlib.Path(sys.argv[1]).resolve()
    if not shutil.which("gcov"):
        sys.exit("spine: there is no gcov; run ./dev setup")
    run_example(build)
    lines, rooms = executed(build, root), collections.Counter()
    for path, room in sources.files(root):
        rooms[room] += len(lines[path] & set(loc.counted(path.read_text())))
    for room, n in rooms.items():
        if n:
            print(f"{room:10} {n:6}")
    total = sum(rooms.values())
    print(f"spine {total}")
    return total > BUDGET


if __name__ == "__main__":
    sys.exit(main())
