"""State that an older midwatch wrote is read by this one: Redis outlives an upgrade.

`state_blobs/` holds what this version wrote when it was new. The files are never changed. When a state gets
a field that matters, run `python -m unit.agents.write_state_blobs NAME` in `tests/` and commit the new files
beside the old ones.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from midwatch.agents.decide.decision import decide
from midwatch.agents.decide.state import DecideState
from midwatch.agents.detect.incident.fold import fold_event
from midwatch.agents.detect.incident.state import Job, JobState, NodeState
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import Heartbeat, Incident, Origin, SchedulerFact, codec
from unit.agents.detect.incident.scene import JOB, Scene
from unit.agents.state_stage import CLASSES, moments

BLOBS = Path(__file__).with_name("state_blobs")
FILES = sorted(BLOBS.glob("*.json"))
GONE: set[str] = set()
"""`Class.field`s that were taken out on purpose, and what an old blob says in them is not needed."""


def _read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_bytes())  # type: ignore[no-any-return]  # an object by how it is written


def test_there_are_blobs_to_be_read() -> None:
    assert len(FILES) >= len(moments())


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_blob_of_an_older_version_is_read_and_the_fold_goes_on(file: Path) -> None:
    blobs = {kind: json.dumps(body).encode() for kind, body in _read(file).items()}
    state = codec.state_from_bytes(blobs["job"], JobState)
    node = codec.state_from_bytes(blobs["node"], NodeState)
    decided = codec.state_from_bytes(blobs["decide"], DecideState)
    job = Job(state, {"n0": node})
    now_ms = max(node.pulse.last_ms, 1) + 1000
    beat = Heartbeat(
        Origin(JOB, "n0", 1, state.incarnation, "boot", node.pulse.shipper),
        node.pulse.sequence + 1,
        now_ms / 1000,
        node.pulse.monotonic + 1.0,
        5.0,
        True,
        0,
    )
    job = fold_event(job, JOB, beat, now_ms, WatchLimits()).job
    assert job.state.attempt == state.attempt
    end = SchedulerFact(JOB, state.incarnation, "1", "running", "failed", True, mode="crash", exit_code=1)
    done = fold_event(job, JOB, end, now_ms + 1000, WatchLimits())
    for record in done.records:
        decided = decide(decided, record, now_ms + 1000, Scene().book).state
    assert all(isinstance(record, Incident) for record in done.records)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_no_field_of_an_older_blob_is_forgotten_unawares(file: Path) -> None:
    """A field that is gone is read over in silence: the state of a running job loses it in an upgrade."""
    for kind, body in _read(file).items():
        again = json.loads(
            codec.state_to_bytes(codec.state_from_bytes(json.dumps(body).encode(), CLASSES[kind]))
        )
        lost = {
            name
            for name in _paths(body, CLASSES[kind].__name__)
            if name not in set(_paths(again, CLASSES[kind].__name__)) and name not in GONE
        }
        assert not lost, (
            f"{file.name} holds {', '.join(sorted(lost))}, which this version does not keep. "
            "Read it under its old name too, or put it into GONE with the reason"
        )


def test_every_field_has_a_default_for_blobs_that_lack_it() -> None:
    for cls in CLASSES.values():
        assert codec.state_from_bytes(b"{}", cls) == cls()
        for field in dataclasses.fields(cls):
            assert (
                field.default is not dataclasses.MISSING or field.default_factory is not dataclasses.MISSING
            ), field.name


def test_fields_of_a_newer_version_are_read_over() -> None:
    for cls in CLASSES.values():
        assert codec.state_from_bytes(b'{"of_next_year": {"x": 1}}', cls) == cls()


def _paths(body: object, at: str) -> list[str]:
    """The names of all fields, below lists and objects too."""
    if isinstance(body, dict):
        return [
            path for name, value in body.items() for path in (f"{at}.{name}", *_paths(value, f"{at}.{name}"))
        ]
    if isinstance(body, list):
        return [path for value in body for path in _paths(value, f"{at}[]")]
    return []
