"""Whatever happens to a job: no alarm twice in its cooldown, no incident untold, no end told twice."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given, settings
from hypothesis import strategies as st

from house.cases import cases
from midwatch.agents.messages.notice import Notice
from unit.agents.messages.records import Partition, decision, done, finding, incident, spec

COOLDOWN_S = 3600
KINDS = ("loss_spike", "node_silent", "blind", "two_alive")
ACTIONS = ("restart", "cancel", "hold", "stop", "none")

findings = st.builds(
    lambda kind, is_open, attempt: [finding(kind, open=is_open, attempt=attempt)],
    st.sampled_from(KINDS),
    st.booleans(),
    st.integers(1, 3),
)
incidents = st.builds(
    lambda attempt, action, out: [
        incident(attempt),
        decision(attempt, action, command="c1" if out else "", reason="a reason"),
    ],
    st.integers(1, 4),
    st.sampled_from(ACTIONS),
    st.booleans(),
)
others = st.sampled_from(["done", "spec", "tick"]).map(
    lambda word: {"done": [done()], "spec": [spec()], "tick": [None]}[word]
)
steps = st.lists(st.tuples(st.integers(0, 4000), findings | incidents | others), max_size=30)


def _played(script: list[tuple[int, list[object]]]) -> tuple[list[tuple[int, Notice]], list[str]]:
    """The notices with their times, and the incidents that were decided about."""
    partition, now, heard, decided = Partition(), 0, [], []
    for pause, records in script:
        now += pause
        for record in records:
            heard += [(now, notice) for notice in partition.take(record, now)]
            if getattr(record, "incident", ""):
                decided.append(str(record.incident))  # type: ignore[attr-defined]  # a decision
    return heard, decided


@settings(max_examples=cases(100))
@given(steps)
def test_no_alarm_is_told_twice_within_its_cooldown(script: list[tuple[int, list[object]]]) -> None:
    last: dict[str, float] = {}
    for at, notice in _played(script)[0]:
        if notice.state != "resolved":
            assert at - last.get(notice.key, -COOLDOWN_S) >= COOLDOWN_S, notice.key
            last[notice.key] = at


@settings(max_examples=cases(100))
@given(steps)
def test_every_incident_is_told_at_least_once(script: list[tuple[int, list[object]]]) -> None:
    heard, decided = _played(script)
    assert set(decided) <= {notice.group for _, notice in heard}


@settings(max_examples=cases(100))
@given(steps)
def test_an_end_is_told_at_most_once_for_each_alarm_and_only_behind_one(
    script: list[tuple[int, list[object]]],
) -> None:
    is_open: dict[str, bool] = defaultdict(bool)
    for _, notice in _played(script)[0]:
        if notice.state == "resolved":
            assert is_open[notice.key], notice.key
        is_open[notice.key] = notice.state != "resolved"


@settings(max_examples=cases(100))
@given(steps)
def test_no_two_messages_have_one_id(script: list[tuple[int, list[object]]]) -> None:
    ids = [notice.id for _, notice in _played(script)[0]]
    assert len(ids) == len(set(ids))
