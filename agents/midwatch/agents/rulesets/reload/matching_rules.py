"""Shell: the rules that a match worker matches by, swapped as a whole while it works.

A bundle is compiled once, without its scan, and is in force at once: that takes a fraction of a second. The
scan finds the same, faster. A helper process plans it for seconds of a core, so it is planned only for a
bundle that has matched much text.
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
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.matching.hits import MatcherDisagreement
from midwatch.rules.model import Rule
from midwatch.rules.prefilter.plan import PrefilterPlan
from midwatch.streams.errors import NewerRecord

PLAN_AFTER = 64 << 20
"""Bytes of records that a bundle matches before its scan is planned. The plan costs as much of a core as it
saves on some 600 MB of noise, and on ten times as much of other logs."""
_NICENESS = 10
_log = logging.getLogger(__name__)


class MatchingRules:
    """`watched` is replaced, never changed: who reads it once per chunk matches the chunk by one version.

    Made with the rules to begin with; raises RuleErrors where these do not compile.
    """

    def __init__(self, content: Content) -> None:
        self._swap = threading.Lock()
        self._planner = ThreadPoolExecutor(1, "rules-plan")
        self._over = False
        self._unwanted = threading.Event()
        """Set once nobody wants the plan that is being made."""
        self._matched = 0
        self._matched_by = content.hash
        self.watched = _watched(content)

    def take(self, content: Content) -> None:
        """From now on match by these. Raises NewerRecord, and keeps the others, if that cannot be."""
        try:
            watched = _watched(content)
        except RuleErrors as error:
            raise NewerRecord(f"the rules of bundle {content.hash} do not compile here: {error}") from error
        with self._swap:
            self.watched = watched
            self._unwanted.set()

    def watched_for(self, size: int) -> CompiledBundle:
        """The rules for a record of so many bytes. To be called by one thread, once a record."""
        watched = self.watched
        if watched.hash != self._matched_by:
            self._matched, self._matched_by = 0, watched.hash
        before, self._matched = self._matched, self._matched + size
        if before < PLAN_AFTER <= self._matched and watched.rules.plan is None:
            self._begin_plan(watched)
        return watched

    def stop(self) -> None:
        """Returns when nothing is planned any more: a process that ends meanwhile is aborted by RE2."""
        with self._swap:
            self._over = True
            self._unwanted.set()
        self._planner.shutdown()

    def _begin_plan(self, watched: CompiledBundle) -> None:
        with self._swap:
            if self._over or self.watched is not watched:
                return
            self._unwanted = threading.Event()
            self._planner.submit(self._add_scan, watched, self._unwanted)

    def _add_scan(self, watched: CompiledBundle, unwanted: threading.Event) -> None:
        try:
            scanned = _scanned(watched.rules, unwanted)
        except (RuleErrors, MatcherDisagreement, HelperFailed, OSError) as error:
            if not unwanted.is_set():
                _log.error("bundle %s is matched as before, which is slower: %s", watched.hash, error)
            return
        with self._swap:
            if self.watched is watched:
                self.watched = replace(watched, rules=scanned)


def plan_for(rules: tuple[Rule, ...]) -> PrefilterPlan:
    """The prefilter plan for these rules, tested, by a process that stands back behind the watch itself.

    Raises as `compile_rules`.
    """
    os.nice(_NICENESS)
    plan = compile_rules(rules).plan
    if plan is None:
        raise AssertionError("a scan was asked for")
    return plan


def _watched(content: Content) -> CompiledBundle:
    return CompiledBundle(compile_rules(content.rules, scan=False), content.hash, content.any_line)


def _scanned(rules: RuleSet, unwanted: threading.Event) -> RuleSet:
    if unwanted.is_set():
        raise HelperFailed("the plan is not wanted any more")
    return rules.with_plan(HelperProcess().ask(unwanted, plan_for, rules.rules))
