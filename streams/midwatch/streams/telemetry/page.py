"""Writes the reference page of telemetry: `python -m midwatch.streams.telemetry.page`."""

from __future__ import annotations

from collections.abc import Iterator

from midwatch.streams.telemetry import names as n
from midwatch.streams.telemetry.names import ATTRIBUTES, EVENTS, METRICS, SPANS_OF_INCIDENT
from midwatch.streams.telemetry.scrape_names import prometheus_name
from midwatch.streams.telemetry.start import PROCESSES

_HEAD = f"""# Telemetry

Written by `python -m midwatch.streams.telemetry.page > docs/telemetry.md`; a test keeps it true.

midwatch exports by OpenTelemetry: metrics of each process, one trace an incident, and log records of it.
It needs the extra `otel`. All is off until an address is named. Until then no process loads an exporter, and
handling a line costs match what it costs without a word of telemetry
([measured](../bench/results/telemetry.json)).

```yaml
telemetry:
  otlp: http://collector.example:4318   # metrics, traces and log records, by OTLP/http
  prometheus: 127.0.0.1:9464            # the port of match; the other processes take those above it
```

One of the two is enough. `midwatch up` starts the trace process where `otlp` is set. Elsewhere start one:

```
midwatch worker trace
```

OTLP goes without gRPC. Headers and certificates come from OpenTelemetry's own variables, such as
`OTEL_EXPORTER_OTLP_HEADERS`. All further settings are in [settings.md](settings.md).

Names follow OpenTelemetry's semantic conventions {n.SEMANTIC_CONVENTIONS} where those have one; those of
messaging are still in development there. `dl.*` and `slurm.*` are named as in NVIDIA's NeMo Lens.

## Who watches the watch

Each process answers these at its own port:

| path | answers |
|---|---|
| `/metrics` | a scrape |
| `/ready` | 200 while the process sees all that it must see; else 503, the state `unknown`, and why |
| `/live` | 200 while the process runs |

The ports are counted from the one of the setting, in the order {", ".join(PROCESSES)}.
Of two workers on one host, the second needs another address:

```
midwatch worker match --set telemetry.prometheus=127.0.0.1:9474
```

A job that is not seen well enough to judge it is `unknown`, and never `watched`. That is so while detect
is blind, while no node of it is in sight, and while the worker does not keep up with Kafka. A process
that died exports nothing; alert on `absent()`, and on the age of `{n.ALIVE.name}`:

```
time() - midwatch_watch_last_look_seconds > 60
```

A shipper exports only by OTLP, and only where its node has the extra; it ships all the same without it.

## Metrics

A job is named by the label `run` alone, and only by gauges. Its series end `telemetry.forget` after the
job. Those of decide last a week after a restart, because decide hears of failed ends only. At most
`telemetry.runs` jobs and `telemetry.nodes` nodes have series in each worker; jobs left out are counted.
No label holds free text. Attempt, rank and SLURM's ids stand in traces and log records.
"""

_TRACES = """
## Traces

An incident is one trace. The ids follow from the names of the incident and its commands, so they are the
same after every crash. Spans have the times of the records, not of the export. Records of an incident
carry a `traceparent` header in Kafka. The new start gets `TRACEPARENT` in its environment, so a trainer's
own spans can hang under the span `outcome` of the incident that restarted it. A start by SLURM itself, at
a requeue, does not get it.

| span | service | parent | |
|---|---|---|---|
"""

_AFTER = """
The trace process reads `incidents`, `decisions` and `commands`. No other process waits for it or for the
collector. Where the collector is away, the records wait in Kafka. What it has taken is noted in Redis and
is not exported again: not after a crash of any process, nor after a rebuild of state. Two gaps are left, and
what then comes again has the same ids. The collector may have taken spans, and the process dies before it can
note that. Or Redis loses the notes, the process dies as well, and an agent sends its last records again.

A first start begins with what comes from then on; it exports no old incidents.

## Log records

| event | |
|---|---|
"""

_CAPTURES = """
## A capture as a metric

A rule may name captures whose numbers become gauges, `midwatch.rule.capture` with rule and capture as
labels:

```yaml
version: 1
rules:
  - name: gpu_memory
    pattern: 'GPU memory: (?P<gib>[0-9.]+) GiB'
    role: context
    export: [gib]
    match: ['GPU memory: 71.2 GiB']
```

Of a rule, three hits of a rank in a chunk travel whole, and the last of them counts. What is no number is
left out.

## Attributes

| attribute | holds |
|---|---|
"""


def page() -> str:
    """The whole page."""
    return "\n".join(_rows()) + "\n"


def _rows() -> Iterator[str]:
    yield _HEAD
    yield "| metric | in a scrape | kind | unit | attributes | of | |"
    yield "|---|---|---|---|---|---|---|"
    for metric in METRICS:
        about = ", ".join(f"`{name}`" for name in metric.attributes)
        yield (
            f"| `{metric.name}` | `{prometheus_name(metric)}` | {metric.kind} | `{metric.unit}` | {about} "
            f"| {metric.of} | {metric.what} |"
        )
    yield _TRACES.rstrip("\n")
    for span in SPANS_OF_INCIDENT:
        yield f"| `{span.name}` | `midwatch-{span.service}` | {_code(span.parent)} | {span.what} |"
    yield _AFTER.rstrip("\n")
    for event, what in EVENTS.items():
        yield f"| `{event}` | {what} |"
    yield _CAPTURES.rstrip("\n")
    for name, what in ATTRIBUTES.items():
        yield f"| `{name}` | {what} |"


def _code(text: str) -> str:
    return f"`{text}`" if text else ""


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  # the page is its output
