"""`make chaos`: every fault its full count; what was counted goes to bench/results/chaos.{json,md}.

Each part is one run of pytest with many rounds. `--only executor` plays one part and keeps what an earlier
run found of the others. Fails when a case failed, or when a failpoint or fault was never hit.
"""

from __future__ import annotations

import argparse
import os
import secrets
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from faults.chaos import report, tally
from faults.chaos.parts import PARTS, TESTS

DEFAULT_ROUNDS = 10


def main(arguments: Sequence[str] | None = None) -> int:
    """Play, count, write, judge."""
    parser = argparse.ArgumentParser(description=__doc__, prog="make chaos")
    parser.add_argument("--seed", type=int, default=secrets.randbits(32))
    parser.add_argument("--rounds", type=int, default=DEFAULT_ROUNDS)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--workers", type=int, default=0, help="cases side by side; 0: one by one")
    parser.add_argument("--cases", default="", help="only these, as pytest's -k takes them")
    parser.add_argument("--output", type=Path, default=TESTS.parent / "bench" / "results")
    chosen = parser.parse_args(arguments)
    print(f"SEED={chosen.seed} repeats this run", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder, "tally")
        codes = [_play(part, kept, chosen) for part in chosen.only]
        counted = tally.read(kept)  # also of a run that was cut short
    whole = report.merge(report.load(chosen.output), counted, chosen.seed, chosen.rounds)
    report.write(whole, chosen.output)
    failed = [
        f"pytest ended with {code} for {part}" for part, code in zip(chosen.only, codes, strict=True) if code
    ]
    complaints = failed + report.complaints(whole, chosen.only)
    print(report.hits_table(whole, tuple(PARTS)))
    for complaint in complaints:
        print(f"NOT HELD: {complaint}")
    return 1 if complaints else 0


def _play(part: str, kept: Path, chosen: argparse.Namespace) -> int:
    variables = {
        "MIDWATCH_CHAOS_SEED": str(chosen.seed),
        "MIDWATCH_CHAOS_ROUNDS": str(chosen.rounds),
        tally.FILE: str(kept),
    }
    argv = [sys.executable, "-m", "pytest", *PARTS[part].tests, "-s", "-q"]
    argv += ["-k", chosen.cases] if chosen.cases else []
    argv += ["-n", str(chosen.workers), "--dist", "load"] if chosen.workers else []
    with subprocess.Popen(argv, cwd=TESTS.parent, env=os.environ | variables) as process:
        # What was counted until then is written; at a terminal an interrupt reaches pytest by itself too.
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: process.send_signal(signal.SIGINT))
        return process.wait()


if __name__ == "__main__":
    raise SystemExit(main())
