"""We look for a key where a producer puts it."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from kafka.partitioner.default import DefaultPartitioner

from midwatch.streams.services.partitioner import partition_of


@dataclass
class Cluster:
    """What the producer's partitioner asks of its cluster: the topic's partitions."""

    count: int

    def topics(self) -> set[str]:
        return {"t"}

    def partitions_for_topic(self, _topic: str) -> set[int]:
        return set(range(self.count))

    available_partitions_for_topic = partitions_for_topic


@pytest.mark.parametrize("count", [1, 3, 8, 1000])
@pytest.mark.parametrize("key", [b"", b"a", b"local:ann/r", b"slurm:bob/train/7", bytes(range(256))])
def test_a_key_lies_where_the_producer_puts_it(key: bytes, count: int) -> None:
    assert partition_of(key, count) == DefaultPartitioner().partition(
        "t", None, key, None, b"", Cluster(count)
    )


def test_a_hash_below_zero_has_a_partition_as_java_gives_it() -> None:
    assert partition_of(b"21", 2**31) == -973932308 & 0x7FFFFFFF
