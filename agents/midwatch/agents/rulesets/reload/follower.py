"""Shell: a thread that follows the topic `rules`, and has at hand what was asked for by its hash."""

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
"""Bundles at hand; one that is asked for again is read again."""
_log = logging.getLogger(__name__)

Take = Callable[[Content], None]


class Follower(threading.Thread):
    """Follows the topic from its beginning. Trouble with Kafka only makes it try again.

    `standing` is the bundle in force, once it was read and `take` has made use of it. A bundle that cannot
    be read or used changes nothing: the last good one stays, which is logged and counted. So is a record
    that cannot be read, once in the life of a process; `dead_letter` is told of it then.
    """

    def __init__(
        self,
        settings: Settings,
        counters: Counters,
        take: Take | None = None,
        dead_letter: DeadLetterWriter | None = None,
    ) -> None:
        super().__init__(name="rules", daemon=True)
        extensions_of(settings.extensions)  # what is wrong with them is told before the start
        self.standing: CurrentBundle | None = None
        self.contents: dict[str, Content] = {}
        self._settings = settings
        self._counters = counters
        self._take = take
        self._write_dead_letter = dead_letter
        self._dead_lettered: set[int] = set()
        self._refused: RefusedRules | None = None
        self._unusable = -1
        self._keeping = threading.Lock()
        self._over = threading.Event()

    def begin(self, standing: CurrentBundle, content: Content) -> None:
        """What was read and taken before the start; call it before `start`."""
        self.standing = standing
        self._keep(content)

    def stop(self) -> None:
        """Returns when nothing more will be taken."""
        self._over.set()
        if self.is_alive():
            self.join(5)

    async def fetch(self, hash_: str) -> None:
        """Put a bundle into `contents`. Raises ServiceUnreachable where it does not appear, NewerRecord."""
        if hash_ not in self.contents:
            self._keep(await asyncio.to_thread(fetch_bundle, self._settings, hash_))

    def run(self) -> None:
        while not self._over.is_set():
            try:
                topic = RulesTopic(self._settings, self._dead_letter)
                try:
                    self._follow(topic)
                finally:
                    topic.close()
            except (OSError, MidwatchError) as error:
                _log.warning("the topic of rules cannot be read, and is asked again: %s", error)
            self._over.wait(_AGAIN_S)

    def _follow(self, topic: RulesTopic) -> None:
        topic.read_to_end()
        while not self._over.is_set():
            current = topic.current
            if current is not None and self._is_new(current):
                self._change(topic, current)
            if topic.refused is not None and topic.refused != self._refused:
                self._tell_refused(topic.refused)
            topic.read_on(_WAIT_MS)

    def _is_new(self, current: CurrentBundle) -> bool:
        known = self.standing.offset if self.standing else -1
        return current.offset > max(known, self._unusable)

    def _change(self, topic: RulesTopic, current: CurrentBundle) -> None:
        said, before = current.said, self.standing
        if before is None or said.bundle != before.said.bundle:
            try:
                content = self.contents.get(said.bundle) or topic.bundle(said.bundle)
                if self._take is not None:
                    self._take(content)
            except NewerRecord as error:
                self._counters.rules_refused += 1
                stays = before.said.bundle if before else "none"
                _log.error("bundle %s stays in force: %s", stays, error)
                self._unusable = current.offset
                return
            self._keep(content)
            self._counters.rules_taken += before is not None
            _log.info(
                "bundle %s is in force, %s by %s: %d rules",
                *(said.bundle, "pushed" if said.by == "push" else "read from files", said.who),
                len(content.rules),
            )
        self.standing = current

    def _dead_letter(self, message: Any, error: Exception) -> None:
        if (
            message.offset in self._dead_lettered
        ):  # after trouble with Kafka the topic is read from its beginning
            return
        if self._write_dead_letter is not None:
            self._write_dead_letter(message, error)
        self._dead_lettered.add(message.offset)
        refused = refusal(error)
        self._counters.refuse(message.topic, refused.kind)
        stays = self.standing.said.bundle if self.standing else "none"
        place = f"{message.topic}/{message.partition}/{message.offset}"
        _log.error("bundle %s stays in force: %s cannot be read: %s", stays, place, refused.reason)

    def _tell_refused(self, refused: RefusedRules) -> None:
        self._refused = refused
        self._counters.rules_refused += 1
        stays = self.standing.said.bundle if self.standing else "none"
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
