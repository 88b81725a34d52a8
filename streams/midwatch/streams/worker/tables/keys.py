"""Names of the Redis keys of one table. The braces keep a partition's keys in one slot of a cluster.

`mw:{<group>/<topic>/<partition>}` then `:off` (offset and nonce), `:out` (outbox), `:s:<key>` (a hash).
"""

from __future__ import annotations


def prefix(group: str, topic: str, partition: int) -> bytes:
    return f"mw:{{{group}/{topic}/{partition}}}".encode()


def offset_key(group: str, topic: str, partition: int) -> bytes:
    """Holds `<offset> <nonce>`: the last input that is part of the state, and who wrote it."""
    return prefix(group, topic, partition) + b":off"


def outbox_key(group: str, topic: str, partition: int) -> bytes:
    """A stream of records that the state has sent and Kafka has not yet acknowledged."""
    return prefix(group, topic, partition) + b":out"


def state_key(group: str, topic: str, partition: int, key: bytes) -> bytes:
    """A hash with the fields of the state under `key`."""
    return prefix(group, topic, partition) + b":s:" + key
