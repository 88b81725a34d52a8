"""Shell: a thread follows the topic `rules`, and keeps the bundles that were fetched by their hash."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import Any

from midwatch.agents.rulesets.content import Content
from midwatch.agents.rulesets.extensions import extensions_of
from midwatch.agents.rulesets.reload.topic import CurrentBundle, DeadLetterWriter, RulesTopic, fetch_bundle
from midwatch.streams.errors import MidwatchError, NewerRecord
from midwatch.streams.records import RefusedRules
from midwatch.streams.settings.schema import Settings
from midwatch.streams.worker.counters import Counters
from midwatch.streams.worker.refusals import refusal

_WAIT_MS = 500
_AGAIN_S = 1.0
_KEPT = 16
"""Bundles in memory. An older one is read again when it is needed again."""
_log = logging.getLogger(__name__)

Take = Callable[[Content], None]


class Follower(threading.Thread):
    """Follows the topic from its beginning. After an error of Kafka it tries again.

    `current` is the bundle in force, once it was read and `take` has accepted it. A bundle that cannot be
    read or used changes nothing: the last good one stays in force. The follower logs and counts it. It also
    logs and counts an unreadable record, once in the life of a process, and gives it to `dead_letter`.
    """

    def __init__(
        self,
        settings: Settings,
        counters: Counters,
        take: Take | None = None,
        dead_letter: DeadLetterWriter | None = None,
    ) -> None:
        super().__init__(name="rules", daemon=True)
        extensions_of(settings.extensions)  # a mistake in them is reported before the start
        self.current: CurrentBundle | None = None
        self.contents: dict[str, Content] = {}
        self._settings = settings
        self._counters = counters
        self._take = take
        self._write_dead_letter = dead_letter
        self._dead_lettered: set[int] = set()
        self._refused: RefusedRules | None = None
        self._unusable = -1
        self._keeping = threading.Lock()
        self._stop_requested = threading.Event()

    def begin(self, current: CurrentBundle, content: Content) -> None:
        """Sets the bundle that is in use already. Call it before `start`."""
        self.current = current
        self._keep(content)

    def stop(self) -> None:
        """Ends the thread, and waits at most 5 s for it."""
        self._stop_requested.set()
        if self.is_alive():
            self.join(5)

    async def fetch(self, hash_: str) -> None:
        """Puts a bundle into `contents`. Raises ServiceUnreachable where it does not appear, NewerRecord."""
        if hash_ not in self.contents:
            self._keep(await asyncio.to_thread(fetch_bundle, self._settings, hash_))

    def run(self) -> None:
        while not self._stop_requested.is_set():
            try:
                topic = RulesTopic(self._settings, self._dead_letter)
                try:
                    self._follow(topic)
                finally:
                    topic.close()
            except (OSError, MidwatchError) as error:
                _log.warning("the topic of rules cannot be read, and is tried again: %s", error)
            self._stop_requested.wait(_AGAIN_S)

    def _follow(self, topic: RulesTopic) -> None:
        topic.read_to_end()
        while not self._stop_requested.is_set():
            current = topic.current
            if current is not None and self._is_new(current):
                self._change(topic, current)
            if topic.refused is not None and topic.refused != self._refused:
                self._log_refused(topic.refused)
            topic.read_on(_WAIT_MS)

    def _is_new(self, current: CurrentBundle) -> bool:
        known = self.current.offset if self.current else -1
        return current.offset > max(known, self._unusable)

    def _change(self, topic: RulesTopic, current: CurrentBundle) -> None:
        in_force, before = current.in_force, self.current
        if before is None or in_force.bundle != before.in_force.bundle:
            try:
                content = self.contents.get(in_force.bundle) or topic.bundle(in_force.bundle)
                if self._take is not None:
                    self._take(content)
            except NewerRecord as error:
                self._counters.rules_refused += 1
                stays = before.in_force.bundle if before else "none"
                _log.error("bundle %s stays in force: %s", stays, error)
                self._unusable = current.offset
                return
            self._keep(content)
            self._counters.rules_taken += before is not None
            _log.info(
                "bundle %s is in force, %s by %s: %d rules",
                *(in_force.bundle, "pushed" if in_force.by == "push" else "read from files", in_force.who),
                len(content.rules),
            )
        self.current = current

    def _dead_letter(self, message: Any, error: Exception) -> None:
        # After an error of Kafka the topic is read from its beginning again.
        if message.offset in self._dead_lettered:
            return
        if self._write_dead_letter is not None:
            self._write_dead_letter(message, error)
        self._dead_lettered.add(message.offset)
        refused = refusal(error)
        self._counters.refuse(message.topic, refused.kind)
        stays = self.current.in_force.bundle if self.current else "none"
        place = f"{message.topic}/{message.partition}/{message.offset}"
        _log.error("bundle %s stays in force: %s cannot be read: %s", stays, place, refused.reason)

    def _log_refused(self, refused: RefusedRules) -> None:
        self._refused = refused
        self._counters.rules_refused += 1
        stays = self.current.in_force.bundle if self.current else "none"
        what = "a push" if refused.by == "push" else "an edit"
        _log.error(
            "bundle %s stays in force: %s by %s was refused:\n%s",
            *(stays, what, refused.who, "\n".join(refused.errors)),
        )

    def _keep(self, content: Content) -> None:
        with self._keeping:
            self.contents[content.hash] = content
            while len(self.contents) > _KEPT:
                del self.contents[next(iter(self.contents))]
