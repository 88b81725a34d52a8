"""The executor as a process: consumer, reconciler, census and watcher on one host. Shell.

It has three threads. The main thread takes commands and carries out the open ones, because only one
thread may act. The census thread reads `events` and `specs`. The watcher thread watches the schedulers.
If any thread dies, the process dies and its supervisor starts it again. No state is lost: Redis, the
topics and the schedulers hold it.
"""

from __future__ import annotations

import getpass
import logging
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import redis

from midwatch.agents.executor import environments
from midwatch.agents.executor.admission import AdmissionLimits
from midwatch.agents.executor.claimed_work import OpenCommands
from midwatch.agents.executor.claims import KEPT_S, Claims
from midwatch.agents.executor.consumer import CommandConsumer, Desk
from midwatch.agents.executor.metrics import ExecutorMetrics
from midwatch.agents.reporter import Reporter, received, say
from midwatch.agents.schedulers import cluster
from midwatch.agents.schedulers.base import Cluster
from midwatch.agents.schedulers.calls import Caller, SystemCaller
from midwatch.agents.schedulers.foreign import foreign_clusters
from midwatch.agents.schedulers.local.effect_file import prune
from midwatch.agents.signing import Signer, ensure_keys, load_verifier
from midwatch.agents.watcher.census_reader import CensusReader
from midwatch.agents.watcher.drain import LastWords
from midwatch.agents.watcher.watcher import Watcher
from midwatch.streams.errors import ConfigurationError, ServiceUnreachable
from midwatch.streams.host.clock import now_ms
from midwatch.streams.host.file_lock import LockTaken, lock
from midwatch.streams.records.effect_keys import effect_key
from midwatch.streams.services.reachable import check_redis, redis_client
from midwatch.streams.services.topic_admin import check_topics
from midwatch.streams.settings.schema import Settings
from midwatch.streams.worker.health import HealthFile, KafkaProbe
from midwatch.streams.worker.readiness import declare_ready

_REST_AT_LEAST_S, _REST_AT_MOST_S = 0.02, 0.5
_RATE_WINDOW_MS = 3_600_000


def run(settings: Settings, caller: Caller | None = None) -> int:
    """Runs until SIGTERM or SIGINT, then returns 0. Raises any failure of a thread.

    All calls to schedulers and processes go through `caller`; a test passes one that counts them.

    Raises:
        ConfigurationError: another executor runs with this state directory, or Redis may lose a claim.
        ServiceUnreachable: Kafka, a topic or Redis is not there.
    """
    for name, level in (("kafka", logging.WARNING), ("kafka.net.sasl", logging.ERROR)):
        logging.getLogger(name).setLevel(level)  # the library logs each connection several times
    check_topics(settings)
    check_redis(settings, safe_to_act=settings.armed)
    stopping: list[int] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda n, _: stopping.append(n))
    with _alone(settings.state_directory):
        signer = ensure_keys(settings.state_directory)
        prune(settings.state_directory, now_ms() / 1000 - KEPT_S)
        try:
            _serve(settings, caller or SystemCaller(), signer, stopping)
        except redis.RedisError as error:
            raise ServiceUnreachable(
                f"Redis has stopped answering: {error}",
                where=settings.redis.url.rpartition("@")[2],
                remedy="start the executor again; it goes on where it was",
            ) from error
    return 0


def _serve(settings: Settings, caller: Caller, signer: Signer, stopping: list[int]) -> None:
    clusters = _clusters(settings, caller)
    claims = Claims(redis_client(settings), settings.topics.prefix, settings.state_directory)
    if claims.join(now_ms()):
        say("Redis has lost earlier claims: the executor lets older commands expire")
    reporter = Reporter(settings)
    verifier = load_verifier(settings.state_directory)
    census = CensusReader(
        settings, lambda message, error: reporter.dead(received(message), error), verifier.accepts
    )
    desk = Desk(
        claims=claims,
        census=census,
        reporter=reporter,
        verifier=verifier,
        limits=_limits(settings, clusters),
        clusters=clusters,
        state_directory=settings.state_directory,
        acting=settings.armed,
        traces=bool(settings.telemetry.otlp),
    )
    watcher = Watcher(
        clusters.values(),
        census,
        reporter,
        state_directory=settings.state_directory,
        poll_s=settings.executor.poll,
        jobs_by_key=lambda: _jobs_by_key(claims),
        last_words=LastWords(settings.state_directory, caller),
    )
    metrics = ExecutorMetrics(settings, reporter)
    consumer = CommandConsumer(settings, desk)
    open_commands = OpenCommands(desk)
    probe, health = KafkaProbe(settings), HealthFile(settings.state_directory, "executor")
    probe.start()
    census.start()
    try:
        census.catch_up(census.ends(), patience_s=300.0)
        environments.replace_open_specs(settings.state_directory, census, reporter, signer)
        open_commands.give_up_lost()
        watcher.start()
        declare_ready(settings.state_directory, "executor")
        pause, next_look = 0.0, 0.0
        while not stopping:
            if time.monotonic() >= next_look:
                environments.forget(settings.state_directory, census)
                next_look = time.monotonic() + environments.OFTEN_S
            consumer.poll(round(1000 * min(max(pause, _REST_AT_LEAST_S), _REST_AT_MOST_S)))
            pause = open_commands.turn()
            metrics.turned(open_commands.count, watcher.blind)
            health.write(probe.trouble)
            for thread in (census, watcher):
                if thread.failure is not None:
                    raise thread.failure
    finally:
        probe.stop()
        health.remove()
        consumer.close()
        watcher.stop()
        census.stop()
        watcher.join(timeout=5)
        census.join(timeout=5)
        reporter.close()
        metrics.close()


def _clusters(settings: Settings, caller: Caller) -> dict[str, Cluster]:
    """The drivers by the names that specs use: `local` always, `slurm` where `squeue` is installed.

    `ray` where the settings name a head.

    Beside them stand the foreign ones that the settings name.
    """
    directory = settings.state_directory
    kinds = [
        "local",
        *(["slurm"] if shutil.which("squeue") else []),
        *(["ray"] if settings.ray.address else []),
    ]
    ours = {kind: cluster(kind, kind, directory, caller, settings.ray) for kind in kinds}
    return ours | foreign_clusters(settings.extensions, directory, caller)


def _limits(settings: Settings, clusters: dict[str, Cluster]) -> AdmissionLimits:
    return AdmissionLimits(
        clusters=frozenset(clusters),
        users=frozenset(settings.executor.users or (getpass.getuser(),)),
        partitions=frozenset(settings.executor.partitions),
        rate=settings.executor.commands_per_hour,
        rate_window_ms=_RATE_WINDOW_MS,
        storm_jobs=settings.executor.storm_jobs,
        storm_window_ms=int(settings.executor.storm_window * 1000),
    )


def _jobs_by_key(claims: Claims) -> dict[str, str]:
    commands = [claim.command for claim in claims.open()]
    return {effect_key(c.job, c.attempt, "start"): c.job for c in commands if c.action == "restart"}


@contextmanager
def _alone(state_directory: Path) -> Iterator[None]:
    """Allows one executor per state directory. Two would be safe, but would confuse people."""
    state_directory.mkdir(parents=True, exist_ok=True)
    path = state_directory / "executor.lock"
    try:
        descriptor = lock(path)
    except LockTaken as error:
        raise ConfigurationError(
            "another executor runs with this state directory",
            where=str(path),
            remedy="stop it, or give this one another --state-directory",
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"the state directory cannot be used: {error.strerror}",
            where=str(path),
            remedy="choose another with --state-directory",
        ) from error
    try:
        yield
    finally:
        os.close(descriptor)
