"""`midwatch rules score` begins at once."""

from __future__ import annotations

import pytest

from midwatch.agents.cli.rules.score import judge_of_logs
from midwatch.rules.matching.compiler import RuleSet


def test_no_scan_is_planned_for_a_few_megabytes(monkeypatch: pytest.MonkeyPatch) -> None:
    def planned(*_: object) -> None:
        pytest.fail("a plan takes seconds of a core")

    monkeypatch.setattr(RuleSet, "make_plan", planned)
    judged = judge_of_logs()("step: 1  loss: 2.5\ntorch.OutOfMemoryError: CUDA out of memory.\n")
    assert judged.error_type == "oom"
