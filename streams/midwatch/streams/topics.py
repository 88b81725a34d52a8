"""The topics: names, partitions and retention. midwatch makes and checks them before any worker starts.

A topic's number of partitions never changes, because a job's key decides its partition for ever.
`logs`, `events` and `incidents` use the broker's append time, because a fold reads no other clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_DAY = 86_400_000


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """The specification of one topic. `retention_ms` is None for a compacted topic."""

    name: str
    partitions: int
    retention_ms: int | None
    append_time: bool = False

    def config(self) -> dict[str, str]:
        """The topic's settings under Kafka's names."""
        out = {"min.insync.replicas": "1", "max.message.bytes": "1048576"}
        if self.retention_ms is None:
            out["cleanup.policy"] = "compact"
        else:
            out |= {"cleanup.policy": "delete", "retention.ms": str(self.retention_ms)}
        if self.append_time:
            out["message.timestamp.type"] = "LogAppendTime"
        return out


@dataclass(frozen=True, slots=True)
class Topics:
    """The names of all topics. Two installations with two prefixes can share a Kafka."""

    prefix: str = "midwatch"

    @property
    def logs(self) -> str:
        return f"{self.prefix}.logs"

    @property
    def events(self) -> str:
        return f"{self.prefix}.events"

    @property
    def incidents(self) -> str:
        return f"{self.prefix}.incidents"

    @property
    def decisions(self) -> str:
        return f"{self.prefix}.decisions"

    @property
    def commands(self) -> str:
        return f"{self.prefix}.commands"

    @property
    def specs(self) -> str:
        return f"{self.prefix}.specs"

    @property
    def rules(self) -> str:
        return f"{self.prefix}.rules"

    @property
    def dead(self) -> str:
        return f"{self.prefix}.dead"

    def specifications(self, partitions: Mapping[str, int] | None = None) -> tuple[TopicSpec, ...]:
        """The specifications of all topics. `partitions` overrides counts by short name (`{"logs": 12}`)."""
        n = {"logs": 8, "events": 8, "incidents": 8, "decisions": 4, "commands": 4} | dict(partitions or {})
        return (
            TopicSpec(self.logs, n["logs"], 3 * _DAY, append_time=True),
            TopicSpec(self.events, n["events"], 21 * _DAY, append_time=True),
            TopicSpec(self.incidents, n["incidents"], 90 * _DAY, append_time=True),
            TopicSpec(self.decisions, n["decisions"], 90 * _DAY),
            TopicSpec(self.commands, n["commands"], 90 * _DAY),
            TopicSpec(self.specs, n.get("specs", 4), None),
            TopicSpec(self.rules, 1, None),
            TopicSpec(self.dead, n.get("dead", 1), 7 * _DAY),
        )
