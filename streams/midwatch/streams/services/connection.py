"""Lets commands on this machine find the Kafka and Redis of `midwatch up` without settings.

`up` writes `connection.json` into the state directory. The file is a fragment of settings for the same strict
reader. It names password files and holds no password. After a kill -9 of `up` the file stays. The next
command then finds no service at its addresses and reports that.
"""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from pathlib import Path

from midwatch.streams.errors import ConfigurationError
from midwatch.streams.host.atomic_file import replace_file
from midwatch.streams.services.reachable import not_given
from midwatch.streams.settings.file import with_secret
from midwatch.streams.settings.mistakes import Mistake, Mistakes, settings_tree
from midwatch.streams.settings.reader import read_settings
from midwatch.streams.settings.schema import Settings, as_plain
from midwatch.streams.settings.secret import Secret

FILE_NAME = "connection.json"


def connection_file(settings: Settings) -> Path:
    """The file in which `up` with this state directory records its addresses."""
    return settings.state_directory / FILE_NAME


def write_connection(settings: Settings) -> Path:
    """Records the addresses for other commands of this user. Passwords get their own files, all of mode 0600.

    Raises:
        ConfigurationError: the state directory cannot be written.
    """
    state = settings.state_directory
    try:
        state.mkdir(parents=True, exist_ok=True, mode=0o700)
        kafka_file = _password_file(state / "kafka.password", settings.kafka.password)
        redis_file = _password_file(state / "redis.password", settings.redis.password)
        kafka = as_plain(settings.kafka) | {"password_file": kafka_file and str(kafka_file)}
        redis = as_plain(settings.redis) | {"password_file": redis_file and str(redis_file)}
        fragment = {
            "cluster": settings.cluster,
            "policy": settings.policy,
            "kafka": {name: value for name, value in kafka.items() if name != "password" and value},
            "redis": {name: value for name, value in redis.items() if name != "password" and value},
            "topics": as_plain(settings.topics),
            "watch": as_plain(settings.watch),
        }
        file = connection_file(settings)
        replace_file(file, f"{json.dumps(fragment, indent=1)}\n".encode(), mode=0o600)
    except OSError as error:
        raise ConfigurationError(
            f"the state directory cannot be written: {error.strerror}",
            where=str(error.filename or state),
            remedy="choose another with --state-directory or MIDWATCH_STATE_DIRECTORY",
        ) from error
    return file


def remove_connection(settings: Settings) -> None:
    """Removes the file of addresses after `up` has ended."""
    connection_file(settings).unlink(missing_ok=True)


def with_connection(settings: Settings) -> Settings:
    """The settings, with a missing Kafka or Redis address taken from the running `up`.

    Kafka brings the cluster's name, policy, topics and watch mode along, because they belong to one
    installation. A value that the settings changed from its default stays.

    Raises:
        ServiceUnreachable: an address is missing and no `up` runs with this state directory.
        ConfigurationError: the file is broken, or another user could have written it.
    """
    if settings.kafka.bootstrap and settings.redis.url:
        return settings
    file = connection_file(settings)
    missing = ("Kafka", "kafka.bootstrap") if not settings.kafka.bootstrap else ("Redis", "redis.url")
    try:
        status = file.stat()
        content = file.read_bytes()
    except OSError:
        raise not_given(*missing) from None
    if status.st_uid != os.getuid() or stat.S_IMODE(status.st_mode) & 0o022:
        raise ConfigurationError(
            "another user could have written this file", where=str(file), remedy=f"rm {file}; midwatch up"
        )
    mistakes: list[Mistake] = []
    connection = read_settings(settings_tree(str(file), content, mistakes), file, (), mistakes, file.parent)
    kafka = with_secret(connection.kafka, "kafka", mistakes)
    redis = with_secret(connection.redis, "redis", mistakes)
    if mistakes:
        raise Mistakes(mistakes)
    out = replace(settings, sources=(*settings.sources, str(file)))
    if not out.redis.url:
        out = replace(out, redis=redis)
    if not out.kafka.bootstrap:
        defaults = Settings()
        out = replace(
            out,
            kafka=kafka,
            cluster=connection.cluster if out.cluster == defaults.cluster else out.cluster,
            policy=connection.policy if out.policy == defaults.policy else out.policy,
            topics=connection.topics if out.topics == defaults.topics else out.topics,
            watch=connection.watch if out.watch == defaults.watch else out.watch,
        )
    return out


def _password_file(file: Path, password: Secret) -> Path | None:
    if not password:
        file.unlink(missing_ok=True)
        return None
    replace_file(file, f"{password.reveal()}\n".encode(), mode=0o600)
    return file
