"""What can happen to Redis, each as a function of the theatre; each ends in a fact."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from faults.soak.theatre import Theatre
from processes import wait_for


def restart_redis(stage: Theatre) -> None:
    """Redis ends in good order and comes back once every worker has missed it."""
    before = _retries(stage)
    stage.servers.redis.stop()
    missed(stage, before)
    stage.servers.redis.start()


def kill_redis(stage: Theatre) -> None:
    """Redis is killed, and comes back with what it had promised to keep once every worker missed it."""
    before = _retries(stage)
    stage.servers.redis.kill()
    missed(stage, before)
    stage.servers.redis.start()


def freeze_redis(stage: Theatre) -> None:
    """Redis stands still until every worker has given up a call; what they sent is done when it wakes."""
    before = _retries(stage)
    stage.freeze_redis()
    missed(stage, before)
    stage.thaw_redis()


def freeze_redis_for_long(stage: Theatre) -> None:
    """Redis stands still until every worker has lost its patience and died."""
    _until_all_die(stage, stage.freeze_redis, stage.thaw_redis)


def starve_redis(stage: Theatre) -> None:
    """Redis is out of memory until every worker has been refused."""
    before = _retries(stage)
    stage.starve_redis()
    missed(stage, before)
    stage.feed_redis()


def starve_redis_for_long(stage: Theatre) -> None:
    """Redis is out of memory until every worker has lost its patience and died."""
    _until_all_die(stage, stage.starve_redis, stage.feed_redis)


def roll_back_redis(stage: Theatre) -> None:
    """Redis comes back with an older copy of its files: what was done since is undone for it alone."""
    directory = stage.servers.redis.directory
    copy = Path(f"{directory}.older")
    shutil.copytree(directory, copy)
    before = stage.reached(stage.first)
    wait_for(lambda: stage.reached(stage.first) > before + 2 * stage.rate, "work that will be undone")
    stage.servers.redis.kill()
    shutil.rmtree(directory)
    copy.rename(directory)
    stage.servers.redis.start()
    stage.all_read("everything is read")


def empty_redis(stage: Theatre) -> None:
    """FLUSHALL in mid-run."""
    stage.redis.flushall()
    goal = stage.traffic.acknowledged
    wait_for(lambda: stage.reached(stage.first) >= goal, f"state of {goal} records anew", seen=stage.how_far)
    stage.all_read("everything is read")


def _until_all_die(stage: Theatre, begin: Callable[[], None], end: Callable[[], None]) -> None:
    deaths = {name: len(worker.exit_codes) for name, worker in stage.workers.items()}
    begin()
    wait_for(
        lambda: all(len(stage.workers[name].exit_codes) > count for name, count in deaths.items()),
        "every worker has died of it",
    )
    end()
    stage.all_read("everything is read again")


def _retries(stage: Theatre) -> dict[str, int]:
    return {name: worker.counter("redis_retries") for name, worker in stage.workers.items()}


def missed(stage: Theatre, before: dict[str, int]) -> None:
    """Every worker has met an outage since."""
    wait_for(lambda: all(now > before[name] for name, now in _retries(stage).items()), "all miss Redis")
