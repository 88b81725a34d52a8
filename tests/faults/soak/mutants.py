"""Two wrong tables. Each passes every test without faults; the soak must convict both."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from midwatch.streams.worker.app import App
from midwatch.streams.worker.counters import Counters
from midwatch.streams.worker.stateful import StatefulAgent
from midwatch.streams.worker.tables import script
from midwatch.streams.worker.tables.batch import Batch
from midwatch.streams.worker.tables.positions import Bounds, Position
from midwatch.streams.worker.tables.redis_link import RedisLink
from midwatch.streams.worker.tables.table import RedisTable


def _source_without(*checks: bytes) -> bytes:
    """The commit script with these checks never true. That a stream refuses old ids, which fences a little
    by accident, is overlooked too.
    """
    source = script.SOURCE.replace(b"redis.call('XADD'", b"redis.pcall('XADD'")
    for check in checks:
        assert check in source
        source = source.replace(check, b"if false then")
    return source


NOT_BACKWARDS = b"if tonumber(ARGV[2]) <= tonumber(offset) then"
THE_FENCE = b"if offset ~= ARGV[1] then"


class CommitsBeforeTheWrite(RedisTable):
    """Acknowledges a batch when it was read, as a plain consumer with auto-commit does: its offset goes to
    Kafka first, the script comes after it, and a restart reads on at Kafka's commit.
    """

    app: App
    script_source = _source_without(NOT_BACKWARDS)

    def __init__(self, link: RedisLink, group: str, topic: str, counters: Counters) -> None:
        super().__init__(link, group, topic, counters)
        self.in_redis: dict[int, int] = {}

    async def assign(self, bounds: Mapping[int, Bounds]) -> dict[int, Position]:
        positions = await super().assign(bounds)
        for partition, position in positions.items():
            committed = bounds[partition].committed
            next_offset = bounds[partition].log_start if committed is None else committed
            self.in_redis[partition] = self.offsets[partition]
            self.offsets[partition] = next_offset - 1
            positions[partition] = replace(position, next_offset=next_offset)
        return positions

    def committable(self, partition: int) -> int | None:
        return self.offsets[partition] + 1 if partition in self.offsets else None

    async def commit(self, batches: Mapping[int, Batch]) -> set[int]:
        ends: dict[int, int] = {}
        for partition, batch in batches.items():
            if (write := batch.write()) is not None:
                batch.expected = self.in_redis[partition]
                ends[partition] = write.offset
                if partition in self.offsets:
                    self.offsets[partition] = write.offset
        await self.app.consumer.commit()
        landed = await super().commit(batches)
        for partition in landed:
            self.in_redis[partition] = ends[partition]
        return landed


class WithoutTheFence(RedisTable):
    """Its script writes whatever it is given, without looking at the offset that is there."""

    script_source = _source_without(THE_FENCE, NOT_BACKWARDS)


def _nothing(app: App) -> None:
    """The honest worker needs no preparation."""


def _give_consumer(app: App) -> None:
    for reader in app.readers.values():
        if isinstance(reader, StatefulAgent) and isinstance(reader.table, CommitsBeforeTheWrite):
            reader.table.app = app


@dataclass(frozen=True)
class Variant:
    """A kind of worker: its table class, and what it needs besides."""

    table: type[RedisTable] = RedisTable
    prepare: Callable[[App], None] = _nothing


VARIANTS = {
    "honest": Variant(),
    "commits-before-the-write": Variant(CommitsBeforeTheWrite, _give_consumer),
    "without-the-fence": Variant(WithoutTheFence),
}
