"""Speed beside other frameworks: each case of `mote bench` and the same case of each peer, in turn,
in one run. One thread is compared by CPU time, two by wall time; best of all samples, and the median.

  ./dev bench table [--threads 1,2] [--cases a,b] [--seconds 1] [--rounds 2] [--peers FOLDER]

FOLDER holds peers.py, which prints lines with the same keys for other frameworks; its README says how
it is set up. Without it the table holds mote alone.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
# case: (peers, the bar of the best of them for one thread, for two)
CASES = {
    "matmul": (["openblas"], 0.95, 0.95),
    "matmul-odd": (["openblas"], 0.95, 0.95),
    "matmul-tn": (["openblas"], 0.95, 0.95),
    "matmul-nt": (["openblas"], 0.95, 0.95),
    "matmul-thin": (["openblas"], 1.2, 1.0),
    "matmul-wide": (["openblas"], 1.2, 1.0),
    "bmm": (["openblas"], 1.2, 1.0),
    "matvec": (["openblas"], 0.92, 0.95),
    "matvec-t": (["openblas"], 0.92, 0.95),
    "conv3x3": (["onednn", "ort", "torch"], 0.9, 0.95),
    "conv7x7": (["onednn", "ort", "torch"], 0.9, 0.95),
    "conv1x1": (["onednn", "ort", "torch"], 0.9, 0.95),
    "dwconv3x3": (["onednn", "ort", "torch"], 0.85, 0.95),
    "conv3x3-bwd-w": (["onednn", "torch"], 1.2, 1.0),
    "conv3x3-bwd-x": (["onednn", "torch"], 0.95, 0.95),
    "softmax": (["torch", "jax", "ort"], 1.0, 1.0),
    "layernorm": (["torch", "jax", "ort"], 1.0, 1.0),
    "chain": (["torch", "jax", "ort"], 1.0, 1.0),
    "sum": (["torch", "jax", "ort"], 1.0, 1.0),
    "transpose": (["torch", "jax", "ort"], 1.0, 1.0),
    "attention": (["torch"], 1.0, 1.0),
    "mlp": (["torch", "jax"], 1.0, 1.0),
    "mnist": (["torch"], 1.3, 1.3),
}


def lines_of(command):
    out = subprocess.run(command, capture_output=True, text=True)
    if out.returncode:
        return []
    lines = [json.loads(l) for l in out.stdout.splitlines() if l.startswith("{")]
    return [l for l in lines if "skipped" not in l]


def merged(all_lines, threads):
    """(best, median) in milliseconds over the rounds."""
    best, median = ("cpu_ms_min", "cpu_ms_median") if threads == 1 else ("ms_min", "ms_median")
    return (min(l[best] for l in all_lines), sorted(l[median] for l in all_lines)[len(all_lines) // 2])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--threads", default="1")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--seconds", default="1")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--peers", type=pathlib.Path)
    args = parser.parse_args()
    missed = 0
    print(f"{'case':14} {'threads':>7} {'mote ms':>10} {'peer':>9} {'peer ms':>10} {'ratio best':>10} "
          f"{'median':>7} {'bar':>5}")
    for case in args.cases.split(","):
        peers, *bars = CASES[case]
        for threads in map(int, args.threads.split(",")):
            ours, theirs = [], {}
            for _ in range(args.rounds):
                ours += lines_of([ROOT / "build/release/mote", "bench", case, "--json", "--threads",
                                  str(threads), "--seconds", args.seconds])
                for peer in peers if args.peers else []:
                    got = lines_of([sys.executable, args.peers / "peers.py", "--peer", peer, "--case",
                                    case, "--threads", str(threads), "--seconds", args.seconds,
                                    "--keep", "1"])
                    if got:
                        theirs.setdefault(peer, []).append(
                            min(got, key=lambda l: l["ms_min"]))
            best, median = merged(ours, threads)
            if not theirs:
                print(f"{case:14} {threads:7} {best:10.3f}", flush=True)
                continue
            peer, (peer_best, peer_median) = min(
                ((p, merged(l, threads)) for p, l in theirs.items()), key=lambda x: x[1][0])
            bar = bars[0 if threads == 1 else 1]
            short = peer_best / best < bar
            missed += short
            print(f"{case:14} {threads:7} {best:10.3f} {peer:>9} {peer_best:10.3f} "
                  f"{peer_best / best:10.2f} {peer_median / median:7.2f} {bar:5.2f}"
                  f"{'  short' if short else ''}", flush=True)
    print(f"load {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores; {missed} short of the bar")


if __name__ == "__main__":
    main()
