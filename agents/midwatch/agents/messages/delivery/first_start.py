"""The first start: people hear of what is decided from now on, and not of all that the topic keeps."""

from __future__ import annotations

import logging
import time

from midwatch.streams.services.kafka_client import plain_consumer
from midwatch.streams.services.reachable import kafka_log
from midwatch.streams.settings.schema import Settings

log = logging.getLogger(__name__)

RECENT_S = 900
"""What is no older than this is told at a first start too: the other workers may have begun before."""


def begin_now(settings: Settings, group: str, topic: str) -> None:
    """Commit, for partitions without a commit, the offset of `RECENT_S` ago.

    The table folds the records below a commit and mutes their sends. Call it before the worker joins the
    group. Another worker of the group may be at work: then all its partitions have a commit, and nothing is
    done.
    """
    from kafka import TopicPartition
    from kafka.structs import OffsetAndMetadata

    with kafka_log():
        consumer = plain_consumer(settings.kafka, group_id=group)
        try:
            partitions = [
                TopicPartition(topic, n) for n in sorted(consumer.partitions_for_topic(topic) or ())
            ]
            fresh = [tp for tp in partitions if consumer.committed(tp) is None]
            if not fresh:
                return
            consumer.assign(fresh)
            since_ms = int((time.time() - RECENT_S) * 1000)
            found = consumer.offsets_for_times(dict.fromkeys(fresh, since_ms))
            ends = consumer.end_offsets(fresh)
            offsets = {tp: found[tp].offset if found.get(tp) else ends[tp] for tp in fresh}
            consumer.commit({tp: OffsetAndMetadata(offset, "", -1) for tp, offset in offsets.items()})
            log.info("the first start: messages begin at %s", {tp.partition: o for tp, o in offsets.items()})
        finally:
            consumer.close()
