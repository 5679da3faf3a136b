#!/usr/bin/env python3
"""Kvasir against llama.cpp on the same file, threads and machine, interleaved: ratios of tokens per second.

  eval/peers/build-llama.sh                       builds the peer into build/peers/llama (about 10 minutes, once)
  eval/peers/compare.py --model FILE.gguf         prompt 512 and decode 64, 7 rounds

Each round runs one of both, in turn; the figure is the median of the rounds' ratios, since the machine's speed drifts.
"""
from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]


def run(command: list[str]) -> list[dict]:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]} failed:\n{done.stderr.decode(errors='replace')[-2000:]}")
    return json.loads(done.stdout)


def rates(rows: list[dict]) -> dict[str, float]:
    """Tokens per second of the prompt and of decoding."""
    return {("tg" if row["n_gen"] else "pp"): row["avg_ts"] for row in rows}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("-p", type=int, default=512)
    parser.add_argument("-n", type=int, default=64)
    parser.add_argument("-d", type=int, default=0)
    parser.add_argument("-t", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--bench", default=str(ROOT / "build/release/bin/kvasir-bench"))
    parser.add_argument("--llama", default=str(ROOT / "build/peers/llama/bin/llama-bench"))
    parser.add_argument("-o", choices=["table", "json"], default="table")
    a = parser.parse_args()
    shape = ["-p", str(a.p), "-n", str(a.n), "-d", str(a.d), "-t", str(a.t), "-r", "1", "-o", "json"]
    rounds = []
    for number in range(a.rounds):
        ours = rates(run([a.bench, "--model", a.model, *shape]))
        theirs = rates(run([a.llama, "-m", a.model, *shape]))
        rounds.append({key: (ours[key], theirs[key]) for key in ours})
        if sys.stderr.isatty():
            print(f"\rround {number + 1} of {a.rounds}", end="", file=sys.stderr, flush=True)
    if sys.stderr.isatty():
        print(file=sys.stderr)
    rows = []
    for key, name, size in (("pp", "prompt", a.p), ("tg", "decode", a.n)):
        pairs = [r[key] for r in rounds if key in r]
        if pairs:
            ratios = [x / y for x, y in pairs]
            rows.append({"test": f"{name} {size} depth {a.d}", "kvasir": statistics.median(x for x, _ in pairs),
                         "llama.cpp": statistics.median(y for _, y in pairs), "ratio": statistics.median(ratios),
                         "ratio_min": min(ratios), "ratio_max": max(ratios)})
    if a.o == "json":
        print(json.dumps({"model": pathlib.Path(a.model).name, "threads": a.t, "rounds": a.rounds, "rows": rows}, indent=2))
        return 0
    print(f"{pathlib.Path(a.model).name}, {a.t} threads, {a.rounds} rounds; tokens/s, medians")
    print(f"{'test':<24} {'kvasir':>9} {'llama.cpp':>10} {'ratio':>7} {'min':>6} {'max':>6}")
    for r in rows:
        print(f"{r['test']:<24} {r['kvasir']:>9.1f} {r['llama.cpp']:>10.1f} {r['ratio']:>7.2f} {r['ratio_min']:>6.2f} {r['ratio_max']:>6.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
