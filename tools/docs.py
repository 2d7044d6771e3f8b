"""docs/tour.md from docs/tour.in.md and what the program itself dumps.

usage: docs.py [--check] [--files]     --check: fail where docs/tour.md is not what would be written
                                       --files: and where it does not name a file that the program
                                       passes through (needs build/gcov)
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build/dev"


def dumps_of(example, device):
    """The text of each phase by its name: schedule, ast, moves, code, source."""
    with tempfile.TemporaryDirectory() as folder:
        # A flag of the caller's shell must not change the page.
        own = {k: v for k, v in os.environ.items() if not k.startswith("MOTE_")}
        subprocess.run([BUILD / "examples" / example], check=True, stdout=subprocess.DEVNULL,
                       env={**own, "MOTE_CACHE": "0", "MOTE_DUMP": folder, "MOTE_DEVICE": device})
        return {f.name.split("_")[1].removesuffix(".txt"): f.read_text().strip()
                for f in sorted(pathlib.Path(folder).iterdir())}


def filled(template):
    c, llvm = dumps_of("spine", "CLANG"), dumps_of("hello", "CPU")

    def value(mark):
        kind, _, name = mark.group(1).partition(" ")
        if kind == "file":
            return (ROOT / name).read_text().strip()
        if kind == "llvm":
            return llvm["source"]
        return c[name]
    return re.sub(r"\{\{([a-z]+(?: [^}]+)?)\}\}", value, template)


def unnamed_files(page):
    import spine
    import sources
    spine.run_example(ROOT / "build/gcov")
    lines = spine.executed(ROOT / "build/gcov", ROOT)
    paths = [p.relative_to(ROOT).as_posix() for p, _ in sources.files(ROOT) if lines[p]]
    return [p for p in paths if p not in page]


def main():
    page = filled((ROOT / "docs/tour.in.md").read_text())
    out = ROOT / "docs/tour.md"
    if "--files" in sys.argv and (missing := unnamed_files(page)):
        sys.exit(f"docs/tour.in.md does not name: {', '.join(missing)}")
    if "--check" not in sys.argv:
        out.write_text(page)
        print(f"wrote {out.relative_to(ROOT)}")
    elif not out.exists() or out.read_text() != page:
        sys.exit("docs/tour.md is not what the program dumps now; run ./dev docs")


if __name__ == "__main__":
    main()
