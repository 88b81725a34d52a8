"""Shell: the rules that a match worker matches by, swapped as a whole while it works.

A bundle whose literals were chosen before is in force as soon as it is compiled. Any other is in force
without its scan, which finds the same; the scan, which makes it fast, takes seconds of a core and follows.
Once enough lines have gone by, literals are chosen anew by these, and kept for the next start.
"""

from __future__ import annotations

import logging
import os
import threading
import time

from midwatch.agents.bundles import Watched
from midwatch.agents.reload.aside import Aside, AsideFailed
from midwatch.agents.reload.content import Content
from midwatch.agents.reload.kept_choices import KeptChoices
from midwatch.rules.choice import Choice
from midwatch.rules.compiler import RuleSet, compile_rules
from midwatch.rules.errors import RuleErrors
from midwatch.rules.hits import MatcherDisagreement
from midwatch.rules.learning import PassingLines, better_choice, choice_for
from midwatch.rules.model import Rule
from midwatch.streams.errors import NewerRecord

_LONGEST_S = 15.0
_QUIET_S = 1.0
"""So long a bundle has to be in force before its scan is worth the seconds of a core that it costs."""
_PATIENT = 10
"""How far the choice of literals stands back behind the watch itself, as a niceness."""
_log = logging.getLogger(__name__)


class MatchingRules:
    """`watched` is replaced, never changed: who reads it once per chunk matches the chunk by one version.

    Made with the rules to begin with; raises RuleErrors where these do not compile.
    """

    def __init__(self, content: Content, kept: KeptChoices) -> None:
        self._kept = kept
        self._passing = PassingLines()
        self._swap = threading.Lock()
        self._work = threading.Event()
        self._over = False
        self._in_vain = threading.Event()
        """Set when nobody wants what is being chosen any more."""
        self._put(self._at_once(content), content)
        self._scans = threading.Thread(target=self._make_fast, name="rules-scan", daemon=True)
        self._scans.start()

    def take(self, content: Content) -> None:
        """From now on match by these. Raises NewerRecord, and keeps the others, if that cannot be."""
        try:
            compiled = self._at_once(content)
        except (RuleErrors, MatcherDisagreement) as error:
            raise NewerRecord(f"the rules of bundle {content.hash} do not compile here: {error}") from error
        with self._swap:
            self._put(compiled, content)

    def heed(self, text: bytes) -> None:
        """Lines that are matched: the worker learns from them. To be called by one thread."""
        if self._passing.take(text):
            self._work.set()

    def stop(self) -> None:
        """Returns when nothing is compiled any more: a process that ends meanwhile is aborted by RE2."""
        with self._swap:
            self._over = True
            self._in_vain.set()
        self._work.set()
        self._scans.join(_LONGEST_S)

    def _at_once(self, content: Content) -> RuleSet:
        known = self._kept.read(content.rules)
        return compile_rules(content.rules, choice=known, scan=known is not None)

    def _put(self, compiled: RuleSet, content: Content) -> None:
        self.watched = Watched(compiled, content.hash, content.any_line)
        self._wanted = content
        self._in_vain.set()
        if compiled.choice is None:
            self._work.set()

    def _make_fast(self) -> None:
        while self._work.wait() and not self._over:
            self._work.clear()
            if self._work.wait(_QUIET_S):
                continue  # the next one is here already
            with self._swap:
                if self._over:
                    return
                content, in_force, self._in_vain = self._wanted, self.watched.rules, threading.Event()
            try:
                compiled = self._scanned(content, in_force.choice)
            except (RuleErrors, MatcherDisagreement, AsideFailed, OSError) as error:
                if not self._in_vain.is_set():
                    told = "bundle %s is matched as before, which is slower: %s"
                    _log.error(told, content.hash, error)
                continue
            with self._swap:
                if self._wanted is content and compiled is not None:
                    self.watched = Watched(compiled, content.hash, content.any_line)

    def _scanned(self, content: Content, in_force: Choice | None) -> RuleSet | None:
        """With literals chosen for the first time or by what has gone by; None if those in force are best."""
        known = self._kept.read(content.rules) if in_force is None else None
        if known is None:
            passed = self._passing.chunks()
            known = Aside().ask(self._in_vain, choose, content.rules, in_force, passed)
            if known == in_force:
                return None
            self._kept.write(known)
        return compile_rules(content.rules, choice=known)


def choose(rules: tuple[Rule, ...], in_force: Choice | None, passed: tuple[bytes, ...]) -> Choice:
    """The literals to look for, chosen and tested in a process of its own. Raises as `compile_rules`."""
    os.nice(_PATIENT)
    if in_force is None:
        return choice_for(rules, passed)
    return better_choice(rules, in_force, passed, time.thread_time)
