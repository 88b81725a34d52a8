"""One worker process of the soak: both stages in one app, settings as JSON on the command line."""

from __future__ import annotations

import json
import logging
import sys
import threading
from dataclasses import asdict
from pathlib import Path
from typing import Any

from midwatch.streams.app import App, WorkerSettings, create_app
from midwatch.streams.running import run
from midwatch.streams.stateful import stateful_agent

sys.path.insert(0, str(Path(__file__).parent))  # run as a script: its neighbours are no package

from counting import CountingFold  # noqa: E402 - after the path is set
from mutants import MUTANTS  # noqa: E402 - after the path is set


def count_regularly(app: App, path: Path) -> None:
    """Leave the counters behind, so that the test can tell what was really provoked."""
    done = threading.Event()
    while not done.wait(0.5):
        counters = asdict(app.counters)
        path.write_text(json.dumps({k: v for k, v in counters.items() if isinstance(v, int)}))


def main(options: dict[str, Any]) -> None:
    app = create_app(
        WorkerSettings(
            group=options["group"],
            bootstrap=options["bootstrap"],
            username=options["username"],
            password=options["password"],
            session_timeout_s=options["session_timeout_s"],
            commit_interval_s=0.3,
            sends_to=(options["middle"], options["dead"]),
            directory=Path(options["directory"]),
            ready_file=Path(options["ready_file"]),
        )
    )
    mutant = MUTANTS[options["mutant"]]
    shared = {"redis_url": options["redis_url"], "dead_topic": options["dead"], "table_class": mutant.table}
    stateful_agent(app, CountingFold(options["middle"]), topic=options["first"], **shared)
    stateful_agent(app, CountingFold(), topic=options["middle"], marked=True, **shared)
    mutant.prepare(app)
    counters = Path(options["counters"])
    threading.Thread(target=count_regularly, args=(app, counters), daemon=True).start()
    run(app, loglevel=options.get("loglevel", "INFO"), redis_url=options["redis_url"])


if __name__ == "__main__":
    logging.basicConfig(level="INFO", format="%(asctime)s %(process)d %(levelname)s %(name)s %(message)s")
    main(json.loads(sys.argv[1]))
