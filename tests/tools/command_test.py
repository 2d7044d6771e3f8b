"""The command `mote`: what it prints and with which status it ends."""
import json
import os
import pathlib
import subprocess
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MOTE = ROOT / "build/dev/mote"


@unittest.skipUnless(MOTE.exists(), "build/dev/mote is not built")
class Command(unittest.TestCase):
    def run_mote(self, *arguments):
        env = {k: v for k, v in os.environ.items() if k not in ("MOTE_DEVICE", "MOTE_DATA_DIR")}
        return subprocess.run([MOTE, *arguments], capture_output=True, text=True, env=env)

    def test_devices(self):
        out = self.run_mote("devices")
        self.assertEqual(out.returncode, 0)
        self.assertEqual([line.split()[0] for line in out.stdout.splitlines()],
                         ["CPU", "CLANG", "REF", "NULL"])

    def test_env_and_version(self):
        self.assertIn("MOTE_DEVICE ", self.run_mote("env").stdout)
        self.assertRegex(self.run_mote("version").stdout, r"^mote \d+\.\d+\.\d+\n$")

    def test_help(self):
        out = self.run_mote("help")
        self.assertEqual(out.returncode, 0)
        for command in ("bench", "devices", "env", "train", "version"):
            self.assertIn(f"\n  {command} ", out.stdout)

    def test_bench(self):
        out = self.run_mote("bench", "bmm", "--json", "--seconds", "0")
        line = json.loads(out.stdout)
        self.assertEqual((line["peer"], line["case"], line["threads"]), ("mote", "bmm", 1))
        self.assertEqual(line["kernels"], 1)
        self.assertGreater(line["rate_best"], 0)
        out = self.run_mote("bench", "fly")
        self.assertEqual(out.returncode, 1)
        self.assertIn("mote: there is no case 'fly'; known: attention, bmm, chain", out.stderr)

    def test_flags_say_what_they_take(self):
        env = {**os.environ, "MOTE_CACHE": "maybe"}
        out = subprocess.run([MOTE, "bench", "bmm", "--seconds", "0"], capture_output=True, text=True,
                             env=env)
        self.assertEqual((out.returncode, out.stderr),
                         (1, "mote: MOTE_CACHE: 'maybe' is neither 0 nor 1; 0: compiled kernels are "
                             "not kept on disk\n"))

    def test_wrong_usage_is_status_2(self):
        for arguments in [(), ("fly",), ("train",), ("train", "mnist", "--epochs", "0"),
                          ("train", "mnist", "--lr", "-1")]:
            with self.subTest(arguments):
                out = self.run_mote(*arguments)
                self.assertEqual(out.returncode, 2)
                self.assertNotEqual(out.stderr, "")

    def test_errors_are_status_1_and_say_what_to_do(self):
        cases = {
            ("train", "letters"): "mote: there is no data set 'letters'; known: mnist\n",
            ("train", "mnist", "--device", "CPUU"):
                "mote: there is no device 'CPUU'; did you mean 'CPU'? (known: CPU, CLANG, REF, "
                "NULL; see `mote devices`)\n",
            ("train", "mnist", "--device", "NULL"):
                "mote: the device NULL runs nothing, so nothing is learnt; choose CPU or CLANG\n",
            ("train", "mnist", "--out", "/nowhere"): "mote: --out /nowhere is no folder; make it first\n",
            ("train", "mnist", "--train", "10"):
                "mote: --batch 512 is more than the 10 pictures; give a smaller one\n",
        }
        for arguments, text in cases.items():
            with self.subTest(arguments):
                out = self.run_mote(*arguments)
                self.assertEqual((out.returncode, out.stderr), (1, text))


if __name__ == "__main__":
    unittest.main()
