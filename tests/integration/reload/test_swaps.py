"""Rules are swapped whole, under load, by two workers: no line is lost, doubled, or matched by a mixture."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from integration.chain.installation import Installation
from integration.reload.results import write_results
from integration.reload.swaps import swap, wait_until_folded

SWAPS = int(os.environ.get("MIDWATCH_RELOAD_SWAPS", "5"))
EDITS = int(os.environ.get("MIDWATCH_RELOAD_EDITS", "2"))
LINES = int(os.environ.get("MIDWATCH_RELOAD_LINES", "15000"))


@pytest.mark.capability("C-8")
def test_each_line_counts_once_and_by_the_bundle_that_its_hit_states(
    watch: Installation, tmp_path: Path
) -> None:
    run = swap(watch, tmp_path, swaps=SWAPS, edits=EDITS, lines=LINES)
    assert run.seen.lost(run.sent) == []
    assert run.seen.doubled() == []
    assert run.seen.mistaken == []
    stamped = {bundle: markers for bundle, markers in run.seen.markers.items() if markers}
    assert stamped == {hash_: {marker} for marker, hash_ in run.bundles.items()}
    assert run.sent >= LINES
    kept = os.environ.get("MIDWATCH_RELOAD_RESULTS")
    if kept:
        write_results(Path(kept), run)
    since = time.monotonic()
    wait_until_folded(watch)
    if kept:
        write_results(Path(kept), run, time.monotonic() - since)
