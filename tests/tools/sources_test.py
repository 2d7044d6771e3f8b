"""The checks of the sources fail when they should."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import layers  # noqa: E402
import loc  # noqa: E402


def tree(files):
    folder = tempfile.TemporaryDirectory()
    for name, text in files.items():
        path = pathlib.Path(folder.name) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


class Layers(unittest.TestCase):
    def forbidden(self, files):
        with tree(files) as root:
            return layers.check(root)[1]

    def test_what_the_named_room_includes_is_allowed(self):
        self.assertEqual(self.forbidden({"src/base/a.h": "", "src/shape/b.h": '#include "base/a.h"'}), [])

    def test_an_upward_arrow_is_named(self):
        found = self.forbidden({"src/ir/a.h": "", "src/base/b.h": '\n#include "ir/a.h"'})
        self.assertEqual(found, ["src/base/b.h:2: base may not include ir/a.h"])

    def test_a_public_header_counts_to_its_room(self):
        found = self.forbidden({"include/mote/t.h": "// room: tensor\n",
                                "src/graph/g.h": '#include "mote/t.h"'})
        self.assertEqual(len(found), 1)

    def test_a_public_header_includes_none_of_src(self):
        found = self.forbidden({"src/base/a.h": "",
                                "include/mote/t.h": '// room: base\n#include "base/a.h"'})
        self.assertEqual(len(found), 1)


class Loc(unittest.TestCase):
    def test_comments_blanks_and_brackets_are_free(self):
        text = 'int f() {  // a\n\n/* b\n c */ }\n  });\nauto s = "// no comment";\nint n = 1\'000; // c\n'
        self.assertEqual(loc.counted(text), [1, 6, 7])

    def test_budgets_files_and_columns(self):
        files = {"src/ir/big.cpp": "int x;\n" * 601, "src/ir/wide.cpp": "int " + "x" * 100 + ";\n"}
        with tree(files) as root:
            faults = loc.measure(pathlib.Path(root))[2]
        self.assertEqual(len(faults), 2)
        with tree({f"src/ir/{n}.cpp": "int x;\n" * 600 for n in range(11)}) as root:
            faults = loc.measure(pathlib.Path(root))[2]
        self.assertEqual(faults, ["compiler: 6600 counted lines, the budget is 6000"])


if __name__ == "__main__":
    unittest.main()
