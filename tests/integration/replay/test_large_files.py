"""`midwatch replay` of large logs, as a process: its memory does not depend on the size."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from midwatch.rules.prefilter.workloads import progress


def _peak(file: Path) -> int:
    """Bytes of the largest process of a replay."""
    command = [sys.executable, "-P", "-m", "midwatch", "replay", str(file)]
    code = "import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=-3, check=False);"
    code += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run([sys.executable, "-c", code, *command], capture_output=True, text=True, check=True)
    return int(done.stdout) * 1024


def test_four_times_the_log_needs_no_more_memory(tmp_path: Path) -> None:
    part = progress(4_000_000)
    small, large = tmp_path / "small.log", tmp_path / "large.log"
    small.write_bytes(part)
    large.write_bytes(part * 5)
    before, after = _peak(small), _peak(large)
    print(f"{before / 1e6:.0f} MB for 4 MB of log, {after / 1e6:.0f} MB for 20 MB")
    assert after < before * 1.2
    assert after < 200e6


def test_standard_input_of_any_size_is_read() -> None:
    command = [sys.executable, "-P", "-m", "midwatch", "replay", "-", "--json"]
    log = progress(200_000) * 45  # more than is kept in memory
    done = subprocess.run(command, input=log, capture_output=True, check=False, timeout=120)
    assert json.loads(done.stdout)["verdict"]["state"] == "healthy"
