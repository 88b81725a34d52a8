"""What the topic `rules` says, for people: which bundle is in force, and what was refused since. Shell."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from midwatch.agents.activity import moment
from midwatch.agents.rulesets.reload.topic import CurrentBundle, RulesTopic
from midwatch.streams.records import RefusedRules, RuleBundle
from midwatch.streams.services.reachable import kafka_log
from midwatch.streams.services.topic_admin import check_topics
from midwatch.streams.settings.schema import Settings
from midwatch.streams.worker.refusals import one_line


@dataclass(frozen=True, slots=True)
class RulesStatus:
    """`standing` and `record` None: nothing is in force yet."""

    standing: CurrentBundle | None
    record: RuleBundle | None
    refused: RefusedRules | None

    def line(self) -> str:
        """Which bundle is in force, and since when."""
        if self.standing is None or self.record is None:
            return "no bundle is in force yet: the first match worker makes one of its rule files"
        said = self.standing.said
        how = "pushed" if said.by == "push" else "read from files"
        return (
            f"bundle {said.bundle[:12]} is in force, {how} by {said.who} at {moment(said.at_ms)}: "
            f"{len(self.record.rules)} rules, {len(self.record.policies)} policies"
        )

    def warning(self) -> str:
        """What was refused since, and that the last good one stays; "" if nothing was."""
        if self.refused is None:
            return ""
        what = "a push" if self.refused.by == "push" else "an edit of rule files"
        stays = f"bundle {self.standing.said.bundle[:12]} stays" if self.standing else "nothing is in force"
        errors = "; ".join(one_line(error) for error in self.refused.errors)
        return f"{what} by {self.refused.who} at {moment(self.refused.at_ms)} was refused, {stays}: {errors}"

    def plain(self) -> dict[str, Any]:
        """The same as JSON can hold it."""
        said = self.standing.said if self.standing else None
        body: dict[str, Any] = {
            "bundle": said.bundle if said else None,
            "by": said.by if said else None,
            "who": said.who if said else None,
            "at_ms": said.at_ms if said else None,
            "files": list(said.files) if said else [],
            "refused": None,
        }
        if (refused := self.refused) is not None:
            body["refused"] = {
                "by": refused.by,
                "who": refused.who,
                "at_ms": refused.at_ms,
                "errors": list(refused.errors),
            }
        return body


def ask(settings: Settings) -> RulesStatus:
    """What the topic says now. Raises ServiceUnreachable, TopicMismatch."""
    check_topics(settings)
    with kafka_log():
        topic = RulesTopic(settings)
        try:
            topic.read_to_end()
            current = topic.current
            record = topic.record(current.said.bundle) if current else None
            return RulesStatus(current, record, topic.refused)
        finally:
            topic.close()
