"""A person's act, told to `events` so that the agents and `why` know of it. Shell."""

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


def known_job(settings: Settings, asked: str, now_ms: int) -> str:
    """The whole name of the job that a person means, as `midwatch why` finds it.

    Raises:
        UsageError: no job, or more than one, is meant.
        ServiceUnreachable: Kafka cannot be asked.
    """
    return ask_name(with_connection(settings), asked, now_ms)


def coming_job(asked: str) -> str:
    """A job that need not be there yet: its name must be whole, for nothing tells its cluster.

    Raises:
        UsageError: it is not whole.
    """
    if is_job(asked.encode()):
        return asked
    raise UsageError(
        f"{asked!r} does not say which job is to come",
        where="--future",
        remedy="give its whole name, cluster:user/run, as `midwatch run --job run` would start it",
    )


def tell_act(settings: Settings, mark: Mark, act: str) -> None:
    """Raises ServiceUnreachable when Kafka cannot be told."""
    connected = with_connection(settings)
    check_kafka(connected)
    reporter = Reporter(connected)
    try:
        reporter.event(PersonAct(job=mark.job, act=act, who=mark.who, at=mark.at))
    finally:
        reporter.close()
