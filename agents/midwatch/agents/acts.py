"""Writes a person's act to `events`, so that the agents and `why` know of it. Shell."""

from __future__ import annotations

from midwatch.agents.executor.arming import Mark
from midwatch.agents.query.inquiry import ask_name
from midwatch.agents.reporter import Reporter
from midwatch.streams.errors import UsageError
from midwatch.streams.records import PersonAct
from midwatch.streams.records.identity import is_job
from midwatch.streams.services.connection import with_connection
from midwatch.streams.services.reachable import check_kafka
from midwatch.streams.settings.schema import Settings


def known_job(settings: Settings, name: str, now_ms: int) -> str:
    """The whole name of the job that `name` means, as `midwatch why` finds it.

    Raises:
        UsageError: no job has this name, or more than one.
        ServiceUnreachable: Kafka does not answer.
    """
    return ask_name(with_connection(settings), name, now_ms)


def coming_job(name: str) -> str:
    """The name of a job that may not exist yet. It must be whole, because no record gives its cluster.

    Raises:
        UsageError: the name is not whole.
    """
    if is_job(name.encode()):
        return name
    raise UsageError(
        f"{name!r} is not the whole name of a job",
        where="--future",
        remedy="give cluster:user/run, the name that `midwatch run --job run` would give the job",
    )


def tell_act(settings: Settings, mark: Mark, act: str) -> None:
    """Writes the act to `events`.

    Raises:
        ServiceUnreachable: Kafka does not take the record.
    """
    connected = with_connection(settings)
    check_kafka(connected)
    reporter = Reporter(connected)
    try:
        reporter.event(PersonAct(job=mark.job, act=act, who=mark.who, at=mark.at))
    finally:
        reporter.close()
