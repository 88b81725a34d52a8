"""The diagnosis on real labelled failures, which lie beside the checkout on some machines; never copied.

The floors are what was reached; they only ever rise.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from midwatch.agents.replay.scoring import Prediction, Ratio, measure, read_labelled
from unit.agents.conftest import Watch

LABELLED = Path(__file__).parents[6] / "shared" / "data" / "failures" / "dev.jsonl"
FLOORS = {
    "detected": 0.96,
    "family": 0.96,
    "exact type": 0.91,
    "root line": 0.95,
    "root line of cascades": 1.0,
    "restart recall": 0.93,
    "action right": 0.95,
}
CEILINGS = {"false alarms": 0, "wrong restarts of lasting failures": 0, "wrong restarts of healthy runs": 0}


@pytest.fixture(scope="module")
def measures(watch: Watch) -> dict[str, Ratio]:
    if not LABELLED.exists():
        pytest.skip("the labelled failures do not lie beside this checkout (../shared/data/failures)")
    rows = read_labelled(
        enumerate((json.loads(line) for line in LABELLED.read_text().split("\n") if line), 1), "dev.jsonl"
    )
    judged = []
    for row in rows:
        done = watch(row.log)
        failed = done.verdict.state == "failed"
        judged.append(
            (
                row,
                Prediction(
                    done.verdict.error_type if failed else "",
                    done.verdict.root_line if failed else "",
                    done.decision.action,
                ),
            )
        )
    return measure(judged)


@pytest.mark.parametrize("name", FLOORS)
def test_it_is_as_good_as_it_was(measures: dict[str, Ratio], name: str) -> None:
    ratio = measures[name]
    assert ratio.hits / ratio.of >= FLOORS[name], str(ratio)


@pytest.mark.parametrize("name", CEILINGS)
def test_it_does_no_harm(measures: dict[str, Ratio], name: str) -> None:
    assert measures[name].hits <= CEILINGS[name], str(measures[name])
