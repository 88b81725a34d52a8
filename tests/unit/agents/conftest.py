"""Rules are compiled once in a process; replay as a person gets it without options."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

import pytest

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.replay.job_replay import replay
from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.replayed import Replayed
from midwatch.agents.replay.starts.appended_starts import replay_last
from midwatch.agents.rulesets import bundles
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.model import Rule
from midwatch.rules.prefilter.plan import PrefilterPlan

Watch = Callable[..., Replayed]


@pytest.fixture(scope="session", autouse=True)
def compiled_once() -> Iterator[None]:
    """Tests that load the same rules without a scan share one rule set, which nothing can change."""

    @lru_cache(maxsize=4)
    def unscanned(rules: tuple[Rule, ...], _places: tuple[object, ...]) -> RuleSet:
        return compile_rules(rules, scan=False)

    def compiled(
        rules: tuple[Rule, ...], *, scan: bool = True, known: PrefilterPlan | None = None
    ) -> RuleSet:
        if scan:
            return compile_rules(rules, known=known)
        return unscanned(rules, tuple(rule.location for rule in rules))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bundles, "compile_rules", compiled)
        yield


@pytest.fixture(scope="session")
def watch_files() -> Callable[[Sequence[LogFile]], Replayed]:
    """From files of one start to what is said of the run."""
    watched = bundles.watched_rules(("default",), scan=False)
    policy = load_policy("verdict")
    book = Rulebook({policy.name: policy}, sign=lambda command: command, default_policy=policy.name)
    return lambda parts: replay("replay:file/log", parts, watched, book, WatchLimits())


@pytest.fixture(scope="session")
def watch(watch_files: Callable[[Sequence[LogFile]], Replayed]) -> Watch:
    """From the text of a log, or of each of several, to what is said of the run."""

    def replayed(*logs: str) -> Replayed:
        files = [LogFile(f"log{number or ''}", log.encode(), 0.0) for number, log in enumerate(logs)]
        return replay_last(files, watch_files)

    return replayed
