"""The faults, each as a function of the theatre; each is done while traffic flows and ends in a fact."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

from faults.soak import redis_faults
from faults.soak.supervised import SupervisedWorker
from faults.soak.theatre import Theatre
from processes import wait_for

Fault = Callable[[Theatre], None]
AWAY_S = 60.0
"""Longer than the longest timeout of a worker's request, which is 30 s."""
PASSES = 60
"""A doomed worker dies in one of so many first passes of its failpoint."""
TURNS = 5
CRASHED = 1  # a worker's exit code


def join(stage: Theatre) -> None:
    """A second worker comes; it and the first read every partition between them."""
    stage.start_worker("B")
    stage.all_read("the joined worker reads", lambda: stage.workers["B"].held() > 0)


def terminate(stage: Theatre) -> None:
    """One worker is ended in good order, the other takes over, and it comes again."""
    code = stage.end_worker("B")
    assert code == 0, f"SIGTERM ended the worker with {code}"
    stage.all_read("the other worker reads everything")
    join(stage)


def kill(stage: Theatre) -> None:
    """SIGKILL; the supervisor starts it again at once."""
    deaths = len(stage.workers["A"].exit_codes)
    stage.workers["A"].signal(signal.SIGKILL)
    wait_for(lambda: len(stage.workers["A"].exit_codes) > deaths, "the supervisor sees the death")
    stage.all_read("the killed worker reads again", lambda: stage.workers["A"].held() > 0)


def freeze(stage: Theatre) -> None:
    """SIGSTOP until the session is over and the other has all partitions; then it wakes up as a zombie."""
    stage.workers["A"].signal(signal.SIGSTOP)
    wait_for(lambda: stage.workers["B"].held() == 16, "the other worker has taken everything")
    before = stage.reached(stage.first)
    wait_for(lambda: stage.reached(stage.first) > before + stage.rate, "the other worker works")
    stage.workers["A"].signal(signal.SIGCONT)
    stage.all_read("the woken worker reads again", lambda: stage.workers["B"].held() < 16)


def restart_broker(stage: Theatre) -> None:
    """The broker ends in good order and comes back."""
    stage.servers.kafka.restart()


def kill_broker(stage: Theatre) -> None:
    """The broker is killed and comes back."""
    stage.servers.kafka.kill()
    stage.servers.kafka.start()


def broker_away(stage: Theatre) -> None:
    """The broker is killed and stays away for a while: here the passing of time is the fault."""
    stage.servers.kafka.kill()
    until = time.monotonic() + AWAY_S
    wait_for(lambda: time.monotonic() > until, "the outage is over")
    stage.servers.kafka.start()


def _killed_at(stage: Theatre, point: str) -> None:
    """The next process of a worker kills itself at this failpoint, and the one after it takes over.

    One that ends before it gets there was fenced: while it took over, the other one still wrote. Then it is
    the turn of the next.
    """
    worker = stage.workers["A"]
    codes = [_code_of_the_doomed(stage, point)]
    while codes[-1] == CRASHED and len(codes) < TURNS and worker.said("Fenced: "):
        codes.append(_code_of_the_doomed(stage, point))
    assert codes[-1] == -signal.SIGKILL, codes
    stage.all_read("the killed worker reads again", lambda: worker.held() > 0)


def _code_of_the_doomed(stage: Theatre, point: str) -> int:
    worker = stage.workers["A"]
    deaths = len(worker.exit_codes)
    worker.doom(f"{point}:{stage.random.randint(1, PASSES)}")
    worker.signal(signal.SIGKILL)
    wait_for(lambda: len(worker.exit_codes) > deaths + 1, f"the worker dies at {point}")
    return worker.exit_codes[deaths + 1]


def killed_at_write(stage: Theatre) -> None:
    """Killed when a batch is folded and not yet written."""
    _killed_at(stage, "write")


def killed_at_written(stage: Theatre) -> None:
    """Killed when a batch is in Redis, and nothing of its outbox in Kafka."""
    _killed_at(stage, "written")


def killed_at_published(stage: Theatre) -> None:
    """Killed when the outbox is in Kafka, and still in Redis."""
    _killed_at(stage, "published")


def _writes_wait(stage: Theatre, name: str) -> None:
    worker = stage.workers[name]
    before = _retries(worker)
    stage.servers.redis.kill()
    # Several: by then no batch is still reading state, and those at hand wait to be written.
    wait_for(
        lambda: _retries(worker) >= before + 6,
        "the worker's writes wait for Redis",
        seen=lambda: (_retries(worker) - before, stage.who_holds(), worker.exit_codes),
    )


def _retries(worker: SupervisedWorker) -> int:
    """Of all its processes: one that starts anew meanwhile counts from zero."""
    return worker.counters().get("redis_retries", 0)


def kill_before_the_write(stage: Theatre) -> None:
    """A worker is killed with batches that it has read and folded, and could not write."""
    _writes_wait(stage, "A")
    deaths = len(stage.workers["A"].exit_codes)
    stage.workers["A"].signal(signal.SIGKILL)
    wait_for(lambda: len(stage.workers["A"].exit_codes) > deaths, "the supervisor sees the death")
    stage.servers.redis.start()
    stage.all_read("the killed worker reads again", lambda: stage.workers["A"].held() > 0)


def freeze_before_the_write(stage: Theatre) -> None:
    """A worker is frozen with batches that it could not write, loses its partitions, and wakes up to
    write them.
    """
    _writes_wait(stage, "A")
    stage.workers["A"].signal(signal.SIGSTOP)
    stage.servers.redis.start()
    wait_for(lambda: stage.workers["B"].held() == 16, "the other worker has taken everything")
    before = stage.reached(stage.first)
    wait_for(lambda: stage.reached(stage.first) > before + stage.rate, "the other worker works")
    stage.workers["A"].signal(signal.SIGCONT)
    stage.all_read("the woken worker reads again", lambda: stage.workers["B"].held() < 16)


ALL: tuple[Fault, ...] = (
    terminate,
    kill,
    freeze,
    killed_at_write,
    killed_at_written,
    killed_at_published,
    kill_before_the_write,
    freeze_before_the_write,
    restart_broker,
    kill_broker,
    broker_away,
    redis_faults.restart_redis,
    redis_faults.kill_redis,
    redis_faults.freeze_redis,
    redis_faults.freeze_redis_for_long,
    redis_faults.starve_redis,
    redis_faults.starve_redis_for_long,
    redis_faults.roll_back_redis,
    redis_faults.empty_redis,
)
AT_FAILPOINT: dict[Fault, str] = {
    killed_at_write: "write",
    killed_at_written: "written",
    killed_at_published: "published",
}


def name_of(fault: Fault) -> str:
    """As the report tells it."""
    point = AT_FAILPOINT.get(fault)
    return f"failpoint {point}" if point else fault.__name__.replace("_", " ")
