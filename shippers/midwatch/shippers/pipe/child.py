"""The process that ships the spool of a pipe; `midwatch.shippers.pipe.producer` starts it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from midwatch.shippers.files.sent_positions import ShipperDirectory
from midwatch.shippers.messages import reporter
from midwatch.shippers.pipe.end_report import EndReport
from midwatch.shippers.pipe.ending import fact, from_bytes
from midwatch.shippers.pipe.process import kafka_of, ship_of
from midwatch.shippers.pipe.spool import end_note
from midwatch.shippers.pipe.spool_watch import SpoolWatch
from midwatch.shippers.processes import JobProcess
from midwatch.shippers.sending.publish import Publisher
from midwatch.shippers.ship import shipper_id
from midwatch.shippers.sidecar import Ends, Sidecar
from midwatch.streams.failpoints import failpoint
from midwatch.streams.records import Generation, Origin, SchedulerFact

NOT_ARRIVED = 1


def main(message: dict[str, Any]) -> int:
    """Ships until the spool has ended or its writer is gone."""
    failpoint("child")
    folder, parent = Path(message["folder"]), message["parent"]
    state = ShipperDirectory(folder / "state")
    source = SpoolWatch(
        folder,
        Generation(0, 0, message["stream"]),
        state.load().files,
        over=lambda: os.getppid() != parent,
    )
    source.dropped = message["dropped"]
    report = reporter()
    origin = Origin(**(message["origin"] | {"shipper": shipper_id()}))

    def end_fact() -> SchedulerFact | None:
        ending = from_bytes(end_note(folder) or b"")
        return fact(origin, ending) if ending is not None else None

    end_report = None
    if topic := message.get("events"):
        end_report = EndReport(end_fact, kafka_of(message), topic, report)
        end_report.start()
    sidecar = Sidecar(
        origin,
        source,
        publisher=Publisher(kafka_of(message), message["topic"], report),
        state=state,
        settings=ship_of(message),
        ends=Ends(JobProcess(message["pid"]) if message["pid"] else None, drain=message["drain"]),
        report=report,
    )
    code = sidecar.run(ignore_signals=True)
    if end_report is None or end_fact() is None:
        return code
    return code if end_report.arrived(message["drain"]) else NOT_ARRIVED


if __name__ == "__main__":
    sys.exit(main(json.load(sys.stdin)))
