"""Names of the Redis keys of one table. The braces put a partition's keys into one slot of a cluster.

`mw:{<group>/<topic>/<partition>}` then `:off` (offset and nonce), `:out` (outbox), `:s:<key>` (a hash).
"""

from __future__ import annotations


def prefix(group: str, topic: str, partition: int) -> bytes:
    return f"mw:{{{group}/{topic}/{partition}}}".encode()


def offset_key(group: str, topic: str, partition: int) -> bytes:
    """The key of `<offset> <nonce>`: the last input in the state, and the write that put it there."""
    return prefix(group, topic, partition) + b":off"


def outbox_key(group: str, topic: str, partition: int) -> bytes:
    """The key of a stream of outgoing records that Kafka has not yet acknowledged."""
    return prefix(group, topic, partition) + b":out"


def state_key(group: str, topic: str, partition: int, key: bytes) -> bytes:
    """The key of a hash with the fields of the state under `key`."""
    return prefix(group, topic, partition) + b":s:" + key
