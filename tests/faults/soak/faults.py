"""The faults, each as a function of the theatre; each is done while traffic flows and ends in a fact."""

from __future__ import annotations

import signal
from collections.abc import Callable

from faults.soak.theatre import Theatre, wait_for

Fault = Callable[[Theatre], None]


def join(stage: Theatre) -> None:
    """A second worker comes; it and the first read every partition between them."""
    stage.start_worker("B")
    wait_for(lambda: stage.workers["B"].held() > 0 and stage.all_held(), "the joined worker reads")


def terminate(stage: Theatre) -> None:
    """One worker is ended in good order, the other takes over, and it comes again."""
    code = stage.end_worker("B")
    assert code == 0, f"SIGTERM ended the worker with {code}"
    wait_for(stage.all_held, "the other worker reads everything")
    join(stage)


def kill(stage: Theatre) -> None:
    """SIGKILL; the supervisor starts it again at once."""
    deaths = len(stage.workers["A"].exit_codes)
    stage.workers["A"].signal(signal.SIGKILL)
    wait_for(lambda: len(stage.workers["A"].exit_codes) > deaths, "the supervisor sees the death")
    wait_for(lambda: stage.workers["A"].held() > 0 and stage.all_held(), "the killed worker reads again")


def freeze(stage: Theatre) -> None:
    """SIGSTOP until the session is over and the other has all partitions; then it wakes up as a zombie."""
    stage.workers["A"].signal(signal.SIGSTOP)
    wait_for(lambda: stage.workers["B"].held() == 16, "the other worker has taken everything")
    before = stage.reached(stage.first)
    wait_for(lambda: stage.reached(stage.first) > before + stage.rate, "the other worker works")
    stage.workers["A"].signal(signal.SIGCONT)
    wait_for(lambda: stage.workers["B"].held() < 16 and stage.all_held(), "the woken worker reads again")


def restart_broker(stage: Theatre) -> None:
    """The broker ends in good order and comes back."""
    stage.servers.kafka.restart()


def kill_broker(stage: Theatre) -> None:
    """The broker is killed and comes back."""
    stage.servers.kafka.kill()
    stage.servers.kafka.start()


def restart_redis(stage: Theatre) -> None:
    """Redis ends in good order and comes back once every worker has missed it."""
    before = _retries(stage)
    stage.servers.redis.stop()
    _missed(stage, before)
    stage.servers.redis.start()


def kill_redis(stage: Theatre) -> None:
    """Redis is killed, and comes back with what it had promised to keep once every worker missed it."""
    before = _retries(stage)
    stage.servers.redis.kill()
    _missed(stage, before)
    stage.servers.redis.start()


def _retries(stage: Theatre) -> dict[str, int]:
    return {name: worker.counter("redis_retries") for name, worker in stage.workers.items()}


def _missed(stage: Theatre, before: dict[str, int]) -> None:
    wait_for(lambda: all(now > before[name] for name, now in _retries(stage).items()), "all miss Redis")


def _writes_wait(stage: Theatre, name: str) -> None:
    worker = stage.workers[name]
    before = worker.counter("redis_retries")
    stage.servers.redis.kill()
    # Several: by then no batch is still reading state, and those at hand wait to be written.
    wait_for(lambda: worker.counter("redis_retries") >= before + 6, "the worker's writes wait for Redis")


def kill_before_the_write(stage: Theatre) -> None:
    """A worker is killed with batches that it has read and folded, and could not write."""
    _writes_wait(stage, "A")
    deaths = len(stage.workers["A"].exit_codes)
    stage.workers["A"].signal(signal.SIGKILL)
    wait_for(lambda: len(stage.workers["A"].exit_codes) > deaths, "the supervisor sees the death")
    stage.servers.redis.start()
    wait_for(lambda: stage.workers["A"].held() > 0 and stage.all_held(), "the killed worker reads again")


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
    wait_for(lambda: stage.workers["B"].held() < 16 and stage.all_held(), "the woken worker reads again")


ALL: tuple[Fault, ...] = (
    terminate,
    kill,
    freeze,
    restart_broker,
    kill_broker,
    restart_redis,
    kill_redis,
    kill_before_the_write,
    freeze_before_the_write,
)
