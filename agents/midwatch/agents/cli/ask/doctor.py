"""`midwatch doctor`: checks whether everything is reachable, safe and configured."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.options import json_option, with_settings
from midwatch.streams.errors import MidwatchError

if TYPE_CHECKING:
    from midwatch.agents.rulesets.reload.status import RulesStatus
    from midwatch.streams.settings.schema import Settings


_MODES = {
    "observe": "observe: it says what it would do and does nothing",
    "act": "act: it acts for armed jobs",
}

_ON_RAY = (
    "Ray: midwatch acts on the submissions that `midwatch run` made. It only observes all others, such as "
    "those of a RayJob of KubeRay, whose backoffLimit restarts them by itself"
)


@click.command()
@json_option
@with_settings()
def doctor(as_json: bool, settings: Settings) -> int:
    """Check settings, secrets, Kafka, topics and Redis. It changes nothing."""
    from midwatch.streams.services.connection import with_connection
    from midwatch.streams.services.reachable import check_kafka, check_redis
    from midwatch.streams.services.topic_admin import check_topics
    from midwatch.streams.settings.schema import as_plain

    failures: list[MidwatchError] = []
    passed: list[str] = []

    def check(name: str, test: Callable[[], object]) -> None:
        try:
            test()
        except MidwatchError as error:
            failures.append(error)
        else:
            passed.append(name)

    def connect() -> None:
        nonlocal settings
        settings = with_connection(settings)

    check("addresses are known", connect)
    if settings.kafka.bootstrap:
        check("Kafka answers", lambda: check_kafka(settings))
    if "Kafka answers" in passed:
        check("topics are as they must be", lambda: check_topics(settings))
    if settings.redis.url:
        check("Redis answers and keeps state", lambda: check_redis(settings, safe_to_act=settings.armed))
    if settings.ray.address:
        check("the Ray head answers", lambda: _ray_head(settings))
    status = _rules(settings, check) if "topics are as they must be" in passed else None
    warnings = [*_open_secrets(settings), *_unsafe_links(settings)]
    disarmed = _disarmed_by(settings, warnings)
    if status and status.refused:
        warnings.append(status.warning())
    if as_json:
        import json

        body = {
            "version": 1,
            "mode": settings.watch.mode,
            "disarmed_by": disarmed,
            "passed": passed,
            "failed": [{"what": e.what, "where": e.where, "remedy": e.remedy} for e in failures],
            "warnings": warnings,
            "ray": _ON_RAY if settings.ray.address else None,
            "rules": status.plain() if status else None,
            "settings": as_plain(settings),
            "sources": list(settings.sources),
        }
        click.echo(json.dumps(body, indent=1, default=str))
    else:
        click.echo(f"settings from: {', '.join(settings.sources) or 'defaults only'}")
        click.echo(f"the watch's mode: {_MODES[settings.watch.mode]}")
        for name in passed:
            click.echo(f"ok       {name}")
        if status:
            click.echo(f"         {status.line()}")
        if settings.ray.address:
            click.echo(f"         {_ON_RAY}")
        for warning in warnings:
            click.echo(f"warning  {warning}")
        for error in failures:
            click.echo(f"failed   {error}")
    return max((error.exit_code for error in failures), default=1 if warnings else 0)


def _ray_head(settings: Settings) -> None:
    """Raises ServiceUnreachable if the head does not answer, or refuses the token."""
    from midwatch.agents.schedulers import cluster
    from midwatch.agents.schedulers.calls import SystemCaller

    cluster("ray", "ray", settings.state_directory, SystemCaller(), settings.ray).epoch()


def _rules(settings: Settings, check: Callable[[str, Callable[[], object]], None]) -> RulesStatus | None:
    """The bundle in force. A refused one stays visible here until a good one comes."""
    from midwatch.agents.rulesets.reload.status import ask

    found: list[RulesStatus] = []
    check("the rules in force can be read", lambda: found.append(ask(settings)))
    return found[0] if found else None


def _disarmed_by(settings: Settings, warnings: list[str]) -> str | None:
    """Who disarmed everything on this host, or None. Adds a warning if somebody did."""
    from midwatch.agents.executor.arming import disarmed_everything

    try:
        mark = disarmed_everything(settings.state_directory)
    except (OSError, ValueError) as error:
        warnings.append(
            f"the mark of `midwatch disarm --all` cannot be read, so midwatch acts for no job: {error}"
        )
        return "unknown"
    if mark is None:
        return None
    warnings.append(f"{mark.who} ran `midwatch disarm --all` here: midwatch acts for no job")
    return mark.who


def _open_secrets(settings: Settings) -> list[str]:
    files: tuple[Path | None, ...] = (
        settings.kafka.password_file,
        settings.redis.password_file,
        settings.kafka.key_file,
        settings.state_directory / "signing.key",
    )
    return [
        f"every user of this machine can read {file}: chmod 600 {file}"
        for file in files
        if file is not None and file.exists() and stat.S_IMODE(file.stat().st_mode) & 0o004
    ]


def _unsafe_links(settings: Settings) -> list[str]:
    """Warnings of connections to other machines without TLS."""
    found = []
    remote = [a for a in settings.kafka.bootstrap if not _is_local(a.rpartition(":")[0])]
    if remote and not settings.kafka.tls:
        found.append(f"the connection to Kafka at {', '.join(remote)} has no TLS: set kafka.tls: true")
    if settings.redis.url.startswith("redis:") and not _is_local(
        settings.redis.url.split("/")[2].split(":")[0]
    ):
        found.append("the connection to Redis has no TLS: use a rediss:// address")
    return found


def _is_local(host: str) -> bool:
    return host.strip("[]").rpartition("@")[2] in ("localhost", "127.0.0.1", "::1")
