"""The partition of a key by Kafka's default partitioner.

This module loads kafka-python, so commands that may not need it import it late.
"""

from __future__ import annotations

from kafka.partitioner.default import murmur2


def partition_of(key: bytes, count: int) -> int:
    """The partition, out of `count`, that Java's clients and kafka-python choose for the key.

    librdkafka chooses another one unless its `partitioner` is `murmur2_random`.
    """
    return int((murmur2(key) & 0x7FFFFFFF) % count)
