"""The commit script on a real server: all of a batch or nothing of it, and only on top of what was read."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
import redis

from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.worker.tables import keys, script
from midwatch.streams.worker.tables.ids import EntryId
from midwatch.streams.worker.tables.script import Write

pytestmark = pytest.mark.integration

GROUP, TOPIC, PARTITION = "detect", "events", 3


@pytest.fixture
def client(stack: Endpoints) -> Iterator[Any]:
    with redis.Redis.from_url(stack.redis_url) as connection:
        yield connection


@pytest.fixture
def group() -> str:
    return f"{GROUP}-{secrets.token_hex(4)}"


Commit = Callable[..., Any]


@pytest.fixture
def commit(client: Any, group: str) -> Commit:
    sha = client.script_load(script.SOURCE)

    def write(
        expected: int,
        offset: int,
        changed: Mapping[bytes, Mapping[bytes, bytes | None]] | None = None,
        outbox: tuple[tuple[EntryId, bytes], ...] = (),
        nonce: bytes = b"me-1",
    ) -> Any:
        batch = Write(expected, offset, changed or {}, outbox)
        names, values = script.arguments(group, TOPIC, PARTITION, batch, nonce)
        return client.evalsha(sha, len(names), *names, *values)

    return write


Look = Callable[[], tuple[bytes | None, dict[bytes, bytes], list[bytes]]]


@pytest.fixture
def look(client: Any, group: str) -> Look:
    """Offset, the job's fields, and the ids in the outbox."""

    def read() -> tuple[bytes | None, dict[bytes, bytes], list[bytes]]:
        place = (group, TOPIC, PARTITION)
        entries = client.xrange(keys.outbox_key(*place))
        return (
            client.get(keys.offset_key(*place)),
            client.hgetall(keys.state_key(*place, b"job")),
            [name for name, _ in entries],
        )

    return read


def test_a_batch_writes_state_offset_and_outbox_together(commit: Commit, look: Look) -> None:
    changed = {b"job": {b"job": b"{}", b"node:a": b"1"}}
    assert commit(-1, 4, changed, (((5, 0), b"x"), ((5, 1), b"y"))) == b"OK"
    assert look() == (b"4 me-1", {b"job": b"{}", b"node:a": b"1"}, [b"5-0", b"5-1"])


def test_fields_are_set_and_deleted_and_the_others_stay(commit: Commit, look: Look) -> None:
    commit(-1, 4, {b"job": {b"a": b"1", b"b": b"1", b"c": b"1"}})
    commit(4, 5, {b"job": {b"a": b"2", b"b": None}})
    assert look()[1] == {b"a": b"2", b"c": b"1"}


def test_a_write_on_top_of_something_else_is_fenced_and_leaves_no_trace(commit: Commit, look: Look) -> None:
    commit(-1, 4, {b"job": {b"a": b"1"}})
    before = look()
    for expected in (-1, 3, 5):
        with pytest.raises(redis.ResponseError, match=f"^FENCED at 4, expected {expected}"):
            commit(expected, 9, {b"job": {b"a": b"stale"}}, (((10, 0), b"stale"),), nonce=b"zombie-7")
    assert look() == before


def test_our_own_write_whose_answer_was_lost_is_known_again(commit: Commit, look: Look) -> None:
    commit(-1, 4, {b"job": {b"a": b"1"}}, (((5, 0), b"x"),), nonce=b"me-1")
    before = look()
    assert commit(-1, 4, {b"job": {b"a": b"1"}}, (((5, 0), b"x"),), nonce=b"me-1") == b"DUP"
    assert look() == before


def test_the_same_offset_written_by_another_is_not_taken_for_ours(commit: Commit) -> None:
    commit(-1, 4, nonce=b"other-1")
    with pytest.raises(redis.ResponseError, match=r"^FENCED"):
        commit(-1, 4, nonce=b"me-1")


@pytest.mark.parametrize("offset", [4, 3])
def test_the_offset_never_moves_backwards(commit: Commit, look: Look, offset: int) -> None:
    commit(-1, 4)
    with pytest.raises(redis.ResponseError, match=r"^BACKWARDS"):
        commit(4, offset, nonce=b"me-2")
    assert look()[0] == b"4 me-1"


def test_an_outbox_that_refuses_leaves_the_state_alone(
    commit: Commit, look: Look, client: Any, group: str
) -> None:
    """Only a hand in Redis does this: the offset is gone and the outbox is not."""
    commit(-1, 4, {b"job": {b"a": b"1"}}, (((5, 0), b"x"),))
    client.delete(keys.offset_key(group, TOPIC, PARTITION))
    with pytest.raises(redis.ResponseError, match="XADD"):
        commit(-1, 2, {b"job": {b"a": b"again"}}, (((3, 0), b"x"),))
    assert look() == (None, {b"a": b"1"}, [b"5-0"])


def test_ten_thousand_nodes_are_one_write(commit: Commit, look: Look) -> None:
    nodes: dict[bytes, bytes | None] = {b"node:%d" % n: b"x" * 50 for n in range(10_000)}
    commit(-1, 4, {b"job": nodes})
    gone = dict.fromkeys(list(nodes)[:9_000])
    commit(4, 5, {b"job": {b"job": b"1", **gone}})
    found = look()[1]
    assert len(found) == 1_001
    assert found[b"node:9999"] == b"x" * 50


def test_the_script_has_no_commands_newer_than_redis_6_2() -> None:
    for word in (b"FUNCTION", b"HSETEX", b"HEXPIRE", b"redis.setresp", b"#!lua"):
        assert word not in script.SOURCE
