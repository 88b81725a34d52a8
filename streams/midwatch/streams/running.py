"""Run one app as the process: services checked first, a clean end on SIGTERM, a non-zero end on a crash."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Collection
from pathlib import Path
from typing import Any, NoReturn

import faust
import mode.loop
import redis.asyncio as redis_async
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaError
from redis import exceptions

from midwatch.streams.app import App, Assignment, WorkerSettings
from midwatch.streams.errors import ServiceUnreachable
from midwatch.streams.kafka_noise import quieten
from midwatch.streams.watchdog import LagWatch, LoopWatch

log = logging.getLogger(__name__)

ANSWER_S = 10.0


async def check_topics(settings: WorkerSettings, topics: Collection[str]) -> dict[str, int]:
    """Partitions of each topic. Raises ServiceUnreachable if Kafka does not answer or a topic is missing.

    Faust waits for a missing topic in silence, and a send to one is tried for ever.
    """
    security: dict[str, Any] = {}
    if settings.username:
        security = {
            "security_protocol": "SASL_SSL" if settings.ssl_context else "SASL_PLAINTEXT",
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": settings.username,
            "sasl_plain_password": settings.password,
        }
    elif settings.ssl_context is not None:
        security = {"security_protocol": "SSL"}
    client = AIOKafkaConsumer(
        bootstrap_servers=settings.bootstrap.split(","), ssl_context=settings.ssl_context, **security
    )
    try:
        async with asyncio.timeout(ANSWER_S):
            await client.start()
            known = await client._client.fetch_all_metadata()
            partitions = {topic: known.partitions_for_topic(topic) for topic in topics}
    except (KafkaError, OSError, TimeoutError) as error:
        raise ServiceUnreachable(
            f"Kafka does not answer: {error!r}",
            where=settings.bootstrap,
            remedy="Is it running, and are address, user and password right? `midwatch doctor` checks.",
        ) from error
    finally:
        await client.stop()
    missing = sorted(topic for topic, found in partitions.items() if not found)
    if missing:
        raise ServiceUnreachable(
            f"topics are missing: {', '.join(missing)}",
            where=settings.bootstrap,
            remedy="`midwatch up` makes them; a Kafka of your own needs them made before the workers start.",
        )
    return {topic: len(found) for topic, found in partitions.items() if found}


async def check_redis(url: str) -> None:
    """Raises ServiceUnreachable if Redis does not answer, or not to us."""
    client = redis_async.Redis.from_url(url, socket_timeout=ANSWER_S, socket_connect_timeout=ANSWER_S)
    try:
        await client.ping()
    except (exceptions.RedisError, OSError) as error:
        address = url.rpartition("@")[2].partition("?")[0]
        raise ServiceUnreachable(
            f"Redis does not answer: {error}",
            where=address.removeprefix("redis://"),
            remedy="Is it running, and is the password right? `midwatch doctor` checks.",
        ) from error
    finally:
        await client.aclose()


def _tell_ready(path: Path, group: str, held: Assignment) -> None:
    """Replace the file that says which partitions this process reads; written after every rebalance."""
    text = json.dumps({"pid": os.getpid(), "group": group, "partitions": held})
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    part.write_text(text)
    part.replace(path)


def run(app: App, *, loglevel: str = "INFO", redis_url: str | None = None) -> NoReturn:
    """Run the app until SIGTERM (exit code 0 within seconds) or a crash (exit code 1).

    Raises ServiceUnreachable before anything starts if Kafka, a topic or Redis is missing. Logging must
    be set up by the caller.
    """
    logging.getLogger().setLevel(loglevel)
    quieten()
    mode.loop.use("uvloop")
    settings = app.settings

    async def check() -> None:
        if redis_url is not None:
            await check_redis(redis_url)
        await check_topics(settings, {*app.readers, *settings.sends_to})

    loop = asyncio.new_event_loop()
    loop.run_until_complete(check())
    loop.close()
    if settings.directory is not None:
        settings.directory.mkdir(parents=True, exist_ok=True)
    if settings.ready_file is not None:
        ready_file = settings.ready_file
        app.on_ready.append(lambda held: _tell_ready(ready_file, settings.group, held))
    loop_watch = LoopWatch()
    app.accompany(loop_watch.beat)
    app.accompany(LagWatch(app).run)
    loop_watch.start()
    asyncio.set_event_loop(asyncio.new_event_loop())
    worker = faust.Worker(app, loglevel=loglevel, quiet=True, override_logging=False, redirect_stdouts=False)
    worker.spinner = None  # it would write terminal codes to stdout
    try:
        worker.execute_from_commandline()
    finally:
        loop_watch.stop()
