"""One worker process of the soak: both stages in one app, its options as JSON on the command line."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

from faults.soak.counting import CountingFold
from faults.soak.mutants import VARIANTS
from midwatch.streams.settings.schema import (
    KafkaSettings,
    RedisSettings,
    Settings,
    TopicSettings,
    WorkerSettings,
)
from midwatch.streams.settings.secret import Secret
from midwatch.streams.worker.app import App, create_app
from midwatch.streams.worker.running import run
from midwatch.streams.worker.stateful import stateful_agent
from midwatch.streams.worker.transport import Consumer

GROUP = "soak"
REDIS_PATIENCE_S = 8.0
"""Shorter than a real worker's, so that outages that outlast it cost a test little time."""


KNOWS_COORDINATOR = "knows_coordinator"


def soak_settings(options: Mapping[str, Any]) -> Settings:
    """Events and incidents of a prefix of their own; a session of 2 s, so that a kill costs little time."""
    return Settings(
        state_directory=Path(options["directory"]),
        kafka=KafkaSettings(
            bootstrap=(options["kafka"],), username=options["username"], password=Secret(options["password"])
        ),
        redis=RedisSettings(url=options["redis_url"]),
        topics=TopicSettings(prefix=options["prefix"]),
        worker=WorkerSettings(session_timeout=2.0, heartbeat_interval=0.3, commit_interval=0.3),
    )


def count_regularly(app: App, path: Path) -> None:
    """Leave the counters behind, so that the test can tell what was really provoked."""
    done, ready = threading.Event(), threading.Event()
    app.on_ready.append(lambda _: ready.set())
    while not done.wait(0.2):
        counts = {name: value for name, value in asdict(app.counters).items() if isinstance(value, int)}
        known = ready.is_set() and cast(Consumer, app.consumer).knows_coordinator()
        counts[KNOWS_COORDINATOR] = int(known)
        part = path.with_suffix(".part")
        part.write_text(json.dumps(counts))
        part.replace(path)


def main(options: Mapping[str, Any]) -> None:
    settings = soak_settings(options)
    names = settings.topic_names
    app = create_app(settings, f"{options['prefix']}-{GROUP}")
    variant = VARIANTS[options["variant"]]
    options_of_both: Any = {"redis_patience_s": REDIS_PATIENCE_S, "table_class": variant.table}
    stateful_agent(app, CountingFold(names.incidents), topic=names.events, **options_of_both)
    stateful_agent(app, CountingFold(), topic=names.incidents, marked=True, **options_of_both)
    variant.prepare(app)
    counters = Path(options["counters"])
    threading.Thread(target=count_regularly, args=(app, counters), daemon=True).start()
    run(app, loglevel="INFO", ready_file=Path(options["ready_file"]))


if __name__ == "__main__":
    logging.basicConfig(level="INFO", format="%(asctime)s %(process)d %(levelname)s %(name)s %(message)s")
    main(json.loads(sys.argv[1]))
