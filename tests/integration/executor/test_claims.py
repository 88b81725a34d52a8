"""Claims on a real Redis: one winner, nothing forgotten unnoticed."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis

from midwatch.agents.executor.admission import Arrival
from midwatch.agents.executor.claims import Claimed, Claims, OpenClaims
from midwatch.agents.executor.consumer import final_outcome
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.records import Command
from midwatch.streams.records.effect_keys import command_id

pytestmark = pytest.mark.integration
JOB = "local:ann/r"


def order(attempt: int = 1, seq: int = 1, action: Any = "restart") -> Command:
    return Command(
        id=command_id(JOB, attempt, seq),
        job=JOB,
        attempt=attempt,
        seq=seq,
        action=action,
        incarnation="local:1:1",
        incident="i",
        revision=1,
        reason="",
        not_before_ms=0,
        expires_ms=1,
        issuer="",
        spec="",
        bundle="",
    )


@pytest.fixture
def client(stack: Endpoints) -> Iterator[redis.Redis]:
    with redis.Redis.from_url(stack.redis_url) as made:
        yield made


@pytest.fixture
def claims(client: redis.Redis, tmp_path: Path) -> Claims:
    made = Claims(client, f"t{secrets.token_hex(4)}", tmp_path)
    assert not made.join(1)
    return made


@pytest.mark.capability("N-5")
def test_of_many_that_claim_at_once_one_wins(claims: Claims) -> None:
    answers: list[Claimed] = []
    threads = [threading.Thread(target=lambda: answers.append(claims.claim(order(), 5))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(a.state for a in answers) == ["claimed", *["open"] * 11]
    assert [claim.command for claim in claims.open()] == [order()]


def test_another_order_for_the_same_attempt_finds_its_effects_taken(claims: Claims) -> None:
    assert claims.claim(order(), 5).state == "claimed"
    second = claims.claim(order(seq=2), 6)
    assert (second.state, second.holder) == ("held", order().id)
    assert claims.claim(order(attempt=2), 7).state == "claimed"


def test_a_cancel_takes_the_end_alone_so_a_later_restart_is_refused_whole(claims: Claims) -> None:
    assert claims.claim(order(action="cancel"), 5).state == "claimed"
    assert claims.claim(order(seq=2), 6).state == "held"
    assert len(claims.open()) == 1


def test_a_closed_order_tells_its_outcome_and_keeps_its_effects(claims: Claims) -> None:
    claims.claim(order(), 5)
    done = final_outcome(order(), "done", "it runs", new_native_id="7")
    assert claims.close(order(), done, release=False)
    assert not claims.close(order(), done, release=False)
    assert claims.claim(order(), 6) == Claimed("closed", outcome=done)
    assert claims.earlier(order()) == Claimed("closed", outcome=done)
    assert claims.claim(order(seq=2), 7).state == "held"
    assert claims.open() == ()


def test_effects_that_never_came_about_can_be_claimed_again(claims: Claims) -> None:
    claims.claim(order(), 5)
    claims.close(order(), final_outcome(order(), "failed", "refused"), release=True)
    assert claims.claim(order(seq=2), 6).state == "claimed"


def test_what_is_remembered_of_an_open_order_survives_and_a_closed_one_keeps_nothing(claims: Claims) -> None:
    claims.claim(order(), 5)
    (claim,) = claims.open()
    assert claims.remember(replace(claim, memory={"tried_at": "12.5"}))
    assert claims.open()[0].memory == {"tried_at": "12.5"}
    claims.close(order(), final_outcome(order(), "done", ""), release=False)
    assert not claims.remember(claim)


def test_a_redis_that_lost_everything_is_noticed_at_once_and_at_the_next_start(
    client: redis.Redis, claims: Claims, tmp_path: Path
) -> None:
    claims.claim(order(), 5)
    prefix = claims._prefix
    for key in client.scan_iter(f"{prefix}:*"):
        client.delete(key)
    assert claims.claim(order(attempt=2), 700).state == "lost"
    assert claims.lost_ms == 700
    assert claims.open() == ()

    again = Claims(client, prefix.removesuffix(":executor"), tmp_path)
    assert not again.join(900), "the same loss is not found twice"
    assert again.lost_ms == 700


def test_a_redis_rolled_back_to_an_older_copy_is_noticed(
    client: redis.Redis, claims: Claims, tmp_path: Path
) -> None:
    claims.claim(order(), 5)
    older = {key: client.dump(key) for key in client.scan_iter(f"{claims._prefix}:*")}
    claims.claim(order(attempt=2), 6)
    for key, content in older.items():
        client.restore(key, 0, content, replace=True)  # type: ignore[arg-type]  # what dump gave
    again = Claims(client, claims._prefix.removesuffix(":executor"), tmp_path)
    assert again.join(900)
    assert again.lost_ms == 900


def test_a_rollback_under_a_running_executor_is_noticed_by_the_next_claim_and_by_the_next_look(
    client: redis.Redis, claims: Claims
) -> None:
    claims.claim(order(), 5)
    older = {key: client.dump(key) for key in client.scan_iter(f"{claims._prefix}:*")}
    for attempt, at in ((2, 700), (3, 900)):
        claims.claim(order(attempt=attempt), at - 1)
        for key, content in older.items():
            client.restore(key, 0, content, replace=True)  # type: ignore[arg-type]  # what dump gave
        if attempt == 2:
            assert claims.claim(order(attempt=4), at).state == "lost"
        else:
            assert [command.attempt for command in claims.look(at).lost] == [2, 3]
        assert claims.lost_ms == at
    assert claims.claim(order(attempt=5), 950).state == "claimed"


@pytest.mark.parametrize("looked", [True, False], ids=["looked at before", "accepted a moment ago"])
@pytest.mark.parametrize("noticed", ["by the look", "by the next claim"])
def test_an_order_that_redis_loses_is_told_once_however_young_it_is(
    client: redis.Redis, claims: Claims, looked: bool, noticed: str
) -> None:
    claims.claim(order(), 5)
    if looked:
        assert claims.look(6).lost == ()
    client.delete(*client.scan_iter(f"{claims._prefix}:*"))
    if noticed == "by the next claim":
        assert claims.claim(order(attempt=2), 700).state == "lost"
    assert claims.look(800) == OpenClaims(open=(), lost=(order(),))
    assert claims.lost_ms == (700 if noticed == "by the next claim" else 800)
    assert claims.look(900).lost == ()


def test_an_order_that_another_executor_closed_is_not_lost(
    client: redis.Redis, claims: Claims, tmp_path: Path
) -> None:
    other = Claims(client, claims._prefix.removesuffix(":executor"), tmp_path)
    other.join(1)
    claims.claim(order(), 5)
    other.close(order(), final_outcome(order(), "done", ""), release=False)
    assert claims.look(6) == OpenClaims(open=(), lost=())


def test_who_read_a_claim_before_another_one_changed_it_keeps_nothing(claims: Claims) -> None:
    claims.claim(order(), 5)
    (mine,), (theirs,) = claims.open(), claims.open()
    released = claims.remember(replace(theirs, memory={"winner": "7", "released_at": "12.5"}))
    assert released is not None
    assert claims.remember(replace(mine, memory={"tried_at": "12.6"})) is None
    assert claims.open()[0].memory == {"winner": "7", "released_at": "12.5"}
    assert claims.remember(replace(released, memory={"winner": "7"})) is not None


def test_a_redis_that_does_not_sync_each_write_is_not_trusted(client: redis.Redis, claims: Claims) -> None:
    assert claims.unsafe() == ""
    client.config_set("appendfsync", "everysec")
    try:
        assert "appendfsync everysec" in claims.unsafe()
    finally:
        client.config_set("appendfsync", "always")


def test_arrivals_are_counted_without_the_order_itself(claims: Claims) -> None:
    for seq, at in ((1, 100), (2, 200), (3, 300)):
        claims.arrived(order(seq=seq), Arrival(JOB, at, seq > 1))
    claims.arrived(order(seq=3), Arrival(JOB, 310, True))
    found = claims.recent(150, without=order(seq=2).id)
    assert found == [Arrival(JOB, 310, True)]
