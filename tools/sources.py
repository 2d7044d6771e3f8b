"""What layers.py and loc.py share: the library's C++ files, and the room each belongs to."""
import pathlib
import re

SUFFIXES = {".cpp", ".h", ".mm"}


def files(root):
    """Every C++ file of the library, with its room ("" for the umbrella header)."""
    root = pathlib.Path(root)
    for top in ("src", "include/mote"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in SUFFIXES:
                yield path, room(root, path)


def room(root, path):
    inside = path.relative_to(root).parts
    if inside[0] == "src":
        return inside[1]
    first = path.read_text().partition("\n")[0]
    named = re.match(r"// room: (\w+)", first)
    return named.group(1) if named else ""
