"""Measure what telemetry costs match: `make bench-telemetry`. Fails where it costs anything while it is off.

Three ways of handling the same chunks take turns in one process: the work alone, without a word of telemetry;
what the worker calls, with telemetry off; and with telemetry on. Times are the processor's, not the clock's.
"""

from __future__ import annotations

import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from midwatch.agents.match.chunk_hits import match
from midwatch.agents.match.metrics import MatchMetrics
from midwatch.agents.match.record_size import encoded
from midwatch.agents.match.worker import _read, handle
from midwatch.agents.rulesets.bundles import watched_rules
from midwatch.rules.prefilter.workloads import background
from midwatch.streams.records import Anchor, Chunk, Generation, Origin, Section, codec
from midwatch.streams.records.identity import message_key
from midwatch.streams.settings.schema import TelemetrySettings
from midwatch.streams.telemetry.meter import Identity
from midwatch.streams.telemetry.sdk import SdkExport
from midwatch.streams.worker.fold import Message, Send

ROUNDS = 40
LINES = 250
"""About as many as a busy rank prints between two chunks."""
CHUNKS = 40
NOISE = 0.02
"""Two ways that do the same differ by less."""
RESULT = Path("bench/results/telemetry.json")
JOB, NODE = "local:me/bench", "n0"


def _messages() -> list[Message]:
    lines = background(1 << 20).splitlines(keepends=True)
    made = []
    for number in range(CHUNKS):
        text = b"".join(lines[number * LINES % len(lines) :][:LINES])
        section = Section(
            path="/logs/rank_0.log",
            generation=Generation(1, 2, "f"),
            size=len(text),
            lines=text.count(b"\n"),
            anchors=(Anchor(0, 0, 1),),
            end=len(text),
            read_before=time.time(),
            read_at=time.time(),
        )
        origin = Origin(JOB, NODE, 1, "local:1:1", "boot", "shipper")
        sent = codec.encode_log(Chunk(origin, (section,), text))
        made.append(Message("logs", 0, number, 1, 1, message_key(JOB, NODE), sent.value, sent.headers))
    return made


def main() -> None:
    """Write telemetry.json; exit code 1 where telemetry costs something while it is off."""
    watched, messages = watched_rules(("default",)), _messages()
    export = SdkExport(TelemetrySettings(), Identity("bench", "b", "b"), ("127.0.0.1", 0))
    metrics = MatchMetrics(TelemetrySettings(), export.meter)

    def bare(message: Message) -> tuple[Send, ...]:
        record = _read(message, None)
        assert isinstance(record, Chunk)
        key = record.origin.job.encode()
        hits = match(record, watched.rules, watched.hash, message.timestamp_ms, any_line=watched.any_line)
        return () if hits is None else (Send("events", key, encoded(hits)),)

    ways: dict[str, Callable[[Message], object]] = {
        "without a word of it": bare,
        "off": lambda message: handle(message, watched, "events"),
        "on": lambda message: handle(message, watched, "events", None, metrics),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for number in range(ROUNDS + 2):
        for name in sorted(ways, key=lambda each: hash((each, number))):
            begun = time.process_time()
            for message in messages:
                ways[name](message)
            if number >= 2:
                seconds[name].append(time.process_time() - begun)
    least = {name: min(each) for name, each in seconds.items()}
    begun = time.process_time()
    export._scrape()
    scrape = time.process_time() - begun
    ratios = {name: round(value / least["without a word of it"], 4) for name, value in least.items()}
    result = {
        "what": "CPU seconds of match for the same chunks; ratio of the least of all rounds, in turns",
        "machine": {"cores": os.cpu_count(), "python": platform.python_version()},
        "chunks": CHUNKS,
        "lines_in_a_chunk": LINES,
        "rounds": ROUNDS,
        "least_s": {name: round(value, 5) for name, value in least.items()},
        "median_s": {name: round(statistics.median(each), 5) for name, each in seconds.items()},
        "ratio": ratios,
        "scrape_s": round(scrape, 5),
    }
    RESULT.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result, indent=1))
    sys.exit(ratios["off"] > 1 + NOISE)


if __name__ == "__main__":
    main()
