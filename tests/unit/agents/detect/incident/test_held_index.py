"""The index of held lines says what a look at each line would say, whatever was held or dropped before."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from house.cases import cases
from midwatch.agents.detect.diagnosis.root_line import precedence
from midwatch.agents.detect.incident.state import Job, JobState
from midwatch.agents.detect.incident.turn import Turn
from midwatch.rules.detectors import DETECTORS
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import Held, Hit, Line

LINES = st.builds(
    lambda rule, rank, node, path, step: Held(
        Hit(
            rule, "cause", "exception", "code", "error", None,
            Line("words", number=1, offset=0, path=path, time=1.0, node=node, rank=rank), 1, "file",
        ),
        step,
        0,
    ),
    st.sampled_from("ab"), st.sampled_from([None, 0, 1]), st.sampled_from("mn"), st.sampled_from("xy"),
    st.integers(-1, 3),
)  # fmt: skip


def turn_of(job: Job) -> Turn:
    """A turn of the job that does nothing by itself."""
    return Turn(job, WatchLimits(), DETECTORS, 0)


@settings(max_examples=cases(100))
@given(
    st.lists(
        st.one_of(LINES, st.just("drop"), st.just("replace"), st.just("next record"), st.just("roll back")),
        max_size=30,
    )
)
def test_index_of_any_history(history: list[Held | str]) -> None:
    turn = turn_of(Job(JobState()))
    before = turn.result()
    for event in history:
        if isinstance(event, Held):
            turn.hold(event)
            assert turn.state.held[-1] is event
        elif event == "drop":
            turn.drop(turn.state.held[::3])
        elif event == "replace":
            turn.set(held=turn.state.held[1:])
        elif event == "next record":
            before = turn.result()
            turn = turn_of(before)
        else:
            turn = turn_of(before)
        lines = turn.state.held
        assert turn.index().least_step == min((each.step for each in lines), default=None)
        assert turn.index().by_precedence() == sorted(lines, key=lambda each: precedence(each.hit))
        for each in lines:
            same = [
                other
                for other in lines
                if (other.hit.rule, other.hit.line.rank, other.hit.line.file)
                == (each.hit.rule, each.hit.line.rank, each.hit.line.file)
            ]
            assert turn.index().alike(each.hit) == len(same)
