"""Claims in Redis: who may bring an effect about. One script decides, so two executors never both win.

A claim is made for all effects of an order at once and stays, whatever dies. Beside it lies what the
reconciler must remember of the open order (`Claim.memory`), so another executor can go on with it.

Redis can lose its data. It therefore holds an epoch and a count of claims, and the state directory a copy
of both: where they disagree, the memory of earlier claims is gone and every order written before that
moment must be refused. Redis must not evict and must have each write on disk before it answers; `unsafe`
says so.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, cast

import msgspec
import redis

from midwatch.agents.executor.admission import Arrival
from midwatch.streams.host.atomic_file import replace_file
from midwatch.streams.records import Command, Outcome
from midwatch.streams.records.effect_keys import effect_key, effects_of
from midwatch.streams.services.redis_safety import unmet_demands

_FILE = "executor.epoch"
KEPT_S = 90 * 86_400  # as long as `commands` can deliver an order again
_ARRIVALS = 1000

_CLAIM = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {'lost', ''} end
if tonumber(redis.call('GET', KEYS[2]) or '0') < tonumber(ARGV[4]) then return {'lost', ''} end
local told = redis.call('GET', KEYS[4])
if told then return {'closed', told} end
local open = redis.call('HGET', KEYS[3], ARGV[2])
if open then return {'open', open} end
for i = 5, #KEYS do
  local holder = redis.call('GET', KEYS[i])
  if holder and holder ~= ARGV[2] then return {'held', holder} end
end
for i = 5, #KEYS do redis.call('SET', KEYS[i], ARGV[2]) end
redis.call('HSET', KEYS[3], ARGV[2], ARGV[3])
return {'claimed', tostring(redis.call('INCR', KEYS[2]))}
"""

_CLOSE = """
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then return 0 end
redis.call('SET', KEYS[2], ARGV[2], 'EX', ARGV[3])
if ARGV[4] == '1' then
  for i = 3, #KEYS do
    if redis.call('GET', KEYS[i]) == ARGV[1] then redis.call('DEL', KEYS[i]) end
  end
end
return 1
"""

_REMEMBER = """
local kept = redis.call('HGET', KEYS[1], ARGV[1])
if not kept or (cjson.decode(kept).turn or 0) ~= tonumber(ARGV[3]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
return 1
"""


@dataclass(frozen=True, slots=True)
class Claim:
    """An accepted order that is not finished. `memory` belongs to the reconciler: its own words and times.

    `turn` counts how often the memory was kept: who read an older one may not write.
    """

    command: Command
    claimed_ms: int
    memory: dict[str, str]
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Claimed:
    """The answer to an attempt to claim.

    `claimed`: ours now. `open`: it was ours before and is being worked on. `closed`: it is finished, with
    `outcome`. `held`: another order, `holder`, has the effect. `lost`: Redis has forgotten; none is claimed.
    """

    state: Literal["claimed", "open", "closed", "held", "lost"]
    outcome: Outcome | None = None
    holder: str = ""


@dataclass(frozen=True, slots=True)
class OpenClaims:
    """All unfinished orders, oldest first, and those that Redis has lost out of this process's hands."""

    open: tuple[Claim, ...]
    lost: tuple[Command, ...] = ()


@dataclass(frozen=True, slots=True)
class RedisEpoch:
    """What the state directory knows of Redis."""

    epoch: str
    claims: int
    lost_ms: int | None


class Claims:
    """The claims of one installation (`prefix`), kept in this Redis and this state directory."""

    def __init__(self, client: redis.Redis, prefix: str, state_directory: Path) -> None:
        self._redis = cast(Any, client)  # the library's types mix its blocking and its asynchronous half
        self._prefix = f"{prefix}:executor"
        self._file = state_directory / _FILE
        self._epoch = RedisEpoch("", 0, None)
        self._in_hand: dict[str, Command] = {}  # said to be accepted and not closed, by what we know
        self._told_ms: int | None = None  # the loss whose orders `look` has given out

    @property
    def lost_ms(self) -> int | None:
        """When the memory of earlier claims was found lost; orders written before are to be refused."""
        return self._epoch.lost_ms

    def join(self, now_ms: int) -> bool:
        """Compares both memories and begins a new epoch where Redis has forgotten. True if it has."""
        ours = self._load()
        epoch = _text(self._redis.get(self._key("epoch")))
        count = int(_text(self._redis.get(self._key("count"))) or 0)
        if not epoch:
            # SET NX: of two executors that start at once, both must end with the same epoch.
            self._redis.set(self._key("epoch"), secrets.token_hex(16), nx=True)
            epoch = _text(self._redis.get(self._key("epoch")))
        lost = ours is not None and (ours.epoch != epoch or count < ours.claims)
        earlier = ours.lost_ms if ours else None
        self._store(RedisEpoch(epoch, count, now_ms if lost else earlier))
        return lost

    def look(self, now_ms: int) -> OpenClaims:
        """What is open now. If Redis has lost its memory since the last look, or a part of it, `lost_ms` says
        when that was found, and the orders that went with it are told here, once.

        An order is lost from the moment on that we have claimed it, not only once it was looked at: a loss
        right behind the word "accepted" must not leave that order without an end. To be called by the
        thread that claims.
        """
        with self._redis.pipeline(transaction=True) as both:  # a loss in between would show half of it
            both.mget(self._key("epoch"), self._key("count"))
            both.hvals(self._key("open"))
            (epoch, count), values = both.execute()
        if _text(epoch) != self._epoch.epoch or int(_text(count) or 0) < self._epoch.claims:
            self.join(now_ms)
        claims = _oldest_first(values)
        standing = {claim.command.id: claim.command for claim in claims}
        lost = [c for name, c in self._in_hand.items() if name not in standing] if self._lost_anew() else []
        self._in_hand = standing
        self._told_ms = self.lost_ms
        return OpenClaims(claims, tuple(lost))

    def _lost_anew(self) -> bool:
        """Without a loss, an order that is gone was closed by another executor."""
        return self.lost_ms != self._told_ms

    def unsafe(self) -> str:
        """Why this Redis cannot be trusted with a claim; "" if it can."""
        unmet = next(iter(unmet_demands(self._redis, to_act=True)), None)
        if unmet is None:
            return ""
        return f"Redis has {unmet.name} {unmet.found or 'hidden'}; acting needs {unmet.wanted}"

    def claim(self, command: Command, now_ms: int) -> Claimed:
        """Claims all effects of the order, or none."""
        body = msgspec.json.encode(Claim(command, now_ms, {}))
        keys = [self._key("epoch"), self._key("count"), self._key("open"), self._outcome(command.id)]
        state, rest = self._redis.eval(
            _CLAIM,
            len(keys) + len(self._effects(command)),
            *keys,
            *self._effects(command),
            self._epoch.epoch,
            command.id,
            body,
            self._epoch.claims,
        )
        if _text(state) in ("claimed", "open"):
            self._in_hand[command.id] = command
        match _text(state):
            case "claimed":
                self._store(replace(self._epoch, claims=int(_text(rest))))
                return Claimed("claimed")
            case "closed":
                return Claimed("closed", outcome=msgspec.json.decode(rest, type=Outcome))
            case "held":
                return Claimed("held", holder=_text(rest))
            case "lost":
                self.join(now_ms)
                return Claimed("lost")
            case _:
                return Claimed("open")

    def standing(self, command: Command) -> Claimed | None:
        """What became of this very order when it came before; None if it never did, or was not accepted."""
        told = self._redis.get(self._outcome(command.id))
        if told is not None:
            return Claimed("closed", outcome=msgspec.json.decode(told, type=Outcome))
        if not self._redis.hexists(self._key("open"), command.id):
            return None
        self._in_hand[command.id] = command
        return Claimed("open")

    def knows(self, command: str) -> bool:
        """Whether an order of this id stands here, open or closed."""
        return bool(
            self._redis.hexists(self._key("open"), command) or self._redis.exists(self._outcome(command))
        )

    def open(self) -> tuple[Claim, ...]:
        """All unfinished orders, oldest first. For any thread."""
        return _oldest_first(self._redis.hvals(self._key("open")))

    def remember(self, claim: Claim) -> Claim | None:
        """Keeps the reconciler's memory of an open order, and returns the claim as it then is.

        None if it is open no more, or if somebody else has kept something since `claim` was read: then
        nothing may be done by what was read.
        """
        kept = replace(claim, turn=claim.turn + 1)
        body, name = msgspec.json.encode(kept), claim.command.id
        return kept if self._redis.eval(_REMEMBER, 1, self._key("open"), name, body, claim.turn) else None

    def close(self, command: Command, outcome: Outcome, *, release: bool) -> bool:
        """Finishes an order. `release` frees its effects for a later one: only if proven that none exists."""
        effects = self._effects(command)
        self._in_hand.pop(command.id, None)
        return bool(
            self._redis.eval(
                _CLOSE,
                2 + len(effects),
                self._key("open"),
                self._outcome(command.id),
                *effects,
                command.id,
                msgspec.json.encode(outcome),
                KEPT_S,
                "1" if release else "0",
            )
        )

    def arrived(self, command: Command, arrival: Arrival) -> None:
        """Notes an order for the rate and the breaker; the same order twice counts once."""
        key = self._key("arrivals")
        member = msgspec.json.encode([command.id, arrival.job, arrival.accepted])
        self._redis.zadd(key, {member: arrival.at_ms})
        self._redis.zremrangebyrank(key, 0, -_ARRIVALS - 1)

    def recent(self, since_ms: int, *, without: str) -> Sequence[Arrival]:
        """Orders that arrived since then, but for the one of the id `without`."""
        rows = self._redis.zrangebyscore(self._key("arrivals"), since_ms, "+inf", withscores=True)
        decoded = ((msgspec.json.decode(m, type=tuple[str, str, bool]), int(score)) for m, score in rows)
        return [Arrival(job, at, accepted) for (id_, job, accepted), at in decoded if id_ != without]

    def _effects(self, command: Command) -> list[str]:
        names = effects_of(command.action)
        return [self._key(f"effect:{effect_key(command.job, command.attempt, name)}") for name in names]

    def _outcome(self, command: str) -> str:
        return self._key(f"outcome:{command}")

    def _key(self, name: str) -> str:
        return f"{self._prefix}:{name}"

    def _load(self) -> RedisEpoch | None:
        try:
            return msgspec.json.decode(self._file.read_bytes(), type=RedisEpoch)
        except FileNotFoundError:
            return None

    def _store(self, epoch: RedisEpoch) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self._file, msgspec.json.encode(epoch))
        self._epoch = epoch


def _oldest_first(values: Sequence[bytes]) -> tuple[Claim, ...]:
    claims = (msgspec.json.decode(value, type=Claim) for value in values)
    return tuple(sorted(claims, key=lambda claim: (claim.claimed_ms, claim.command.id)))


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value or "")
