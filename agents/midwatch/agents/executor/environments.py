"""The variables of jobs: in files of their user's own, and in no record. Shell.

A spec that an earlier midwatch wrote still holds its variables, in the open. The executor writes them into a
file and publishes a spec that names it. The new spec says which one it replaces. So detect and decide may go
on with the old hash, and no command on its way is lost.
"""

from __future__ import annotations

import getpass
import time
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from midwatch.agents.reporter import Reporter, say
from midwatch.agents.schedulers.environment_file import forget_environments, keep_environment
from midwatch.agents.schedulers.local.effect_file import read_all, read_past
from midwatch.agents.schedulers.wrapping import environment_of, is_sbatch, script_of, verified_script
from midwatch.agents.signing import Signer, spec_hash
from midwatch.agents.watcher.census_reader import CensusReader
from midwatch.streams.errors import MidwatchError
from midwatch.streams.records import Spec

OFTEN_S = 3600.0
"""So often the executor looks for environments without a spec. A younger one may still get its spec."""


def forget(state_directory: Path, census: CensusReader) -> None:
    """Deletes the environments whose specs are gone; that of a job which is being started stays."""
    try:
        written_before = time.time() - OFTEN_S
        forget_environments(state_directory, census.environment_files(), older_than=written_before)
    except OSError as error:
        say(f"environments of old jobs cannot be deleted: {error}")


def replace_open_specs(
    state_directory: Path, census: CensusReader, reporter: Reporter, signer: Signer
) -> None:
    """Replaces the last spec of each job of ours that holds variables. Call it once the census has caught up.

    A spec of another installation, user or host stays: its executor could not read our file. A failure is
    logged, and that job's old spec stays valid.
    """
    verifier, number = signer.verifier(), 0
    started: frozenset[str] | None = None  # read once, and only if a local job needs it
    for spec in census.open_specs():
        if spec.user != getpass.getuser() or not verifier.accepts(spec):
            continue
        try:
            if is_sbatch(spec.argv):
                ours = _has_its_script_in(state_directory, spec)
            else:
                started = _jobs_started_in(state_directory) if started is None else started
                ours = spec.job in started
            if ours:
                reporter.spec(signer.sign(_closed(spec, state_directory)))
                number += 1
        except (OSError, MidwatchError) as error:
            why = error.in_one_line if isinstance(error, MidwatchError) else str(error)
            say(f"{spec.job}: its spec still holds variables, and cannot be replaced: {why}")
    if number:
        say(f"specs of an earlier midwatch held variables, and files of their user hold them now: {number}")


def _closed(spec: Spec, state_directory: Path) -> Spec:
    """The same spec, with its variables in a new file. Every start gets what it got before."""
    path = keep_environment(state_directory, environment_of(spec))
    return replace(spec, environment={}, environment_file=str(path), replaces=spec_hash(spec))


def _has_its_script_in(state_directory: Path, spec: Spec) -> bool:
    """Whether the job's script lies in this state directory. Only then its executor reads our file."""
    try:
        script = script_of(spec.argv).resolve()
        verified_script(script)
    except MidwatchError:
        return False
    return script.parent == (state_directory / "scripts").resolve()


def _jobs_started_in(state_directory: Path) -> frozenset[str]:
    """The jobs whose starts lie in `effects`. A job without a name of its own has its process's id."""
    jobs = set[str]()
    for record in (*read_all(state_directory), *read_past(state_directory)):
        named = [name for word, name in pairwise(record.argv) if word == "--job"]
        jobs.update(named, (f"{name}/{record.pid}" for name in named))
    return frozenset(jobs)
