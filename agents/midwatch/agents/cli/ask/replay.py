"""`midwatch replay FILE|DIR|-`: the verdict on log files, without Kafka, Redis or Java."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from midwatch.agents.cli.options import json_option, retries_option, with_settings
from midwatch.streams.errors import UsageError

if TYPE_CHECKING:
    from midwatch.agents.decide.decision import Rulebook
    from midwatch.agents.policies.base import Policy
    from midwatch.agents.policies.oellm import RetryCounting
    from midwatch.agents.replay.reading.jobs_of_files import JobFiles
    from midwatch.agents.replay.reading.log_files import LogFile
    from midwatch.agents.replay.recording.recording_file import Head
    from midwatch.agents.replay.replayed import Replayed
    from midwatch.agents.schedulers.saved_job import SavedJob
    from midwatch.streams.settings.schema import Settings

_WORTH_A_SCAN, _WORTH_A_PLAN = 32 << 20, 1 << 30
"""Bytes of log above which the fast scan saves more time than it takes: by the shipped plan, by a new one."""
_WORTH_PROCESSES = 16 << 20
"""Bytes of log above which matching by several processes saves more time than their start takes."""


@click.command()
@click.argument("paths", nargs=-1)
@click.option(
    "--recording", type=click.Path(path_type=Path), help="A file of `midwatch export`, instead of logs."
)
@click.option("--job", help="The job's name [default: the file's], or its id in the record.")
@click.option(
    "--rules", "presets", multiple=True, default=("default",), show_default=True, help="Preset or file."
)
@click.option("--exit-code", type=int, help="The exit code of the job, as a shell reports it.")
@click.option(
    "--scheduler",
    "record",
    type=click.Path(path_type=Path),
    help="The scheduler's record of the job: saved output of sacct, scontrol or Ray's Jobs API.",
)
@click.option(
    "--jobs-by",
    "by",
    type=click.Choice(["auto", "one", "folder", "file"]),
    default="auto",
    show_default=True,
    help="Which files of a directory are one job: by their names, all, those of a sub-folder, or each alone.",
)
@click.option("--policy", help="Policy or file [default: verdict; for a recording, its own].")
@retries_option
@json_option
@with_settings()
def replay(
    *,
    paths: tuple[str, ...],
    job: str | None,
    presets: tuple[str, ...],
    policy: str | None,
    settings: Settings,
    **options: Any,
) -> int:
    """Show what happened in log files, the line that proves it, and what the watch would have decided.

    Several files, or a directory of them, are one job. A directory holds several jobs if its files' names end
    in several job ids, or its sub-folders' names do (`--jobs-by`). The answer is then a table, and with
    `--json` a list. `-` reads standard input. Files may be packed by gzip, bzip2 or zstd, and of any size. If
    a file holds several starts, the last one counts. Exit code 1: a failure or a finding. Of the settings
    only `extensions` counts: foreign detectors and policies.
    """
    if options["recording"] is not None:
        if paths:
            raise click.UsageError("give log files or --recording, not both")
        return _recording(options["recording"], policy, settings, as_json=options["as_json"])
    if not paths:
        raise click.UsageError("give log files, a directory, -, or --recording FILE")
    from midwatch.agents.decide.decision import Rulebook
    from midwatch.agents.policies.oellm import RetryCounting
    from midwatch.agents.replay.job_replay import replay as replay_files
    from midwatch.agents.replay.matched_files import processes_for
    from midwatch.agents.replay.output import as_plain, as_table, as_text
    from midwatch.agents.replay.reading.given_files import given_files, shown_progress
    from midwatch.agents.replay.reading.log_files import line_count
    from midwatch.agents.replay.starts.appended_starts import replay_last
    from midwatch.agents.rulesets.bundles import watched_rules
    from midwatch.agents.rulesets.extensions import extensions_of
    from midwatch.agents.rulesets.foreign_parts import detectors_in, policies_in
    from midwatch.rules.detectors.limits import WatchLimits
    from midwatch.streams.records import codec

    extensions = extensions_of(settings.extensions)
    foreign, judges = policies_in(extensions.named(), extensions)
    loaded = _policy(policy or "verdict", RetryCounting(options["retries"]), foreign)
    book = Rulebook(
        {loaded.name: loaded}, sign=lambda command: command, default_policy=loaded.name, judges=judges
    )
    told = options["exit_code"] is not None or options["record"] is not None
    detectors = detectors_in(extensions.named(), extensions)
    with given_files(paths, stdin=sys.stdin.buffer) as given:
        jobs = _jobs(paths, given.files, options["by"], named=job is not None or told)
        end = _end(options["exit_code"], options["record"], job, given.files)
        watched = watched_rules(presets, scan=_is_worth_a_scan(given.size, presets))
        for note in dict.fromkeys((*given.notes, *watched.notes, *loaded.notes)):
            click.echo(note, err=True)
        with shown_progress(given.size) as advance:

            def watch(name: str, files: Sequence[LogFile]) -> Replayed:
                return replay_files(
                    name,
                    files,
                    watched,
                    book,
                    WatchLimits(),
                    detectors=detectors,
                    processes=processes_for(sum(file.size() for file in files), _WORTH_PROCESSES),
                    advance=advance,
                    end=end.state if end else None,
                    failed_step=end.failed_step if end else None,
                    source=(end.cluster, next(iter(end.names), "file")) if end else ("replay", "file"),
                )

            if jobs is None:
                name = job or _job_name(paths[0])
                results = [replay_last(given.files, partial(watch, name))]
            else:
                results = [replay_last(files, partial(watch, _named(name))) for name, files in jobs]
        counts = [sum(map(line_count, files)) for _, files in jobs or ()]
    if options["as_json"]:
        plain = [as_plain(result) for result in results]
        click.echo(codec.plain_to_json(plain[0] if jobs is None else plain))
    else:
        table = as_text(results[0]) if jobs is None else as_table(list(zip(results, counts, strict=True)))
        click.echo("\n".join(table))
    return 1 if any(result.verdict.state == "failed" or result.findings for result in results) else 0


def _jobs(paths: Sequence[str], files: Sequence[LogFile], by: str, *, named: bool) -> list[JobFiles] | None:
    """The jobs of a directory, or None where all files are one job.

    `named`: the caller told what holds for one job.
    """
    from midwatch.agents.replay.reading.jobs_of_files import jobs_of

    if by == "one" or len(paths) != 1 or not Path(paths[0]).is_dir():
        if by in ("folder", "file"):
            raise click.UsageError(f"--jobs-by {by} needs one directory")
        return None
    jobs = jobs_of(paths[0], files, by)
    if len(jobs) < 2 and (by == "auto" or named):
        return None
    if named:
        names = ", ".join((*(name for name, _ in jobs[:3]), *([".."] if len(jobs) > 3 else ())))
        raise UsageError(
            f"{len(jobs)} jobs have their logs there: {names}",
            where=paths[0],
            remedy="give the files of one job, or --jobs-by one",
        )
    return jobs


def _end(
    exit_code: int | None, record: Path | None, job: str | None, files: Sequence[LogFile]
) -> SavedJob | None:
    """How the job ended, if the caller knows it."""
    from midwatch.agents.replay.reading.own_job_id import clues_of
    from midwatch.agents.replay.scheduler_record import ended_job, from_exit_code
    from midwatch.agents.schedulers.saved_job import SavedJob

    if exit_code is not None and record is not None:
        raise click.UsageError("give --exit-code or --scheduler, not both")
    if exit_code is not None:
        return SavedJob("replay", (), from_exit_code(exit_code))
    if record is None:
        return None
    try:
        text = record.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise UsageError(
            f"the record cannot be read: {error.strerror}", where=str(record), remedy="give a file"
        ) from error
    return ended_job(text, str(record), clues_of(job, files))


def _recording(file: Path, policy: str | None, settings: Settings, *, as_json: bool) -> int:
    from midwatch.agents.replay.recording import recording_file as format_
    from midwatch.agents.replay.recording.refold import bundles_in, refold
    from midwatch.agents.replay.recording.refold_output import as_plain, as_text, replayed
    from midwatch.agents.rulesets.extensions import extensions_of
    from midwatch.rules.detectors.limits import WatchLimits
    from midwatch.streams.records import codec

    try:
        recording = format_.read(file.read_bytes().splitlines(), str(file))
    except OSError as error:
        raise UsageError(
            f"the recording cannot be read: {error.strerror}",
            where=str(file),
            remedy="make one with `midwatch export JOB -o FILE`",
        ) from error
    limits = {name: value for name, value in recording.head.limits.items() if name in WatchLimits.__slots__}
    contents = bundles_in(recording, extensions_of(settings.extensions))
    book = _rulebook(recording.head, policy, lenient=bool(recording.rules))
    if policy is not None:
        replaced = {recording.head.policy: book.policies[recording.head.policy]}
        contents = {h: replace(c, policies={**c.policies, **replaced}) for h, c in contents.items()}
    refolded = refold(recording, WatchLimits(**limits), book, contents)
    if as_json:
        click.echo(codec.plain_to_json(as_plain(recording, refolded)))
    else:
        click.echo("\n".join(as_text(recording, refolded)))
    result = replayed(recording, refolded)
    return 1 if result.verdict.state == "failed" or result.findings else 0


def _rulebook(head: Head, policy: str | None, *, lenient: bool) -> Rulebook:
    """The shipped policies, and the recording's own policy or `policy` in its place.

    `lenient`: the recording holds bundles, so its own policy need not be a file on this machine.
    """
    from midwatch.agents.decide.decision import Rulebook
    from midwatch.agents.policies.loader import load_policy, shipped_policies
    from midwatch.agents.policies.oellm import RetryCounting

    policies = {name: load_policy(name) for name in shipped_policies()}
    if policy is not None or (head.policy not in policies and not lenient):
        policies[head.policy] = load_policy(policy or head.policy, RetryCounting(head.retries))
    return Rulebook(policies, lambda command: command, default_policy=head.policy, acting=head.acting)


def _policy(name: str, counting: RetryCounting, foreign: Mapping[str, Policy]) -> Policy:
    """By its name or file; a foreign policy by its name alone."""
    from midwatch.agents.policies.loader import load_policy

    return foreign[name] if name in foreign else load_policy(name, counting)


def _is_worth_a_scan(size: int, presets: tuple[str, ...]) -> bool:
    from midwatch.rules.loader import PLANNED

    return size > (_WORTH_A_SCAN if presets == (PLANNED,) else _WORTH_A_PLAN)


def _job_name(path: str) -> str:
    return _named("stdin" if path == "-" else Path(path).resolve().stem)


def _named(name: str) -> str:
    return f"replay:file/{re.sub(r'[^A-Za-z0-9._@+-]', '_', name) or 'log'}"
