"""A person's act, told to `events` so that the agents and `why` know of it. Shell."""

from __future__ import annotations

import getpass

from midwatch.agents.executor.arming import Mark
from midwatch.agents.executor.report import Reporter
from midwatch.streams.connection import with_connection
from midwatch.streams.identity import job_name
from midwatch.streams.records import PersonAct
from midwatch.streams.services import check_kafka
from midwatch.streams.settings import Settings


def full_name(text: str, settings: Settings) -> str:
    """The job's whole name, from its run or from the whole of it. Raises ConfigurationError."""
    return str(job_name(text, cluster=settings.cluster, user=getpass.getuser()))


def tell_act(settings: Settings, mark: Mark, act: str) -> None:
    """Raises ServiceUnreachable when Kafka cannot be told."""
    connected = with_connection(settings)
    check_kafka(connected)
    reporter = Reporter(connected)
    try:
        reporter.event(PersonAct(job=mark.job, act=act, who=mark.who, at=mark.at))
    finally:
        reporter.close()
