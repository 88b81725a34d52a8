"""The match agent: runs the rules on chunks of `logs`, and sends hits and heartbeats to `events`. Stateless.

It sends in the order of `logs`, so a heartbeat never overtakes the lines that it vouches for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any, NoReturn

from midwatch.agents.match.chunk_hits import match
from midwatch.agents.match.metrics import MatchMetrics
from midwatch.agents.match.record_size import encoded
from midwatch.agents.rulesets.bundles import CompiledBundle, rules_of
from midwatch.agents.rulesets.reload.edits import EditWatch, begin
from midwatch.agents.rulesets.reload.follower import Follower
from midwatch.agents.rulesets.reload.matching_rules import MatchingRules
from midwatch.streams.errors import ForeignLine, MalformedRecord, MisdirectedRecord
from midwatch.streams.lines.foreign import ForeignReader, is_foreign, reader
from midwatch.streams.records import Chunk, Heartbeat, codec
from midwatch.streams.records.identity import message_key
from midwatch.streams.services.topic_admin import check_topics
from midwatch.streams.settings.schema import Settings
from midwatch.streams.worker.app import App, create_app
from midwatch.streams.worker.fold import Message, Send
from midwatch.streams.worker.readiness import ready_file
from midwatch.streams.worker.running import run as run_app
from midwatch.streams.worker.stateless import stateless_agent

_log = logging.getLogger(__name__)
_BUFFER = 256  # chunks of up to 256 KiB each


def handle(
    message: Message,
    watched: CompiledBundle,
    events: str,
    foreign: ForeignReader | None = None,
    metrics: MatchMetrics | None = None,
) -> tuple[Send, ...]:
    """Turn one record of `logs` into at most one record of `events`, under the key of its job."""
    record = _read(message, foreign)
    key = record.origin.job.encode()
    if isinstance(record, Heartbeat):
        return (Send(events, key, codec.encode(replace(record, logged_ms=message.timestamp_ms))),)
    hits = match(record, watched.rules, watched.hash, message.timestamp_ms, any_line=watched.any_line)
    if metrics is not None:
        metrics.matched(record, hits, watched)
    return () if hits is None else (Send(events, key, encoded(hits)),)


def _read(message: Message, foreign: ForeignReader | None) -> Chunk | Heartbeat:
    if message.value is None:
        raise MalformedRecord("a record without a value", where="logs")
    if is_foreign(message.value, message.headers):
        if foreign is None:
            raise ForeignLine(
                "a JSON line of another shipper, and the settings name no such shipper",
                where="logs",
                remedy="set foreign.shipper to vector, fluent-bit, filebeat or rsyslog",
            )
        return foreign.chunk(message)
    record = codec.decode_log(message.value, message.headers)
    origin = record.origin
    if message.key != message_key(origin.job, origin.node):
        raise MisdirectedRecord(
            f"a message of {origin.job} on {origin.node} under the key {(message.key or b'')[:300]!r}",
            where="logs",
            remedy="make the shipper use the key of its own job and node; match reads no other key",
        )
    return record


def build(settings: Settings, watched: Callable[[int], CompiledBundle] | None = None) -> App:
    """The app of one match worker.

    `watched` gives the bundle for each record, from the record's size in bytes; None: the settings' rules.
    """
    foreign, topics = reader(settings.foreign, settings.cluster), settings.topic_names
    bundle_for = watched or partial(_same, rules_of(settings))
    app = create_app(settings, f"{settings.topics.prefix}.match", buffer=_BUFFER)
    metrics = MatchMetrics(settings.telemetry, app.telemetry.meter) if app.telemetry is not None else None

    def fold(message: Message) -> tuple[Send, ...]:
        return handle(message, bundle_for(len(message.value or b"")), topics.events, foreign, metrics)

    stateless_agent(app, fold, topic=topics.logs)
    return app


def run(settings: Settings) -> NoReturn:
    """Run until SIGTERM. It renews its readiness file after every rebalance.

    It matches by the bundle in force in the topic `rules`, and takes the next bundle while it works. It puts
    its user files in force at the first start, and after every edit.
    """
    check_topics(settings)
    begun = begin(settings)
    content = begun.content
    rules = MatchingRules(content)
    _log.info("bundle %s is in force: %d rules", content.hash, len(content.rules))
    app = build(settings, rules.watched_for)
    follower = Follower(settings, app.counters, rules.take, partial(write_dead_letter, settings))
    follower.begin(begun.current, content)
    edits = EditWatch(settings, follower, begun)
    follower.start()
    edits.start()
    try:
        run_app(app, ready_file=ready_file(settings.state_directory, "match"), topics_checked=True)
    finally:
        edits.stop()
        follower.stop()
        rules.stop()


def write_dead_letter(settings: Settings, message: Any, error: Exception) -> None:
    """Match alone writes dead letters for the topic `rules`, which every worker reads."""
    from midwatch.agents.reporter import Reporter, received

    with closing(Reporter(settings)) as reporter:
        reporter.dead(received(message), error)


def _same(watched: CompiledBundle, _size: int) -> CompiledBundle:
    return watched
