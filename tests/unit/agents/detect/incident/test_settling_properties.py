"""However late the path of lines and beats is, the same is said and the same is done."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from hypothesis import given, settings
from hypothesis import strategies as st

from house.cases import cases
from midwatch.agents.replay.pipeline import wait_until
from midwatch.streams.records import Role, Verdict
from unit.agents.detect.incident.scene import START_S, Scene

END = 40.0
AT_MOST_LATE = 60.0
STEP_S = 5

Kind = Literal["crash", "success", "cancel", "hang"]
Late = Callable[[str, float], float]
"""When what a node wrote at a time arrives at detect."""

LINES: tuple[tuple[str, Role, bool | None], ...] = (
    ("oom", "cause", False),
    ("nccl", "cause", True),
    ("nccl_timeout", "consequence", True),
    ("exception", "cause", None),
)


@dataclass(frozen=True)
class Happening:
    """What happens at a time (seconds), and of which node the path brings it; "": the scheduler says it."""

    at: float
    node: str
    what: Callable[..., object]
    values: tuple[object, ...] = ()
    named: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Story:
    """What truly happens. `lines`: (seconds before the end, node, which of LINES). `mute`: a node of which
    nothing comes after this many seconds before the end."""

    kind: Kind
    nodes: int
    lines: tuple[tuple[float, int, int], ...] = ()
    mute: tuple[int, float] | None = None

    def happenings(self) -> list[Happening]:
        """In the order of time."""
        names = [f"n{i}" for i in range(self.nodes)]
        last = END if self.kind != "hang" else END + 260
        out = [
            Happening(float(at), name, Scene.beat, (name,), {"made": float(at)})
            for name in names
            for at in range(STEP_S, int(last) + 1, STEP_S)
        ]
        out += [Happening(step + 0.1, "n0", Scene.progress, (step,)) for step in range(1, int(END))]
        for before, node, which in self.lines:
            kind, role, transient = LINES[which]
            name, at = names[node % self.nodes], END - before
            about = {"role": role, "transient": transient, "node": name, "at": at}
            out.append(Happening(at, name, Scene.line, (kind,), about))
        if self.kind == "success":
            about = {"role": "success", "node": "n0", "at": END - 0.5}
            out.append(Happening(END - 0.5, "n0", Scene.line, ("done",), about))
        if self.kind != "hang":
            words = {"made": END + 1, "final": True, "alive": False}
            out += [Happening(END + 1, name, Scene.beat, (name,), words) for name in names]
        out = [each for each in out if not self._unsaid(each)]
        return sorted((*out, *self._end()), key=lambda each: each.at)

    def _end(self) -> list[Happening]:
        """The scheduler's word."""
        about: dict[str, object] = {
            "crash": {},
            "success": {"exit_code": 0},
            "cancel": {"error_type": "cancelled", "by_person": "ada"},
        }
        if self.kind not in about:
            return []
        return [Happening(END, "", Scene.ended, (), about[self.kind])]  # type: ignore[arg-type]  # of each kind

    def _unsaid(self, each: Happening) -> bool:
        return (
            self.mute is not None
            and each.node == f"n{self.mute[0] % self.nodes}"
            and each.at > END - self.mute[1]
        )


@dataclass
class Told:
    verdicts: list[Verdict] = field(default_factory=list)
    actions: list[str] = field(default_factory=list)
    commands: int = 0


def _told(story: Story, late: Late) -> Told:
    scene = Scene(nodes=tuple(f"n{i}" for i in range(story.nodes)))
    scene.spec()
    clock, arrived = (
        0.0,
        [(late(each.node, each.at) if each.node else each.at, each) for each in story.happenings()],
    )
    for arrives, each in sorted(arrived, key=lambda pair: pair[0]):
        while clock + 1 < arrives:
            clock += 1
            _pass(scene, clock)
        scene.now = clock = max(arrives, clock)
        each.what(scene, *each.values, **each.named)
    for _ in range(300):
        clock += 1
        _pass(scene, clock)
    return Told(
        [i.verdict for i in scene.settled()],
        [d.action for d in scene.decisions if d.incident],
        len(scene.commands),
    )


def _pass(scene: Scene, clock: float) -> None:
    """A tick."""
    scene.now = clock
    done = wait_until(scene.watch, int((START_S + clock) * 1000), scene.limits, scene.book)
    scene.watch = done.watch
    scene.records += done.records
    scene.decisions += done.decisions
    scene.commands += done.commands


def _at_once(_: str, at: float) -> float:
    return at


def _monotone(delays: list[tuple[float, float]]) -> Callable[[float], float]:
    """From delays that begin at given times to arrivals that keep the order of what was sent."""
    spans = sorted(delays)

    def arrives(at: float) -> float:
        latest = at
        delay = 0.0
        for begins, length in spans:
            if begins > at:
                break
            # What was sent before this moment is through by then, and nothing overtakes it.
            latest = max(latest, begins + delay)
            delay = length
        return max(latest, at + delay)

    return arrives


lines = st.lists(
    st.tuples(st.floats(0.5, 12.0), st.integers(0, 2), st.integers(0, len(LINES) - 1)), max_size=3
).map(tuple)
stories = st.builds(
    Story,
    kind=st.sampled_from(["crash", "success", "cancel", "hang"]),
    nodes=st.integers(1, 3),
    lines=lines,
)
mute_stories = st.builds(
    Story,
    kind=st.just("crash"),
    nodes=st.integers(2, 3),
    lines=lines,
    mute=st.tuples(st.integers(1, 2), st.floats(0.5, 30.0)),
)
delays = st.lists(st.tuples(st.floats(0.0, 80.0), st.floats(0.0, AT_MOST_LATE)), max_size=4)


@settings(max_examples=cases(60))
@given(stories, delays)
def test_a_match_that_is_late_changes_no_verdict_and_no_act(
    story: Story, late: list[tuple[float, float]]
) -> None:
    arrives = _monotone(late)
    there, here = _told(story, _at_once), _told(story, lambda _, at: arrives(at))
    assert here.verdicts[-1:] == there.verdicts[-1:]
    assert here.actions[-1:] == there.actions[-1:]
    assert here.commands == there.commands
    assert len(here.verdicts) == len(there.verdicts) <= 1


@settings(max_examples=cases(40))
@given(mute_stories, delays)
def test_a_node_that_never_answers_is_given_up_and_named_however_late_the_others_are_heard(
    story: Story, late: list[tuple[float, float]]
) -> None:
    arrives = _monotone(late)
    there, here = _told(story, _at_once), _told(story, lambda _, at: arrives(at))
    assert here.verdicts[-1] == there.verdicts[-1]
    assert not here.verdicts[-1].complete
    assert story.mute is not None
    assert here.verdicts[-1].given_up == (f"n{story.mute[0] % story.nodes}",)
    assert here.commands == there.commands


@settings(max_examples=cases(60))
@given(stories, st.lists(delays, min_size=3, max_size=3))
def test_nodes_that_are_late_each_in_their_own_way_lead_to_one_order_at_most(
    story: Story, late: list[list[tuple[float, float]]]
) -> None:
    """One node's path may stand still so long that it looks dead; what is ordered then is ordered once."""
    each = {f"n{i}": _monotone(spans) for i, spans in enumerate(late)}
    there, here = _told(story, _at_once), _told(story, lambda node, at: each[node](at))
    assert here.commands <= 1
    assert here.commands <= len(here.verdicts)
    if there.verdicts and here.commands == 0:
        assert here.verdicts[-1].complete
