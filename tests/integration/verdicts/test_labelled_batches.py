"""The verdicts on the labelled batches, which lie beside the checkout on some machines; never copied.

The floors are what was reached once each batch was learned. They only ever rise. `bench/results/diagnosis.md`
has the figures that were measured before anybody read a batch.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from midwatch.agents.cli import run

LABELLED = Path(__file__).parents[4] / "shared" / "data" / "failures"
FLOORS = {
    "batch-1": {"family": 194, "root line": 196, "restart recall": 28, "action right": 240},
    "batch-2": {"family": 55, "root line": 53, "restart recall": 14, "action right": 74},
    "batch-3": {"family": 48, "root line": 48, "restart recall": 11, "action right": 78},
}
WRONG_RESTARTS = {"batch-1": 1, "batch-2": 0, "batch-3": 0}


@pytest.mark.parametrize("batch", FLOORS)
def test_the_verdicts_are_as_good_as_they_were(batch: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = LABELLED / f"{batch}.jsonl"
    if not file.exists():
        pytest.skip("the labelled failures do not lie beside this checkout (../shared/data/failures)")
    assert run(["rules", "score", str(file), "--lenient", "--json"]) == 0
    measures = json.loads(capsys.readouterr().out)["measures"]
    reached = {name: measures[name]["hits"] for name in FLOORS[batch]}
    assert {
        name: (hits, FLOORS[batch][name]) for name, hits in reached.items() if hits < FLOORS[batch][name]
    } == {}
    assert measures["false alarms"]["hits"] == 0
    assert measures["wrong restarts of healthy runs"]["hits"] == 0
    assert measures["wrong restarts of lasting failures"]["hits"] <= WRONG_RESTARTS[batch]
