"""The state of all owned partitions of one topic, in Redis. One batch is one script per partition."""

from __future__ import annotations

import asyncio
import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from redis import exceptions

from midwatch.streams.errors import MidwatchError
from midwatch.streams.failpoints import failpoint
from midwatch.streams.worker.counters import Counters
from midwatch.streams.worker.fold import PARTITION, Fields, Send
from midwatch.streams.worker.tables import ids, keys, script, wire
from midwatch.streams.worker.tables.batch import OWN, Batch
from midwatch.streams.worker.tables.outbox import Outbox
from midwatch.streams.worker.tables.positions import Bounds, Position, table_position
from midwatch.streams.worker.tables.redis_link import RedisLink, is_outage

CACHED_KEYS = 20_000
"""Most state keys of one partition in memory. Above it the copies are dropped and read again on demand."""


class Fenced(MidwatchError):
    """Another worker wrote a partition that this worker owns: the worker must start anew from Redis."""


class RedisTable:
    """Owned partitions, their offsets, and copies of their state.

    One task at a time: hold `lock` around a whole batch and around `assign`. Call `disown` at any moment;
    a batch in flight is then written or fenced.
    """

    script_source = script.SOURCE

    def __init__(self, link: RedisLink, group: str, topic: str, counters: Counters) -> None:
        self.topic = topic
        self.lock = asyncio.Lock()
        self.offsets: dict[int, int] = {}
        self.mute_below: dict[int, int] = {}
        self.outbox = Outbox(link, group, topic, counters)
        self._link = link
        self._group = group
        self._counters = counters
        self._me = uuid.uuid4().hex[:12].encode()
        self._batches = 0
        self._sha: str | None = None
        self._nonces: dict[int, bytes] = {}
        self._revoked: Counter[int] = Counter()
        """How often each partition was revoked."""
        self._copies: dict[int, dict[bytes, Fields]] = {}

    # -- ownership

    def disown(self, partitions: Collection[int]) -> None:
        """Drop the partitions at once, before any other step of a rebalance."""
        for partition in partitions:
            self._revoked[partition] += 1
            self.offsets.pop(partition, None)
            self.mute_below.pop(partition, None)
            self.outbox.disown(partition)

    async def assign(self, bounds: Mapping[int, Bounds]) -> dict[int, Position]:
        """Take these partitions over from Redis, and give the positions to continue at.

        A partition that is revoked before Redis answers is left out; only a later assignment can give it
        back. Copies of state are kept only if this worker made the last write. Raises AheadOfLog. Raises
        Redis' error when an outage outlasts the patience.
        """
        revoked = {partition: self._revoked[partition] for partition in bounds}
        async with self.lock:
            stored = await self._link.patiently(lambda: self._read(list(bounds)))
            positions: dict[int, Position] = {}
            for partition, (offset_text, entries, partition_state, shell_state) in stored.items():
                if self._revoked[partition] != revoked[partition]:
                    continue
                offset, nonce = script.parse_offset(offset_text)
                where = f"{self.topic}/{partition}"
                position = table_position(offset, bounds[partition], where)
                if nonce != self._nonces.get(partition):
                    self._copies.pop(partition, None)
                copies = self._copies.setdefault(partition, {})
                copies[PARTITION], copies[OWN] = partition_state, shell_state
                unpublished = [(ids.parse_entry(name), wire.unpack(fields[b"s"])) for name, fields in entries]
                self.outbox.own(partition, unpublished, published_below=position.mute_below)
                self.mute_below[partition] = position.mute_below
                self.offsets[partition] = offset
                self._counters.retention_gap += position.retention_gap
                positions[partition] = position
            return positions

    async def _read(
        self, partitions: Sequence[int]
    ) -> dict[int, tuple[bytes | None, list[tuple[bytes, dict[bytes, bytes]]], Fields, Fields]]:
        # Read the offset first: if another worker writes meanwhile, our next write is then fenced.
        pipe = self._link.client.pipeline(transaction=False)
        for p in partitions:
            pipe.get(keys.offset_key(self._group, self.topic, p))
            pipe.xrange(keys.outbox_key(self._group, self.topic, p))
            pipe.hgetall(keys.state_key(self._group, self.topic, p, PARTITION))
            pipe.hgetall(keys.state_key(self._group, self.topic, p, OWN))
        answers = await pipe.execute()
        return {p: tuple(answers[4 * i : 4 * i + 4]) for i, p in enumerate(partitions)}

    def committable(self, partition: int) -> int | None:
        """The offset to commit: all inputs below it are in the state, and their sends are in Kafka."""
        offset = self.offsets.get(partition)
        if offset is None or offset == script.NOTHING:
            return None
        unpublished = self.outbox.first_unpublished(partition)
        return offset + 1 if unpublished is None else unpublished

    # -- state

    def partition_state(self, partition: int) -> tuple[Fields, Fields]:
        """The fold's and the shell's state of an owned partition."""
        copies = self._copies[partition]
        return copies[PARTITION], copies[OWN]

    def copies(self, partition: int) -> dict[bytes, Fields]:
        """All copies of an owned partition's state. Any thread may call it."""
        return dict(self._copies.get(partition, {}))

    def cached(self, partition: int, state_keys: Collection[bytes]) -> dict[bytes, Fields]:
        """The copies of these keys; keys without a copy are left out."""
        copies = self._copies[partition]
        return {key: copies[key] for key in state_keys if key in copies}

    async def load(self, state_keys: Mapping[int, Collection[bytes]]) -> None:
        """Read the keys that have no copy yet, by partition, in one round."""
        missing = [(p, key) for p, names in state_keys.items() for key in names if key not in self._copies[p]]
        if not missing:
            return

        async def read() -> list[dict[bytes, bytes]]:
            pipe = self._link.client.pipeline(transaction=False)
            for p, key in missing:
                pipe.hgetall(keys.state_key(self._group, self.topic, p, key))
            return cast(list[dict[bytes, bytes]], await pipe.execute())

        for (p, key), fields in zip(missing, await self._link.patiently(read), strict=True):
            self._copies[p][key] = fields

    async def commit(self, batches: Mapping[int, Batch]) -> set[int]:
        """Write the batches in one round, one script each; give the partitions that were written.

        A refused write of a partition that was revoked meanwhile is dropped: its new owner does the work.
        Raises Fenced when this worker still owns the partition, and Redis' errors once the patience is spent.
        """
        self._batches += 1
        nonce = b"%s-%d" % (self._me, self._batches)
        writes = {p: write for p, batch in batches.items() if (write := batch.write()) is not None}
        landed: set[int] = set()
        failpoint("write")
        answers = await self._link.patiently(lambda: self._execute(writes, nonce))
        failpoint("written")
        for (partition, write), answer in zip(writes.items(), answers, strict=True):
            if isinstance(answer, Exception):
                self._refused(partition, write, answer)
                continue
            self._counters.duplicate_answers += answer == script.ScriptAnswer.ALREADY_WRITTEN.value.encode()
            self._landed(partition, write, batches[partition].copies(), batches[partition].outgoing, nonce)
            landed.add(partition)
        return landed

    def _refused(self, partition: int, write: script.Write, answer: Exception) -> None:
        if not str(answer).startswith(script.ScriptAnswer.FENCED.value):
            raise answer
        self._counters.fenced += 1
        if self.offsets.get(partition) == write.expected:
            raise Fenced(
                f"another worker has written this partition: {answer}",
                where=f"{self.topic}/{partition}",
                remedy="Start the worker again; it continues after the offset in Redis.",
            )
        self._copies.pop(partition, None)

    def _landed(
        self,
        partition: int,
        write: script.Write,
        changed: Mapping[bytes, Fields],
        outgoing: Sequence[tuple[ids.EntryId, Send]],
        nonce: bytes,
    ) -> None:
        self._nonces[partition] = nonce
        copies = self._copies.setdefault(partition, {})
        copies.update(changed)
        if len(copies) > CACHED_KEYS:
            self._copies[partition] = {key: copies[key] for key in (PARTITION, OWN) if key in copies}
        if partition in self.offsets:
            self.offsets[partition] = write.offset
            self.outbox.extend(partition, outgoing)

    async def _execute(self, writes: Mapping[int, script.Write], nonce: bytes) -> list[Any]:
        client = self._link.client
        if self._sha is None:
            self._sha = await client.script_load(self.script_source)
        pipe = client.pipeline(transaction=False)
        for partition, write in writes.items():
            names, values = script.arguments(self._group, self.topic, partition, write, nonce)
            # Plain evalsha: a registered script would add a round trip for SCRIPT EXISTS to each batch.
            pipe.evalsha(self._sha, len(names), *names, *values)
        answers: list[Any] = await pipe.execute(raise_on_error=False)
        for answer in answers:
            if isinstance(answer, exceptions.NoScriptError):
                self._sha = None
                raise exceptions.ConnectionError("Redis has lost the script") from answer
            if isinstance(answer, Exception) and is_outage(answer):
                raise answer
        return answers
