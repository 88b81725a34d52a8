"""What a long run of swaps counted, as the project keeps it: JSON with the machine and the versions."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from integration.reload.swaps import Run

_PACKAGES = ("faust-streaming", "aiokafka", "kafka-python", "google-re2", "redis")


def write_results(file: Path, run: Run, folded_s: float | None = None) -> None:
    """One object; times in seconds. `folded_s`: from the last line until detect had folded all."""
    body = {
        "what": "numbered lines through two match workers while bundles that differ in 3 files swap",
        "swaps": len(run.stated),
        "edits": len(run.edits_stated),
        "lines": run.sent,
        "lines_by_bundle": {marker: run.seen.by_bundle[hash_] for marker, hash_ in run.bundles.items()},
        "lost": len(run.seen.lost(run.sent)),
        "doubled": len(run.seen.doubled()),
        "repeated_by_match": run.seen.repeated,
        "records": run.seen.records,
        "seconds_from_the_last_line_until_detect_has_folded_all": folded_s and round(folded_s, 1),
        "workers": 2,
        "seconds_until_a_worker_matches_by_the_new_bundle": _spread(run.taken),
        "seconds_until_lines_of_every_node_state_it": _spread(run.stated),
        "seconds_from_an_edited_file_until_a_worker_matches_by_it": _spread(run.edits_taken),
        "seconds_from_an_edited_file_until_lines_of_every_node_state_it": _spread(run.edits_stated),
        "seconds_from_a_chunk_to_what_is_said_of_it": _spread(run.seen.delays),
        "machine": {
            "cores": os.cpu_count(),
            "processor": _processor(),
            "load": os.getloadavg()[1],
            "python": platform.python_version(),
        },
        "versions": {name: version(name) for name in _PACKAGES},
    }
    file.write_text(json.dumps(body, indent=1) + "\n")


def _spread(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    if not ordered:
        return {}
    at = {"median": len(ordered) // 2, "p99": min(len(ordered) * 99 // 100, len(ordered) - 1), "largest": -1}
    return {name: round(ordered[index], 3) for name, index in at.items()}


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "")
