"""Checks that Kafka and Redis answer. An error names the address, the likely cause and the remedy.

kafka-python reports "unable to bootstrap" for every cause. Its log, and a plain TCP connection before it,
tell a wrong name from a wrong port, password or TLS setting.
"""

from __future__ import annotations

import contextlib
import logging
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from midwatch.streams.errors import ConfigurationError, ServiceUnreachable
from midwatch.streams.services.kafka_client import client_options
from midwatch.streams.services.redis_safety import unmet_demands
from midwatch.streams.settings.schema import Settings

if TYPE_CHECKING:
    from redis import Redis

KAFKA_PATIENCE = 5.0
REDIS_PATIENCE = 3.0
_CONNECT_PATIENCE = 2.0


def kafka_options(settings: Settings) -> dict[str, Any]:
    """The options of kafka-python's clients. Never log them: they hold the password in the clear."""
    return client_options(settings.kafka)


@contextlib.contextmanager
def kafka_log() -> Iterator[list[str]]:
    """Collects the messages that kafka-python logs, and keeps them off the terminal."""
    messages: list[str] = []

    class Keep(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    logger, keep = logging.getLogger("kafka"), Keep(logging.WARNING)
    propagate, logger.propagate = logger.propagate, False
    logger.addHandler(keep)
    try:
        yield messages
    finally:
        logger.removeHandler(keep)
        logger.propagate = propagate


def check_kafka(settings: Settings, patience: float = KAFKA_PATIENCE) -> None:
    """Returns when a broker has accepted the connection.

    Raises:
        ServiceUnreachable: no broker did within `patience` seconds, or the settings name none.
    """
    from kafka.admin import KafkaAdminClient
    from kafka.errors import KafkaError

    kafka = settings.kafka
    if not kafka.bootstrap:
        raise not_given("Kafka", "kafka.bootstrap")
    where = ", ".join(kafka.bootstrap)
    refusals = [_refusal(address) for address in kafka.bootstrap]
    if all(refusals):
        raise ServiceUnreachable(
            f"Kafka cannot be reached: {'; '.join(dict.fromkeys(filter(None, refusals)))}",
            where=where,
            remedy="start it, or correct kafka.bootstrap (MIDWATCH_KAFKA__BOOTSTRAP); "
            "`midwatch up` without it starts one on this machine",
        )
    patience_ms = int(patience * 1000)
    with kafka_log() as messages:
        try:
            admin = KafkaAdminClient(
                **kafka_options(settings), bootstrap_timeout_ms=patience_ms, request_timeout_ms=patience_ms
            )
        except KafkaError as error:
            reason, remedy = _kafka_reason(settings, messages)
            raise ServiceUnreachable(reason, where=where, remedy=remedy) from error
        except OSError as error:
            raise ConfigurationError(
                f"the TLS files of Kafka cannot be used: {error}",
                where=where,
                remedy="check kafka.ca_file, kafka.certificate_file and kafka.key_file",
            ) from error
        admin.close()


def _refusal(address: str) -> str | None:
    """Why a TCP connection to the address fails, or None if it succeeds."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_PATIENCE).close()
    except socket.gaierror:
        return f"the name {host} is not known"
    except TimeoutError:
        return f"{address} does not answer within {_CONNECT_PATIENCE:g} s"
    except OSError as error:
        return f"{address}: {error.strerror or error}"
    return None


_ENDED_BY_KAFKA = ("Sasl", "socket disconnected", "Connection reset")
"""kafka-python logs one of these if the broker refuses or ends the connection, none if it hangs."""


def _kafka_reason(settings: Settings, messages: list[str]) -> tuple[str, str]:
    log = "\n".join(messages)
    if settings.kafka.tls and ("Handshake failed" in log or "SSL" in log):
        if "CERTIFICATE_VERIFY_FAILED" in log:
            return (
                "Kafka's certificate is not trusted",
                "set kafka.ca_file to the authority that signed it, and use the name in the certificate",
            )
        return "Kafka does not speak TLS there", "set kafka.tls: false, or use its TLS port"
    if "broker_version=(" not in log:
        return (
            "something listens there, but it does not answer as Kafka does",
            "check the port; if it expects TLS, set kafka.tls: true",
        )
    if not any(word in log for word in _ENDED_BY_KAFKA):
        return (
            "Kafka sent its version, but then it does not answer in time",
            "check whether the broker is overloaded or stopped; see its log",
        )
    if settings.kafka.username:
        return (
            f"Kafka refuses the user {settings.kafka.username!r} with this password",
            "check kafka.username, kafka.password_file and kafka.mechanism",
        )
    return (
        "Kafka ends the connection: it asks for a user and a password, or for TLS",
        "set kafka.username and kafka.password_file, or kafka.tls: true",
    )


def redis_client(settings: Settings, patience: float = REDIS_PATIENCE) -> Redis:
    """A synchronous client. A call that gets no answer raises redis' errors after `patience` seconds."""
    try:
        from redis import Redis
    except ImportError as error:
        raise ConfigurationError(
            "the package redis is not installed",
            where="redis.url",
            remedy='install the servers\' parts: pip install "midwatch[server]"',
        ) from error
    redis = settings.redis
    tls = {"ssl_ca_certs": str(redis.ca_file)} if redis.ca_file else {}
    return Redis.from_url(
        redis.url,
        password=redis.password.reveal() or None,
        socket_timeout=patience,
        socket_connect_timeout=patience,
        **tls,
    )


def check_redis(settings: Settings, *, safe_to_act: bool = False, patience: float = REDIS_PATIENCE) -> None:
    """Returns when Redis has accepted the connection and would lose no data.

    State lives in Redis, so `maxmemory-policy` must be noeviction. With `safe_to_act` the append-only file
    must be on and synced always, because the executor's claims may not roll back.

    Raises:
        ServiceUnreachable: Redis does not answer within `patience` seconds, or refuses the connection.
        ConfigurationError: Redis could lose data.
    """
    if not settings.redis.url:
        raise not_given("Redis", "redis.url")
    where = settings.redis.url.rpartition("@")[2].removeprefix("redis://").removeprefix("rediss://")
    client = redis_client(settings, patience)
    from redis.exceptions import AuthenticationError, RedisError

    try:
        client.ping()
        unmet = unmet_demands(client, to_act=safe_to_act)
    except AuthenticationError as error:
        raise ServiceUnreachable(
            "Redis refuses this password" if settings.redis.password else "Redis asks for a password",
            where=where,
            remedy="check redis.password_file, or the variable MIDWATCH_REDIS__PASSWORD",
        ) from error
    except (RedisError, OSError) as error:
        raise ServiceUnreachable(
            f"Redis cannot be reached: {error}",
            where=where,
            remedy="start it, or correct redis.url (MIDWATCH_REDIS__URL); "
            "`midwatch up` without it starts one on this machine",
        ) from error
    finally:
        client.close()
    wrong = [demand for demand in unmet if demand.found]
    if wrong:
        found = ", ".join(f"{demand.name} is {demand.found}" for demand in wrong)
        changes = ", ".join(f"CONFIG SET {demand.name} {demand.wanted}" for demand in wrong)
        raise ConfigurationError(
            f"this Redis may lose data: {found}",
            where=where,
            remedy=f"{changes}, and the same in its configuration file",
        )
    if safe_to_act and unmet:
        raise ConfigurationError(
            "this Redis hides its configuration, so midwatch cannot know whether claims survive",
            where=where,
            remedy="allow `CONFIG GET` to this user, or stay in watch.mode observe",
        )


def not_given(service: str, setting: str) -> ServiceUnreachable:
    """The error if neither the settings nor a running `midwatch up` give an address."""
    return ServiceUnreachable(
        f"the settings name no {service}, and no `midwatch up` runs with this state directory",
        where=setting,
        remedy=f"start `midwatch up`, or set {setting} in midwatch.yaml",
    )
