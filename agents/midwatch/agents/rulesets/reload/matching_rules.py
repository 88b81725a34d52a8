"""Shell: the rules that a match worker uses, replaced as a whole while it works.

The worker compiles a bundle once, without its scan, and uses it at once: that takes a fraction of a second.
The scan finds the same hits faster. A helper process plans it, which takes seconds of a core. So the worker
starts a plan only for a bundle that has matched much text.
"""

from __future__ import annotations

import logging
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from midwatch.agents.rulesets.bundles import CompiledBundle
from midwatch.agents.rulesets.content import Content
from midwatch.agents.rulesets.reload.helper_process import HelperFailed, HelperProcess
from midwatch.rules.errors import RuleErrors
from midwatch.rules.loader import shipped_plan
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.matching.hits import MatcherDisagreement
from midwatch.rules.model import Rule
from midwatch.rules.prefilter.plan import PrefilterPlan
from midwatch.streams.errors import NewerRecord

PLAN_AFTER = 64 << 20
"""Bytes of records that a bundle matches before its scan is planned.

The shipped plan of the default rules costs as much of a core as it saves on some 50 MB. One for rules of a
user's own is made here, and costs what it saves on some 500 MB.
"""
_NICENESS = 10
_log = logging.getLogger(__name__)


class MatchingRules:
    """`watched` is replaced, never changed. A caller that reads it once per chunk uses one version for it.

    The constructor takes the first rules, and raises RuleErrors where these do not compile.
    """

    def __init__(self, content: Content) -> None:
        self._swap = threading.Lock()
        self._planner = ThreadPoolExecutor(1, "rules-plan")
        self._stopped = False
        self._unwanted = threading.Event()
        """Set when the plan in progress is not needed any more."""
        self._matched = 0
        self._matched_by = content.hash
        self.watched = _watched(content)

    def take(self, content: Content) -> None:
        """Uses these rules from now on. If they do not compile, keeps the old ones and raises NewerRecord."""
        try:
            watched = _watched(content)
        except RuleErrors as error:
            raise NewerRecord(f"the rules of bundle {content.hash} do not compile here: {error}") from error
        with self._swap:
            self.watched = watched
            self._unwanted.set()

    def watched_for(self, size: int) -> CompiledBundle:
        """The rules for a record of `size` bytes. Only one thread may call it, once a record."""
        watched = self.watched
        if watched.hash != self._matched_by:
            self._matched, self._matched_by = 0, watched.hash
        before, self._matched = self._matched, self._matched + size
        if before < PLAN_AFTER <= self._matched and watched.rules.plan is None:
            self._begin_plan(watched)
        return watched

    def stop(self) -> None:
        """Returns when no plan is in progress: RE2 aborts a process that ends meanwhile."""
        with self._swap:
            self._stopped = True
            self._unwanted.set()
        self._planner.shutdown()

    def _begin_plan(self, watched: CompiledBundle) -> None:
        with self._swap:
            if self._stopped or self.watched is not watched:
                return
            self._unwanted = threading.Event()
            self._planner.submit(self._add_scan, watched, self._unwanted)

    def _add_scan(self, watched: CompiledBundle, unwanted: threading.Event) -> None:
        try:
            scanned = _scanned(watched.rules, unwanted)
        except (RuleErrors, MatcherDisagreement, HelperFailed, OSError) as error:
            if not unwanted.is_set():
                _log.error("bundle %s matches without its scan, which is slower: %s", watched.hash, error)
            return
        with self._swap:
            if self.watched is watched:
                self.watched = replace(watched, rules=scanned)


def plan_for(rules: tuple[Rule, ...]) -> PrefilterPlan:
    """The tested prefilter plan for these rules. It lowers the priority of the process that calls it.

    Raises as `compile_rules`.
    """
    os.nice(_NICENESS)
    plan = compile_rules(rules, known=shipped_plan()).plan
    if plan is None:
        raise AssertionError("rules that are compiled with a scan have a plan")
    return plan


def _watched(content: Content) -> CompiledBundle:
    return CompiledBundle(compile_rules(content.rules, scan=False), content.hash, content.any_line)


def _scanned(rules: RuleSet, unwanted: threading.Event) -> RuleSet:
    if unwanted.is_set():
        raise HelperFailed("the plan is not needed any more")
    return rules.with_plan(HelperProcess().ask(unwanted, plan_for, rules.rules))
