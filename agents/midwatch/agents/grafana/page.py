"""Writes the page of the dashboards and alerts: `python -m midwatch.agents.grafana.page`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from midwatch.agents.grafana.alerts import ALERTS, DEAD_MAN, Alert
from midwatch.agents.grafana.services import FIRST_PORT
from midwatch.agents.grafana.write import DASHBOARDS

_HEAD: Final = f"""# Grafana, Prometheus and alerts

Written by `python -m midwatch.agents.grafana.page > docs/grafana.md`; a test keeps it true.

The folder [observe](../observe) holds four dashboards, alert rules, and files for the services around them.
All of it is written by `python -m midwatch.agents.grafana.write observe`, from the names in
[telemetry.md](telemetry.md).

## With docker compose

```sh
docker compose --profile observe up --build
```

This starts Prometheus, Alertmanager, Loki, Tempo, an OpenTelemetry collector and Grafana beside the watch.
Grafana is at `http://127.0.0.1:3000`, and a visitor may look at all dashboards without a password. Put your
own addresses into `observe/alertmanager/alertmanager.yml`: until then alerts reach nobody.

Prometheus scrapes match, detect, decide and the executor, from port {FIRST_PORT} upwards. It scrapes the
messages too where their profile is named beside this one. The trace process sends its metrics, all spans and
all log records by OTLP to the collector. They go on to Prometheus, Tempo and Loki. The toy job's shipper
exports nothing here, because its image has no OpenTelemetry.

## With what you have

- Import the files of `observe/dashboards` into Grafana. Each asks which Prometheus and which Loki to read.
- Give `observe/prometheus/alerts.yml` to Prometheus, and scrape as `observe/prometheus/prometheus.yml` does.
  The `job_name` must end in `/midwatch-` and the process, as it does by itself where metrics come by OTLP.
- Let each process's metrics come one way only, by scrape or by OTLP. Sums would count both.

## What was seen, and what was not

`make test` runs the whole chain under a real Prometheus 2.42 and a real Alertmanager 0.25, from Debian. A job
fails, is rescued, has a loss spike, and fails for good. Then each query of each dashboard gives series. The
queries of shippers are the exception: shippers export by OTLP only, and that Prometheus does not take it.
Each alert is evaluated, those of what happened fire, and Alertmanager delivers them to a local sink.
`promtool test rules` plays the alerts with their times.

`make test-otel` sends all by OTLP through a real collector 0.158 into a real Prometheus 3.15 and a real Loki
3.7.8, which Go builds. There each query gives series, also those of shippers. Each panel of log records finds
those of the job. A record of the incident holds the line that proves it and the id of its trace, and that
trace comes whole out of the collector.

`make check-dashboards` holds the JSON against Grafana's own types, `@grafana/schema`.

Grafana and Tempo were never run with these files, and neither was Docker. So no picture of a dashboard was
seen, no annotation on a curve, no link from a log record to its trace, and no start of this profile.
"""

_LABEL: Final = re.compile(r"\{\{ \$labels\.(\w+) \}\}")
_VALUE: Final = re.compile(r"\{\{ \$value[^}]*\}\}")


def page() -> str:
    """The whole page."""
    return "\n".join(_rows()) + "\n"


def _rows() -> Iterator[str]:
    yield _HEAD
    yield "## Alerts"
    yield ""
    yield (
        f"`{DEAD_MAN}` is the dead-man switch. It fires as long as match, detect, decide and the executor\n"
        "are there, see all that they must see, and have looked lately. A blind watcher is unknown, never\n"
        "healthy: then it ends."
    )
    yield ""
    yield "| alert | severity | holds for | says | what to do |"
    yield "|---|---|---|---|---|"
    seen: set[str] = set()
    for alert in ALERTS:
        if alert.name not in seen:
            yield _alert(alert)
        seen.add(alert.name)
    for board in DASHBOARDS:
        yield ""
        yield f"## {board.title}"
        yield ""
        yield board.what
        yield ""
        yield "| panel | shows |"
        yield "|---|---|"
        for panel in board.panels:
            yield f"| {panel.title} | {panel.what} |"
        for annotation in board.annotations:
            yield f"| annotation: {annotation.name} | {annotation.what} |"


def _alert(alert: Alert) -> str:
    said = _LABEL.sub(r"*\1*", _VALUE.sub("*N*", alert.summary))
    return f"| `{alert.name}` | {alert.severity} | {alert.hold} | {said} | {alert.remedy} |"


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  # the page is its output
