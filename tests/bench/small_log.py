"""Measure `midwatch replay` of a small log: `make bench-replay`. Fails where it takes a second or more.

The log is that of a real drill: eight ranks, one hangs, seven print a timeout. Side by side, in turns, as
processes: a bare interpreter, midwatch telling its version, and the replay. So a busy machine shows. Each
ran once before it is measured, and may keep its byte code, as an installed midwatch does.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

ROUNDS = 15
PROMISE_S = 1.0
RESULTS = Path("bench/results")
# Where Python may not write byte code, each start compiles all sources anew.
_ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _drill(directory: Path) -> Path:
    trainer = [sys.executable, "-P", "-m", "midwatch.agents.drill.trainer", f"--checkpoint-dir={directory}/c"]
    told = [
        f"--log-dir={directory}/logs",
        "--fault=nccl@40",
        "--collective-timeout-ms=1000",
        "--iteration-ms=5",
    ]
    subprocess.run([*trainer, *told], check=False, capture_output=True, timeout=120)
    return directory / "logs"


def _seconds(command: list[str]) -> float:
    begun = time.perf_counter()
    done = subprocess.run(command, env=_ENVIRONMENT, capture_output=True, text=True, check=False, timeout=120)
    took = time.perf_counter() - begun
    if "replay" in command:
        assert json.loads(done.stdout)["verdict"]["error_type"] == "nccl_timeout", done.stderr
    return took


def main() -> None:
    """Write replay.json and replay.md; exit code 1 where the promise is broken."""
    midwatch = [sys.executable, "-P", "-m", "midwatch"]
    with tempfile.TemporaryDirectory() as place:
        logs = _drill(Path(place))
        kilobytes = sum(file.stat().st_size for file in logs.iterdir()) / 1024
        commands = {
            "bare interpreter": [sys.executable, "-c", "pass"],
            "midwatch --version": [*midwatch, "--version"],
            "midwatch replay": [*midwatch, "replay", "--json", str(logs)],
        }
        taken: dict[str, list[float]] = {name: [] for name in commands}
        for command in commands.values():
            _seconds(command)
        for _ in range(ROUNDS):
            for name, command in commands.items():
                taken[name].append(_seconds(command))
    median = {name: statistics.median(each) for name, each in taken.items()}
    least = {name: min(each) for name, each in taken.items()}
    bare = median["bare interpreter"]
    machine = {
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "midwatch": version("midwatch"),
    }
    result = {"machine": machine, "log_kb": round(kilobytes), "rounds": ROUNDS, "seconds": taken}
    (RESULTS / "replay.json").write_text(json.dumps(result, indent=1) + "\n")
    rows = [
        f"| {name} | {least[name]:.2f} | {median[name]:.2f} | {median[name] / bare:.1f} x |"
        for name in commands
    ]
    page = [
        "# Replay: seconds for a small log",
        "",
        f"{kilobytes:.0f} kB in eight files of a drill; {ROUNDS} turns; {os.cpu_count()} cores at load",
        f"{machine['load']}; Python {machine['python']}. Written by `make bench-replay`.",
        "",
        "| | least | median | to the bare interpreter |",
        "|---|---|---|---|",
        *rows,
    ]
    (RESULTS / "replay.md").write_text("\n".join(page) + "\n")
    print("\n".join(page))
    sys.exit(median["midwatch replay"] >= PROMISE_S)


if __name__ == "__main__":
    main()
