"""What comes after the verdict: it may change what is said, and never starts a second job."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from house.cases import cases
from midwatch.streams.records import Incident
from unit.agents.detect.incident.scene import Scene

LATE = st.lists(
    st.one_of(
        st.tuples(
            st.just("line"),
            st.sampled_from(
                [
                    ("oom", "cause", False),
                    ("nccl", "cause", True),
                    ("nccl_timeout", "consequence", True),
                    ("done", "success", None),
                ]
            ),
            st.sampled_from(["n0", "n1"]),
            st.floats(0.0, 30.0),
        ),
        st.tuples(st.just("step"), st.integers(15, 30)),
        st.tuples(st.just("beat"), st.sampled_from(["n0", "n1"]), st.booleans()),
        st.tuples(st.just("end"), st.sampled_from([0, 1, 137]), st.sampled_from(["", "ada"])),
        st.tuples(st.just("accepted")),
        st.tuples(st.just("wait"), st.floats(0.0, 200.0)),
    ),
    max_size=12,
)


def _tell(scene: Scene, late: tuple[object, ...]) -> None:
    match late:
        case ("line", (str(kind), role, transient), str(node), float(at)):
            scene.line(kind, role=role, transient=transient, node=node, at=at)  # type: ignore[arg-type]  # drawn from the words above
        case ("step", int(number)):
            scene.progress(number)
        case ("beat", str(node), bool(final)):
            scene.beat(node, final=final)
        case ("end", int(code), str(person)):
            scene.ended(exit_code=code, by_person=person)
        case ("accepted",) if scene.commands:
            scene.accepted(scene.commands[-1])
        case ("wait", float(seconds)):
            scene.now += seconds


@settings(max_examples=cases(150))
@given(LATE)
def test_no_late_fact_starts_a_second_job_and_each_revision_says_something_new(
    late: list[tuple[object, ...]],
) -> None:
    scene = Scene(nodes=("n0", "n1"))
    scene.spec()
    scene.train(range(1, 21))
    scene.line("nccl", transient=True)
    scene.ended()
    scene.last_words("n0")
    scene.now += 30
    scene.beat("n0")
    (first,) = scene.settled()
    assert first.verdict.given_up == ("n1",)
    assert len(scene.commands) == 1
    for each in late:
        _tell(scene, each)
    assert len(scene.commands) == 1
    said = [r for r in scene.records if isinstance(r, Incident) and r.state == "settled"]
    assert [r.revision for r in said] == list(range(1, len(said) + 1))
    assert {r.id for r in said} == {first.id}
    assert all((a.verdict, a.scheduler) != (b.verdict, b.scheduler) for a, b in pairwise(said))
    assert all(d.command in ("", scene.commands[0].id) for d in scene.decisions)


@pytest.mark.parametrize("order", [("oom", "answer"), ("answer", "oom")])
def test_who_was_given_up_and_answers_after_all_completes_the_verdict(order: tuple[str, ...]) -> None:
    scene = Scene(nodes=("n0", "n1"))
    scene.spec(armed=False)
    scene.train(range(1, 21))
    scene.line("nccl", transient=True)
    scene.ended()
    scene.last_words("n0")
    scene.now += 30
    scene.beat("n0")
    for each in order:
        if each == "oom":
            scene.line("oom", transient=False, node="n1", at=19)
        else:
            scene.last_words("n1")
    verdict = scene.settled()[-1].verdict
    assert (verdict.error_type, verdict.complete, verdict.given_up) == ("oom", True, ())
    assert scene.actions()[-1] == "stop"
