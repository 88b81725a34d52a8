"""A whole watch that exports, and a stand-in for its collector."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.chain.installation import Installation, installation, midwatch
from integration.chain.training import PROCESSES
from integration.telemetry.collector import Collector
from integration.telemetry.scraped import Scrapes, ports_of_all
from midwatch.agents.local.embedded.stack import Endpoints


@pytest.fixture(scope="module")
def scrapes() -> Scrapes:
    return Scrapes(ports_of_all())


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


@pytest.fixture(scope="module")
def watch(
    stack: Endpoints, scrapes: Scrapes, collector: Collector, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    with installation(tmp_path_factory.mktemp("watch"), stack) as made:
        made.environment["MIDWATCH_TELEMETRY__PROMETHEUS"] = f"127.0.0.1:{scrapes.base}"
        made.environment["MIDWATCH_TELEMETRY__OTLP"] = collector.url
        made.environment["MIDWATCH_TELEMETRY__FORGET"] = "2s"
        made.environment["MIDWATCH_TELEMETRY__INTERVAL"] = "1s"
        for name in PROCESSES:
            made.start(name)
        made.start("trace", *midwatch("worker", "trace"))
        made.ready()
        yield made
