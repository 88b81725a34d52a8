"""Makes the topics, and checks the properties that a fold relies on.

The check runs before any worker starts, because Faust waits silently for a missing topic. It covers only
properties that would make state wrong. These are the number of partitions, the broker's append time, and no
compaction of a folded topic. Retention is the operator's decision.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from midwatch.streams.errors import ConfigurationError, ServiceUnreachable
from midwatch.streams.services.reachable import check_kafka, kafka_log, kafka_options
from midwatch.streams.settings.schema import Settings
from midwatch.streams.topics import TopicSpec

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient

_REQUEST_MS = 10_000
_CHECKED_CONFIG = {
    "cleanup.policy": "state is a fold of every record",
    "message.timestamp.type": "`now` is the broker's append time",
}


class TopicMissing(ServiceUnreachable):
    """A topic that must exist does not."""


class TopicMismatch(ConfigurationError):
    """A topic exists with the wrong number of partitions or wrong settings."""


def make_topics(settings: Settings) -> tuple[str, ...]:
    """Makes the missing topics and checks all. Returns the names of the topics it made.

    Raises:
        TopicMismatch: a topic has a wrong number of partitions, or settings that break the fold.
        ServiceUnreachable: Kafka does not answer, or refuses to make topics.
    """
    specs = settings.topic_specifications()
    with _admin(settings) as admin:
        existing = _partitions(admin, specs)
        missing = {
            spec.name: {
                "num_partitions": spec.partitions,
                "replication_factor": settings.topics.replication,
                "configs": spec.config(),
            }
            for spec in specs
            if spec.name not in existing
        }
        if missing:
            _make(admin, missing, settings)
        _check(admin, specs, settings)
    return tuple(missing)


def _make(admin: KafkaAdminClient, missing: Mapping[str, Mapping[str, Any]], settings: Settings) -> None:
    from kafka.errors import KafkaError, TopicAlreadyExistsError

    try:
        # Without raise_errors the answer holds the reason for each topic. With it, one long text covers all.
        answer = admin.create_topics(missing, timeout_ms=_REQUEST_MS, raise_errors=False)
        made_elsewhere = TopicAlreadyExistsError.errno
        refused = [t for t in answer["topics"] if t["error_code"] not in (0, made_elsewhere)]
        if refused:
            raise _cannot_make(missing, settings, refused[0]["error_message"] or refused[0]["error_code"])
        admin.wait_for_topics(list(missing), timeout_ms=_REQUEST_MS)
    except KafkaError as error:
        raise _cannot_make(missing, settings, error) from error


def _cannot_make(names: Iterable[str], settings: Settings, reason: object) -> ServiceUnreachable:
    return ServiceUnreachable(
        f"the topics {', '.join(names)} cannot be made: {reason}",
        where=", ".join(settings.kafka.bootstrap),
        remedy="let this user make topics, or make them with these names beforehand; "
        "topics.replication may not exceed the number of brokers",
    )


def check_topics(settings: Settings) -> None:
    """Returns when every topic exists and has the properties that a fold relies on.

    Raises:
        TopicMissing, TopicMismatch, ServiceUnreachable
    """
    with _admin(settings) as admin:
        _check(admin, settings.topic_specifications(), settings)


def _check(admin: KafkaAdminClient, specs: Iterable[TopicSpec], settings: Settings) -> None:
    specs = tuple(specs)
    existing = _partitions(admin, specs)
    where = ", ".join(settings.kafka.bootstrap)
    if absent := [spec.name for spec in specs if spec.name not in existing]:
        raise TopicMissing(
            f"missing topics: {', '.join(absent)}",
            where=where,
            remedy="`midwatch up` makes them; topics.prefix must be the same everywhere",
        )
    configs = _configs(admin, specs)
    for spec in specs:
        _check_partitions(spec, existing[spec.name], settings, where)
        _check_config(spec, configs.get(spec.name, {}), where)


def _check_partitions(spec: TopicSpec, count: int, settings: Settings, where: str) -> None:
    if count == spec.partitions:
        return
    short = spec.name.removeprefix(f"{settings.topics.prefix}.")
    raise TopicMismatch(
        f"the topic {spec.name} has {count} partitions, and the settings say {spec.partitions}",
        where=where,
        remedy=f"set topics.partitions.{short}: {count}; they are fixed once a topic is made"
        if short != "rules"
        else "delete the topic; midwatch makes it again with one partition",
    )


def _check_config(spec: TopicSpec, found: Mapping[str, str], where: str) -> None:
    required = {"message.timestamp.type": "CreateTime"} | spec.config()
    for name, reason in _CHECKED_CONFIG.items():
        matters = name == "cleanup.policy" or spec.append_time
        if matters and name in found and found[name] != required[name]:
            raise TopicMismatch(
                f"the topic {spec.name} has {name}={found[name]}, but it must be {required[name]}: {reason}",
                where=where,
                remedy=f"kafka-configs.sh --alter --topic {spec.name} --add-config {name}={required[name]}, "
                "or choose another topics.prefix",
            )


def _partitions(admin: KafkaAdminClient, specs: Iterable[TopicSpec]) -> dict[str, int]:
    """The number of partitions of those topics that exist."""
    described = admin.describe_topics([spec.name for spec in specs])
    return {t["name"]: len(t["partitions"]) for t in described if t["error_code"] == 0}


def _configs(admin: KafkaAdminClient, specs: Iterable[TopicSpec]) -> dict[str, dict[str, str]]:
    """The checked settings by topic. A topic is absent if Kafka does not show its settings."""
    from kafka.admin import ConfigResource, ConfigResourceType
    from kafka.errors import KafkaError

    names = dict.fromkeys(_CHECKED_CONFIG)
    resources = [ConfigResource(ConfigResourceType.TOPIC, spec.name, names) for spec in specs]
    try:
        answer: dict[str, Any] = admin.describe_configs(resources, config_filter="all")
    except KafkaError:
        return {}
    return {
        topic: {name: str(entry["value"]) for name, entry in entries.items()}
        for topic, entries in answer.get("topic", {}).items()
    }


@contextlib.contextmanager
def _admin(settings: Settings) -> Iterator[KafkaAdminClient]:
    from kafka.admin import KafkaAdminClient
    from kafka.errors import KafkaError

    check_kafka(settings)
    with kafka_log():
        try:
            admin = KafkaAdminClient(
                **kafka_options(settings), bootstrap_timeout_ms=_REQUEST_MS, request_timeout_ms=_REQUEST_MS
            )
            try:
                yield admin
            finally:
                admin.close()
        except KafkaError as error:
            raise ServiceUnreachable(
                f"Kafka answered and then failed: {error}",
                where=", ".join(settings.kafka.bootstrap),
                remedy="look into the broker's log, then try again",
            ) from error
