"""Claims in Redis: which command may cause an effect. One script decides, so two executors never both win.

One claim covers all effects of a command and stays in Redis, whatever process dies. The claim also holds
what the reconciler remembers of the open command (`Claim.memory`), so another executor can go on with it.

Redis can lose its data. Redis therefore holds an epoch and a count of claims, and the state directory
holds a copy of both. Where they disagree, Redis has lost earlier claims. The executor must then refuse
every command written before that moment. Redis must not evict keys, and must write to disk before it
answers; `unsafe` checks both.
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
KEPT_S = 90 * 86_400  # as long as `commands` can deliver a command again
_ARRIVALS = 1000

_CLAIM = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return {'lost', ''} end
if tonumber(redis.call('GET', KEYS[2]) or '0') < tonumber(ARGV[4]) then return {'lost', ''} end
local outcome = redis.call('GET', KEYS[4])
if outcome then return {'closed', outcome} end
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
    """An accepted command that is not finished. `memory`: fields of the reconciler, as text.

    `turn` counts the writes of the memory: whoever read an older turn may not write.
    """

    command: Command
    claimed_ms: int
    memory: dict[str, str]
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Claimed:
    """The result of an attempt to claim.

    `claimed`: the command has the claim now. `open`: it had the claim before and is not finished.
    `closed`: it is finished, with `outcome`. `held`: another command, `holder`, has an effect.
    `lost`: Redis has lost earlier claims, and this one was not made.
    """

    state: Literal["claimed", "open", "closed", "held", "lost"]
    outcome: Outcome | None = None
    holder: str = ""


@dataclass(frozen=True, slots=True)
class OpenClaims:
    """All claims of unfinished commands, oldest first, and the commands whose claims Redis has lost."""

    open: tuple[Claim, ...]
    lost: tuple[Command, ...] = ()


@dataclass(frozen=True, slots=True)
class RedisEpoch:
    """The state directory's copy of what Redis holds. `lost_ms`: when a loss was last found."""

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
        self._open_commands: dict[str, Command] = {}  # accepted and, as far as this process knows, not closed
        self._reported_loss_ms: int | None = None  # the loss whose commands `look` has returned

    @property
    def lost_ms(self) -> int | None:
        """When a loss of earlier claims was last found; refuse every command written before."""
        return self._epoch.lost_ms

    def join(self, now_ms: int) -> bool:
        """Compares Redis with the copy, and begins an epoch if Redis has none. True if Redis lost claims."""
        copy = self._load()
        epoch = _text(self._redis.get(self._key("epoch")))
        count = int(_text(self._redis.get(self._key("count"))) or 0)
        if not epoch:
            # SET NX: of two executors that start at once, both must end with the same epoch.
            self._redis.set(self._key("epoch"), secrets.token_hex(16), nx=True)
            epoch = _text(self._redis.get(self._key("epoch")))
        lost = copy is not None and (copy.epoch != epoch or count < copy.claims)
        earlier_loss_ms = copy.lost_ms if copy else None
        self._store(RedisEpoch(epoch, count, now_ms if lost else earlier_loss_ms))
        return lost

    def look(self, now_ms: int) -> OpenClaims:
        """The claims that are open now. Call it from the thread that claims.

        If Redis has lost claims since the last look, the result holds their commands, once. `lost_ms` then
        says when the loss was found. This covers commands claimed since the last look: a loss right after
        the outcome `accepted` must not leave a command without an end.
        """
        with self._redis.pipeline(transaction=True) as pipeline:  # a loss between two reads would show half
            pipeline.mget(self._key("epoch"), self._key("count"))
            pipeline.hvals(self._key("open"))
            (epoch, count), values = pipeline.execute()
        if _text(epoch) != self._epoch.epoch or int(_text(count) or 0) < self._epoch.claims:
            self.join(now_ms)
        claims = _oldest_first(values)
        still_open = {claim.command.id: claim.command for claim in claims}
        gone = [command for name, command in self._open_commands.items() if name not in still_open]
        # Without a new loss, another executor closed the commands that are gone.
        lost = gone if self.lost_ms != self._reported_loss_ms else []
        self._open_commands = still_open
        self._reported_loss_ms = self.lost_ms
        return OpenClaims(claims, tuple(lost))

    def unsafe(self) -> str:
        """Why this Redis may lose a claim; "" if it is safe."""
        unmet = next(iter(unmet_demands(self._redis, to_act=True)), None)
        if unmet is None:
            return ""
        return f"Redis has {unmet.name} {unmet.found or 'hidden'}; acting needs {unmet.wanted}"

    def claim(self, command: Command, now_ms: int) -> Claimed:
        """Claims all effects of the command, or none."""
        body = msgspec.json.encode(Claim(command, now_ms, {}))
        keys = [self._key("epoch"), self._key("count"), self._key("open"), self._outcome(command.id)]
        state, detail = self._redis.eval(
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
            self._open_commands[command.id] = command
        match _text(state):
            case "claimed":
                self._store(replace(self._epoch, claims=int(_text(detail))))
                return Claimed("claimed")
            case "closed":
                return Claimed("closed", outcome=msgspec.json.decode(detail, type=Outcome))
            case "held":
                return Claimed("held", holder=_text(detail))
            case "lost":
                self.join(now_ms)
                return Claimed("lost")
            case _:
                return Claimed("open")

    def earlier(self, command: Command) -> Claimed | None:
        """The claim or the outcome of an earlier delivery of this command; None if none was accepted."""
        outcome = self._redis.get(self._outcome(command.id))
        if outcome is not None:
            return Claimed("closed", outcome=msgspec.json.decode(outcome, type=Outcome))
        if not self._redis.hexists(self._key("open"), command.id):
            return None
        self._open_commands[command.id] = command
        return Claimed("open")

    def knows(self, command: str) -> bool:
        """Whether Redis holds a command of this id, open or closed."""
        return bool(
            self._redis.hexists(self._key("open"), command) or self._redis.exists(self._outcome(command))
        )

    def open(self) -> tuple[Claim, ...]:
        """The claims of all unfinished commands, oldest first. May be called from any thread."""
        return _oldest_first(self._redis.hvals(self._key("open")))

    def remember(self, claim: Claim) -> Claim | None:
        """Keeps the reconciler's memory of an open command, and returns the claim as it then is.

        None if the command is no longer open, or if somebody else has written since `claim` was read.
        The caller must then not act on `claim`.
        """
        kept = replace(claim, turn=claim.turn + 1)
        body, name = msgspec.json.encode(kept), claim.command.id
        return kept if self._redis.eval(_REMEMBER, 1, self._key("open"), name, body, claim.turn) else None

    def close(self, command: Command, outcome: Outcome, *, release: bool) -> bool:
        """Finishes a command. False if it was not open.

        `release` frees its effects for a later command. Set it only if it is proven that no effect exists.
        """
        effects = self._effects(command)
        self._open_commands.pop(command.id, None)
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
        """Notes a command for the limits of rate and storm. The same id and result twice count once."""
        key = self._key("arrivals")
        member = msgspec.json.encode([command.id, arrival.job, arrival.accepted])
        self._redis.zadd(key, {member: arrival.at_ms})
        self._redis.zremrangebyrank(key, 0, -_ARRIVALS - 1)

    def recent(self, since_ms: int, *, without: str) -> Sequence[Arrival]:
        """Commands that arrived since `since_ms`, without the one whose id is `without`."""
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
