"""Run one app as the process: services checked first, a clean end on SIGTERM, a non-zero end on a crash."""

from __future__ import annotations

import asyncio
import json
import logging
import os
from pathlib import Path
from typing import NoReturn

import faust
import mode.loop

from midwatch.streams.host.atomic_file import replace_file
from midwatch.streams.services.kafka_noise import quieten
from midwatch.streams.services.reachable import check_redis
from midwatch.streams.services.topic_admin import check_topics
from midwatch.streams.worker.app import App, Assignment
from midwatch.streams.worker.watchdog import LagWatch, LoopWatch


def _tell_ready(path: Path, group: str, held: Assignment) -> None:
    """Replace the file that says which partitions this process reads; written after every rebalance."""
    replace_file(path, json.dumps({"pid": os.getpid(), "group": group, "partitions": held}).encode())


def run(
    app: App, *, loglevel: str = "INFO", ready_file: Path | None = None, topics_checked: bool = False
) -> NoReturn:
    """Run the app until SIGTERM (exit code 0 within seconds) or a crash (exit code 1).

    Raises ServiceUnreachable or ConfigurationError before anything starts if Kafka, a topic or Redis is
    missing or not as it must be: Faust would wait for a missing topic in silence. `ready_file` tells, as
    JSON, which partitions this process reads; it is written anew after every rebalance. Logging must be
    set up by the caller. `topics_checked`: the caller has done that part.
    """
    settings = app.settings
    logging.getLogger().setLevel(loglevel)
    quieten()
    if not topics_checked:
        check_topics(settings)
    if app.keeps_state:
        check_redis(settings)
    mode.loop.use("uvloop")
    asyncio.set_event_loop(asyncio.new_event_loop())
    Path(app.conf.datadir).mkdir(mode=0o700, parents=True, exist_ok=True)
    if ready_file is not None:
        app.on_ready.append(lambda held: _tell_ready(ready_file, app.group, held))
    loop_watch = LoopWatch(stopping=lambda: app.should_stop, crashed=lambda: app.crashed)
    app.accompany(loop_watch.beat)
    app.accompany(LagWatch(app).run)
    loop_watch.start()
    worker = faust.Worker(app, loglevel=loglevel, quiet=True, override_logging=False, redirect_stdouts=False)
    worker.spinner = None  # it would write terminal codes to stdout
    try:
        worker.execute_from_commandline()
    finally:
        loop_watch.stop()
