"""Fails on any #include that the house does not allow (CONTRIBUTING.md has the rooms)."""
import pathlib
import re
import sys

import sources

# A room may include the rooms named here, and what those may include.
ARROWS = {
    "base": [],
    "ir": ["base"],
    "symbolic": ["ir"],
    "shape": ["symbolic"],
    "runtime": ["base"],
    "graph": ["shape", "runtime"],
    "ref": ["graph"],
    "schedule": ["graph"],
    "kernel": ["symbolic"],
    "opt": ["kernel"],
    "render": ["kernel"],
    "engine": ["schedule", "opt", "render", "runtime", "ref"],
    "tensor": ["engine", "graph"],
    "nn": ["tensor"],
    "io": ["tensor"],
}


def reachable(room):
    seen = {room}
    for other in ARROWS.get(room, []):
        seen |= reachable(other)
    return seen


def check(root):
    """The arrows found, and a line for each forbidden one."""
    root = pathlib.Path(root)
    headers = {}
    for path, room in sources.files(root):
        top = "src" if path.relative_to(root).parts[0] == "src" else "include"
        headers[path.relative_to(root / top).as_posix()] = (room, top)
    arrows, forbidden = set(), []
    for path, room in sources.files(root):
        public = path.relative_to(root).parts[0] == "include"
        if not room:
            continue  # the umbrella includes every public header
        for number, line in enumerate(path.read_text().splitlines(), 1):
            found = re.match(r'\s*#\s*include\s*"([^"]+)"', line)
            if not found or found.group(1) not in headers:
                continue
            target, top = headers[found.group(1)]
            if target != room:
                arrows.add((room, target))
            if target not in reachable(room) or (public and top == "src"):
                place = path.relative_to(root).as_posix()
                forbidden.append(f"{place}:{number}: {room} may not include {found.group(1)}")
    return arrows, forbidden


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    arrows, forbidden = check(root)
    print(*forbidden, sep="\n", end="\n" if forbidden else "")
    print(f"{len(arrows)} arrows, {len(forbidden)} forbidden")
    return 1 if forbidden else 0


if __name__ == "__main__":
    sys.exit(main())
