"""The first second: examples/hello.cpp as a whole process on CPU, with an empty cache folder each
time and its files in the page cache. Wall time of 15 runs."""
import os
import pathlib
import statistics
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
RUNS, BAR = 15, 0.100


def once():
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "MOTE_CACHE_DIR": cache, "MOTE_DEVICE": "CPU"}
        begin = time.perf_counter()
        out = subprocess.run([ROOT / "build/release/examples/hello"], env=env, check=True,
                             capture_output=True, text=True).stdout
        took = time.perf_counter() - begin
    assert out.strip() == "70.0", out
    return took


def main():
    once()  # files into the page cache
    times = [once() for _ in range(RUNS)]
    print(f"hello on CPU, {RUNS} runs: best {min(times) * 1e3:.1f} ms, median "
          f"{statistics.median(times) * 1e3:.1f} ms (bar: best below {BAR * 1e3:.0f} ms; load "
          f"{os.getloadavg()[0]:.1f}, {os.cpu_count()} cores)")


if __name__ == "__main__":
    main()
