"""`midwatch replay FILE|DIR|-`: the verdict on logs at rest, without Kafka, Redis or Java."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from midwatch.agents.cli.options import json_option, retries_option
from midwatch.streams.errors import UsageError

if TYPE_CHECKING:
    from midwatch.agents.replay.logs import LogFile


@click.command()
@click.argument("paths", nargs=-1, required=True)
@click.option("--job", help="The job's name [default: the file's].")
@click.option(
    "--rules", "presets", multiple=True, default=("default",), show_default=True, help="Preset or file."
)
@click.option("--policy", default="verdict", show_default=True, help="Policy or file.")
@retries_option
@json_option
def replay(
    paths: tuple[str, ...], job: str | None, presets: tuple[str, ...], policy: str, **asked: Any
) -> int:
    """Say what happened in log files, prove it, and say what the watch would have done.

    Several files, or a directory of them, are one job. `-` reads standard input. Exit code 1: a failure.
    """
    from midwatch.agents.bundles import watched_rules
    from midwatch.agents.decision import Rulebook
    from midwatch.agents.incident.limits import Limits
    from midwatch.agents.policies.loader import load_policy
    from midwatch.agents.policies.oellm import RetryCounting
    from midwatch.agents.replay.report import as_plain, as_text
    from midwatch.agents.replay.run import replay as replay_files
    from midwatch.streams import codec

    files = [file for path in paths for file in _files(path)]
    loaded, watched = load_policy(policy, RetryCounting(asked["retries"])), watched_rules(presets)
    for note in dict.fromkeys((*watched.notes, *loaded.notes)):
        click.echo(note, err=True)
    book = Rulebook({loaded.name: loaded}, sign=lambda command: command, default_policy=loaded.name)
    name = job or _job_name(paths[0])
    done = replay_files(name, files, watched, book, Limits())
    if asked["as_json"]:
        click.echo(codec.plain_to_json(as_plain(done)))
    else:
        click.echo("\n".join(as_text(done)))
    return 1 if done.verdict.state == "failed" or done.findings else 0


def _job_name(path: str) -> str:
    stem = "stdin" if path == "-" else Path(path).resolve().stem
    return f"replay:file/{re.sub(r'[^A-Za-z0-9._@+-]', '_', stem) or 'log'}"


def _files(name: str) -> list[LogFile]:
    from midwatch.agents.replay.logs import LogFile

    if name == "-":
        return [LogFile("-", sys.stdin.buffer.read(), time.time())]
    path = Path(name)
    try:
        inside = sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]
        return [LogFile(str(p), p.read_bytes(), p.stat().st_mtime) for p in inside]
    except OSError as error:
        raise UsageError(
            f"the log cannot be read: {error.strerror}",
            where=str(error.filename or name),
            remedy="give a file, a directory or -",
        ) from error
