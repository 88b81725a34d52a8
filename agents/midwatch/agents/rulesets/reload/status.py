"""Shell: reports from the topic `rules` which bundle is in force, and which edit was refused since."""

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
    """The bundle in force and its record, both None before the first. `refused`: the refusal since then."""

    current: CurrentBundle | None
    record: RuleBundle | None
    refused: RefusedRules | None

    def line(self) -> str:
        """Which bundle is in force, and since when."""
        if self.current is None or self.record is None:
            return "no bundle is in force yet: the first match worker makes one from its rule files"
        in_force = self.current.in_force
        how = "pushed" if in_force.by == "push" else "read from files"
        return (
            f"bundle {in_force.bundle[:12]} is in force, "
            f"{how} by {in_force.who} at {moment(in_force.at_ms)}: "
            f"{len(self.record.rules)} rules, {len(self.record.policies)} policies"
        )

    def warning(self) -> str:
        """The edit or push that was refused since, and the bundle that stays in force; "" if none was."""
        if self.refused is None:
            return ""
        what = "a push" if self.refused.by == "push" else "an edit of rule files"
        stays = f"bundle {self.current.in_force.bundle[:12]} stays" if self.current else "nothing is in force"
        errors = "; ".join(one_line(error) for error in self.refused.errors)
        return f"{what} by {self.refused.who} at {moment(self.refused.at_ms)} was refused, {stays}: {errors}"

    def plain(self) -> dict[str, Any]:
        """The status as a JSON object."""
        in_force = self.current.in_force if self.current else None
        body: dict[str, Any] = {
            "bundle": in_force.bundle if in_force else None,
            "by": in_force.by if in_force else None,
            "who": in_force.who if in_force else None,
            "at_ms": in_force.at_ms if in_force else None,
            "files": list(in_force.files) if in_force else [],
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
    """The status that the topic holds now. Raises ServiceUnreachable, TopicMismatch."""
    check_topics(settings)
    with kafka_log():
        topic = RulesTopic(settings)
        try:
            topic.read_to_end()
            current = topic.current
            record = topic.record(current.in_force.bundle) if current else None
            return RulesStatus(current, record, topic.refused)
        finally:
            topic.close()
