"""Run one app as the process: check the services first, end with 0 on SIGTERM and with 1 on a crash."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import time
from functools import partial
from pathlib import Path
from typing import NoReturn

import faust
import mode.loop

from midwatch.streams.host.atomic_file import replace_file
from midwatch.streams.services.kafka_noise import quieten
from midwatch.streams.services.reachable import check_redis
from midwatch.streams.services.topic_admin import check_topics
from midwatch.streams.worker.app import App, Assignment
from midwatch.streams.worker.exported import health as worker_health
from midwatch.streams.worker.health import HealthFile
from midwatch.streams.worker.watchdog import LagWatch, LoopWatch


def _write_ready_file(path: Path, group: str, assignment: Assignment) -> None:
    """Replace the file that names the partitions of this process; each rebalance writes it anew."""
    replace_file(path, json.dumps({"pid": os.getpid(), "group": group, "partitions": assignment}).encode())


def run(
    app: App, *, loglevel: str = "INFO", ready_file: Path | None = None, topics_checked: bool = False
) -> NoReturn:
    """Run the app until SIGTERM (exit code 0 within seconds) or a crash (exit code 1).

    It first checks Kafka, the topics and Redis, because Faust waits silently for a missing topic. Raises
    ServiceUnreachable or ConfigurationError if one of them is missing or set up wrongly. `ready_file` names,
    as JSON, the partitions that this process reads; each rebalance writes it anew. The caller must set up
    logging. `topics_checked`: the caller has already checked the topics.
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
        app.on_ready.append(lambda assignment: _write_ready_file(ready_file, app.group, assignment))
    loop_watch = LoopWatch(stopping=lambda: app.should_stop, crashed=lambda: app.crashed)
    app.accompany(loop_watch.count_turns)
    lag_watch, health = LagWatch(app), HealthFile(settings.state_directory, app.group.rpartition(".")[2])
    app.accompany(lag_watch.run)
    app.accompany(partial(lag_watch.report, health))
    loop_watch.start()
    if app.telemetry is not None:
        app.telemetry.serve(lambda: worker_health(app.counters, time.time()))
    worker = faust.Worker(app, loglevel=loglevel, quiet=True, override_logging=False, redirect_stdouts=False)
    worker.spinner = None  # it would write terminal codes to stdout
    try:
        worker.execute_from_commandline()
    finally:
        loop_watch.stop()
        health.remove()
        if app.telemetry is not None:
            app.telemetry.close()
