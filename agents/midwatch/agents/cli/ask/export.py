"""`midwatch export JOB`: a job's records as a file, which `midwatch replay --recording` folds again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.ask.shared import patience_option
from midwatch.agents.cli.options import with_settings
from midwatch.streams.errors import UsageError
from midwatch.streams.host.clock import now_ms

if TYPE_CHECKING:
    from midwatch.streams.settings.schema import Settings


@click.command()
@click.argument("job")
@click.option(
    "-o", "--output", type=click.Path(path_type=Path), help="File to write [default: standard output]."
)
@patience_option
@with_settings(connected=True)
def export(job: str, output: Path | None, patience: float, settings: Settings) -> None:
    """Write a job's records of the topics events and incidents as JSON lines.

    `midwatch replay --recording FILE` derives the same verdicts and decisions from it, without Kafka.
    """
    from midwatch.agents.query.inquiry import ask_job
    from midwatch.agents.replay.recording.export import export as record
    from midwatch.agents.replay.recording.recording_file import lines_of

    timeline, _ = ask_job(settings, job, now_ms(), patience)
    recording = record(settings, timeline.job, patience)
    text = b"".join(line + b"\n" for line in lines_of(recording))
    if output is None:
        sys.stdout.buffer.write(text)
        return
    try:
        output.write_bytes(text)
    except OSError as error:
        raise UsageError(
            f"the recording cannot be written: {error.strerror}",
            where=str(output),
            remedy="give another file",
        ) from error
    count = len(recording.events) + len(recording.incidents)
    click.echo(f"{count} records of {timeline.job} in {output}", err=True)
