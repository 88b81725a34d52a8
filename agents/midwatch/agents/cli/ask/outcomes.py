"""`midwatch outcomes`: how restarts ended, by the kind of end before them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.ask.shared import (
    looking_back,
    patience_option,
    print_json,
    print_rows,
    warn_unreadable,
)
from midwatch.agents.cli.options import json_option, with_settings
from midwatch.streams.errors import UsageError
from midwatch.streams.host.clock import now_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

    from midwatch.agents.rulesets.outcomes import Counts
    from midwatch.streams.settings.schema import Settings


@click.command()
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File for the setting rules.outcomes.")
@click.option(
    "--since",
    metavar="DURATION",
    default="90d",
    show_default=True,
    help="How far to look back: 10m, 24h, 30d.",
)
@json_option
@patience_option
@with_settings(connected=True)
def outcomes(*, output: Path | None, since: str, as_json: bool, patience: float, settings: Settings) -> None:
    """Count midwatch's restarts of all jobs, and how many of them passed, by the kind of end before them.

    A restart passed if its attempt ended well or got beyond the step of the failure. With --output the counts
    are a file. Name it in the setting rules.outcomes and run `midwatch rules push`. From then on the chance
    of each verdict rests on these counts too, and names their hash.
    """
    from midwatch.agents.query.inquiry import ask_all
    from midwatch.agents.query.restart_outcomes import counted_restarts
    from midwatch.agents.rulesets.outcomes import counts_hash, counts_text

    now = now_ms()
    answer = ask_all(settings, looking_back(since, now), now, patience)
    counts = counted_restarts(answer.timelines.values())
    warn_unreadable(answer.unreadable)
    if output is not None:
        try:
            _write(output, counts_text(counts))
        except OSError as error:
            raise UsageError(
                f"the outcomes cannot be written: {error.strerror}",
                where=str(output),
                remedy="give another file",
            ) from error
    if as_json:
        ends = {name: {"passed": passed, "of": of} for name, (passed, of) in counts.items()}
        print_json({"ends": ends, "hash": counts_hash(counts), "unreadable": answer.unreadable})
    else:
        print_rows(_rows(counts), "no restart has ended yet")


def _write(path: Path, text: str) -> None:
    """Writes the file in one piece: a worker may read it at any time. A device or a pipe stays what it is."""
    from midwatch.streams.host.atomic_file import replace_file

    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")
    else:
        replace_file(path.resolve(), text.encode())


def _rows(counts: Counts) -> Iterator[Text]:
    from midwatch.agents.activity import printable
    from midwatch.agents.cli.printing import columns

    rows = [(printable(name), f"{passed} of {of} passed") for name, (passed, of) in counts.items()]
    return columns(rows) if rows else iter(())
