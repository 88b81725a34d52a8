"""SLURM through its command line: squeue, scontrol, sacct to look; sbatch, scontrol release, scancel to act.

The driver does not use the REST interface. That needs a token, changes its version about twice a year, cannot
requeue, and has no idempotency key either.
"""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from midwatch.agents.schedulers.base import (
    ClusterUnreachable,
    DependentJob,
    Hint,
    SchedulerEpoch,
    SchedulerJob,
    StartSpec,
    StartState,
    Sweep,
)
from midwatch.agents.schedulers.calls import CallAnswer, Caller, environment
from midwatch.agents.schedulers.environment_file import entries
from midwatch.agents.schedulers.slurm import dependents
from midwatch.agents.schedulers.slurm import text as slurm_text
from midwatch.agents.schedulers.slurm.exported import UMASK
from midwatch.agents.schedulers.slurm.sbatch_argv import restart_argv
from midwatch.streams.errors import ConfigurationError
from midwatch.streams.records.identity import native_id

LOOK_S = 25.0  # with slurmctld down, squeue gives up after about 10 s and scontrol after 20
ACT_S = 30.0
_SQUEUE = ["squeue", "-h", "-r", "-t", "all", "-O", slurm_text.SQUEUE_FIELDS]
_DEPENDENCIES = ["squeue", "-h", "-r", "-t", "PENDING", "-O", dependents.FIELDS]
_UNKNOWN_JOB = re.compile(r"Invalid job id", re.IGNORECASE)


class SlurmCluster:
    """One SLURM cluster. midwatch runs as the jobs' owner, or as root or an operator for several users."""

    kind = "slurm"
    holds = True

    def __init__(self, name: str, caller: Caller, *, settings: Mapping[str, str] | None = None) -> None:
        """`settings`: variables for SLURM's tools, such as SLURM_CONF in an unusual place."""
        self.name = name
        self._caller = caller
        self._environment = environment(settings)
        self._settings = dict(settings or {})

    def sweep(self) -> Sweep:
        return Sweep(self._rows(self._look(_SQUEUE).out))

    def find(self, effect_key: str) -> tuple[SchedulerJob, ...]:
        return self.sweep().carrying(effect_key)

    def epoch(self) -> SchedulerEpoch:
        try:
            return slurm_text.epoch(self._config())
        except ValueError as error:
            raise self._unreachable("scontrol", str(error)) from error

    def state(self, incarnation: str) -> StartState:
        try:
            job = self._job(native_id(incarnation))
            if job is not None and job.incarnation == incarnation and job.state.word != "CANCELLED":
                return job.state
            accounted = self._accounted(native_id(incarnation), _restarts(incarnation))
            if accounted is not None and (job is None or accounted.over):
                return accounted
            if job is None:
                return StartState("absent")
            if job.incarnation == incarnation:
                return job.state
            return StartState(
                "ended", word="REQUEUED", mode="ended", reason=f"SLURM started it again as {job.incarnation}"
            )
        except ClusterUnreachable as error:
            return StartState("unknown", reason=error.what)

    def submit_held(self, spec: StartSpec, effect_key: str, after: str = "") -> Hint:
        try:
            uid = _uid_option(spec.user)
            with _handed(spec) as descriptors:
                argv = restart_argv(
                    spec.argv,
                    effect_key,
                    after=after,
                    exclude_nodes=spec.exclude_nodes,
                    uid=uid,
                    export=spec.export,
                    export_file="".join(map(str, descriptors)),
                )
                variables = environment({**({} if spec.by_file else spec.environment), **self._settings})
                answer = self._caller.run(
                    argv,
                    variables,
                    cwd=spec.cwd,
                    timeout=ACT_S,
                    descriptors=descriptors,
                    umask=int(spec.environment.get(UMASK) or "-1", 8),
                )
        except ConfigurationError as error:
            return Hint("refused", error.in_one_line)
        except OSError as error:
            return Hint("refused", f"sbatch cannot be started in {spec.cwd}: {error.strerror}")
        if answer.code == 0:
            return Hint("done", answer.out.strip())
        text = _last_line(answer)
        final = answer.code is not None and answer.code > 0 and slurm_text.is_final(answer.err)
        return Hint("refused" if final else "unclear", text)

    def retire(self, effect_key: str, before: str) -> None:
        """Does nothing: SLURM forgets an ended job within minutes, so no later start can meet its key."""

    def release(self, incarnation: str, effect_key: str) -> Hint:
        return self._act(["scontrol", "release", native_id(incarnation)], incarnation, effect_key)

    def cancel(self, incarnation: str, effect_key: str = "", *, force: bool = False) -> Hint:  # noqa: ARG002 - KillWait forces
        return self._act(["scancel", native_id(incarnation)], incarnation, effect_key)

    def dependents(self, native: str) -> tuple[DependentJob, ...]:
        return dependents.waiting(self._look([*_DEPENDENCIES]).out, native)

    def repointing(self, dependent: DependentJob, old: str, new: str) -> tuple[str, ...]:
        pointed = dependents.pointed_at(dependent.dependency, old, new)
        line = ("scontrol", "update", f"jobid={dependent.native_id}", f"dependency={pointed}")
        return line if pointed else ()

    def repoint(self, argv: tuple[str, ...]) -> Hint:
        answer = self._caller.run(argv, self._environment, timeout=ACT_S)
        return Hint("done" if answer.code == 0 else "unclear", _last_line(answer))

    def _act(self, argv: list[str], incarnation: str, effect_key: str) -> Hint:
        """Acts on this start only: after a crash of slurmctld the id may be another job's."""
        try:
            job = self._job(native_id(incarnation))
        except ClusterUnreachable as error:
            return Hint("unclear", error.what)
        if job is None:
            return Hint("refused", f"SLURM does not know {native_id(incarnation)}")
        if job.incarnation != incarnation:
            return Hint("refused", f"meant for {incarnation}, but SLURM shows {job.incarnation}")
        if effect_key and job.effect_key != effect_key:
            return Hint("refused", f"{job.native_id} does not carry the key {effect_key}")
        answer = self._caller.run(argv, self._environment, timeout=ACT_S)
        return Hint("done" if answer.code == 0 else "unclear", _last_line(answer))

    def _job(self, native: str) -> SchedulerJob | None:
        if not slurm_text.NATIVE_ID.fullmatch(native):
            return None
        array = native.partition("_")[0]
        for asked in dict.fromkeys((native, array)):  # under its array, where SLURM forgot the task's index
            answer = self._run([*_SQUEUE, "-j", asked])
            if answer.code != 0 and not _UNKNOWN_JOB.search(answer.err):
                raise self._unreachable("squeue", _last_line(answer))
            rows = self._rows(answer.out) if answer.code == 0 else ()
            if found := next((job for job in rows if job.native_id == native), None):
                return found
        return None

    def _rows(self, text: str) -> tuple[SchedulerJob, ...]:
        try:
            return slurm_text.queue(text)
        except ValueError as error:
            raise self._unreachable("squeue", str(error)) from error

    def _accounted(self, native: str, restarts: int) -> StartState | None:
        if not slurm_text.accounts(self._config()):
            return None
        argv = ["sacct", "-n", "-P", "-X", "-D", "-j", native, "-o", slurm_text.SACCT_FIELDS]
        return slurm_text.from_sacct(self._look(argv).out, restarts)

    def _config(self) -> str:
        return self._look(["scontrol", "show", "config"]).out

    def _look(self, argv: list[str]) -> CallAnswer:
        answer = self._run(argv)
        if answer.code != 0:
            raise self._unreachable(argv[0], _last_line(answer))
        return answer

    def _run(self, argv: list[str]) -> CallAnswer:
        try:
            return self._caller.run(argv, self._environment, timeout=LOOK_S)
        except OSError as error:
            raise self._unreachable(argv[0], f"it cannot be started: {error.strerror}") from error

    def _unreachable(self, program: str, why: str) -> ClusterUnreachable:
        return ClusterUnreachable(
            f"{program} gave no usable answer: {why}",
            where=f"cluster {self.name}",
            remedy="check `scontrol ping`; midwatch tries again by itself and does nothing until then",
        )


@contextmanager
def _handed(spec: StartSpec) -> Iterator[tuple[int, ...]]:
    """The descriptor of an unnamed file with the job's environment, for `sbatch --export-file`; maybe none.

    So the variables stand neither in a command line nor in the environment of a process.
    """
    if not spec.by_file:
        yield ()
        return
    descriptor = os.memfd_create("midwatch-environment")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(entries(spec.environment))
        os.lseek(descriptor, 0, os.SEEK_SET)
        yield (descriptor,)
    finally:
        os.close(descriptor)


def _restarts(incarnation: str) -> int:
    return int(incarnation.rpartition(":")[2])


def _uid_option(user: str) -> str:
    """The user for `--uid`, "" for our own. Raises ConfigurationError for another user unless we are root."""
    if not user or user == getpass.getuser():
        return ""
    if os.geteuid() == 0:
        return user
    raise ConfigurationError(
        f"a job of {user} cannot be submitted by {getpass.getuser()}",
        remedy=f"run the executor as {user}, or as root",
    )


def _last_line(answer: CallAnswer) -> str:
    lines = (answer.err.strip() or answer.out.strip()).splitlines()
    return lines[-1].strip() if lines else f"exit code {answer.code}"
