"""The kinds of settings: how each is read, and the error for a wrong value. Pure.

A kind takes a YAML value from the file, or text from a variable. It returns the typed value or raises
`WrongValue`. Durations become seconds, and sizes become bytes. Both must carry their unit, because one
person reads `600` as seconds and another as minutes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Literal, TypeVar, cast
from urllib.parse import urlsplit

from midwatch.streams.settings.secret import Secret
from midwatch.streams.strict_yaml import plain_scalar

T = TypeVar("T")


class WrongValue(Exception):
    """A value of the wrong kind, and what to write instead."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


@dataclass(frozen=True, slots=True)
class Given:
    """A value to read. Relative paths start at `base`. `typed` is True for YAML, False for plain text."""

    value: object
    base: Path
    typed: bool = True


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """A kind of setting: its name for people, an example, and its reader."""

    name: str
    example: str
    read: Callable[[Given], T]
    secret: bool = False


_SECONDS = {
    "ms": 0.001, "millisecond": 0.001, "milliseconds": 0.001,
    "s": 1.0, "sec": 1.0, "second": 1.0, "seconds": 1.0,
    "m": 60.0, "min": 60.0, "minute": 60.0, "minutes": 60.0,
    "h": 3600.0, "hour": 3600.0, "hours": 3600.0,
    "d": 86400.0, "day": 86400.0, "days": 86400.0,
}  # fmt: skip
_BYTES = {
    "b": 1, "byte": 1, "bytes": 1,
    "kb": 10**3, "mb": 10**6, "gb": 10**9,
    "kib": 2**10, "mib": 2**20, "gib": 2**30,
}  # fmt: skip
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]+)")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
_PORT_LIMIT = 65535
_SHOWN = 60


def shown(value: object) -> str:
    """A value as an error quotes it, cut to fit a line."""
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _scalar(given: Given) -> object:
    if not given.typed and isinstance(given.value, str):
        return plain_scalar(given.value.strip())
    return given.value


def _text(given: Given) -> str:
    if isinstance(given.value, str) and given.value.strip():
        return given.value.strip()
    if given.value is None or given.value == "":
        raise WrongValue("the value is missing", "write a value, or remove the line")
    raise WrongValue(f"{shown(given.value)} is not text", "put it in quotes if text is meant")


def _quantity(given: Given, units: dict[str, float] | dict[str, int], kind: str, advice: str) -> float:
    value = _scalar(given)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise WrongValue(f"{shown(value)} is not a {kind}", advice)
    if isinstance(value, int | float):
        if not value:
            return 0.0
        raise WrongValue(f"{shown(value)} has no unit", advice)
    text = value.strip()
    parts = _QUANTITY.findall(text)
    if not parts or _QUANTITY.sub("", text).strip():
        raise WrongValue(f"{shown(text)} is not a {kind}", advice)
    for _, unit in parts:
        if unit.lower() not in units:
            raise WrongValue(f"{shown(text)}: {unit!r} is no unit of a {kind}", advice)
    return sum(float(number) * units[unit.lower()] for number, unit in parts)


def duration(minimum: float = 0.0, maximum: float = 365 * 86400.0) -> Kind[float]:
    """Seconds, from text with its unit: `200ms`, `10s`, `5m`, `1h30m`, `7d`."""
    advice = "write a number with its unit: 200ms, 10s, 5m, 1h, 7d"

    def read(given: Given) -> float:
        seconds = _quantity(given, _SECONDS, "duration", advice)
        if not minimum <= seconds <= maximum:
            limits = f"between {duration_text(minimum)} and {duration_text(maximum)}"
            raise WrongValue(f"{shown(given.value)} is out of range", f"write a duration {limits}")
        return seconds

    return Kind("duration", "10s", read)


def duration_text(seconds: float) -> str:
    """The shortest spelling that reads back as the same duration."""
    for unit in ("d", "h", "m", "s"):
        if seconds and seconds % _SECONDS[unit] == 0:
            return f"{seconds / _SECONDS[unit]:g}{unit}"
    return "0s" if not seconds else f"{seconds * 1000:g}ms"


def size(minimum: int = 1, maximum: int = 2**40) -> Kind[int]:
    """Bytes, from text with its unit: `256KiB`, `8MiB`, `1MB`."""
    advice = "write a number with its unit: 256KiB, 8MiB, 1MB"

    def read(given: Given) -> int:
        count = _quantity(given, _BYTES, "size", advice)
        if not minimum <= count <= maximum or count % 1:
            raise WrongValue(
                f"{shown(given.value)} is out of range",
                f"write a size between {size_text(minimum)} and {size_text(maximum)}",
            )
        return int(count)

    return Kind("size", "256KiB", read)


def size_text(count: int) -> str:
    """The shortest spelling that reads back as the same size."""
    for unit, factor in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count and count % factor == 0:
            return f"{count // factor}{unit}"
    return f"{count}B"


def integer(minimum: int, maximum: int) -> Kind[int]:
    """A whole number within limits."""

    def read(given: Given) -> int:
        value = _scalar(given)
        advice = f"write a whole number between {minimum} and {maximum}"
        if isinstance(value, bool) or not isinstance(value, int):
            raise WrongValue(f"{shown(value)} is not a whole number", advice)
        if not minimum <= value <= maximum:
            raise WrongValue(f"{value} is out of range", advice)
        return value

    return Kind("whole number", str(max(minimum, 1)), read)


def fraction(minimum: float, maximum: float) -> Kind[float]:
    """A number within limits."""

    def read(given: Given) -> float:
        value = _scalar(given)
        advice = f"write a number between {minimum:g} and {maximum:g}"
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            raise WrongValue(f"{shown(value)} is not a number", advice)
        if not minimum <= value <= maximum:
            raise WrongValue(f"{value:g} is out of range", advice)
        return float(value)

    return Kind("number", "0.5", read)


def flag() -> Kind[bool]:
    """`true` or `false`; the yes, no, on and off of YAML 1.1 are errors."""

    def read(given: Given) -> bool:
        value = _scalar(given)
        if not isinstance(value, bool):
            raise WrongValue(f"{shown(value)} is neither true nor false", "write true or false")
        return value

    return Kind("true or false", "true", read)


def name() -> Kind[str]:
    """A short name: letters, digits, `.`, `_`, `-`."""

    def read(given: Given) -> str:
        text = _text(given)
        if not _NAME.fullmatch(text):
            raise WrongValue(f"{shown(text)} is not a name", "use letters, digits and ._- (at most 200)")
        return text

    return Kind("name", "night-watch", read)


def text() -> Kind[str]:
    """Any text of one line."""

    def read(given: Given) -> str:
        value = _text(given)
        if not value.isprintable():
            raise WrongValue("the text holds control characters", "write one line of plain text")
        return value

    return Kind("text", "midwatch", read)


_Choice = TypeVar("_Choice", bound=str)


def choice(*options: _Choice) -> Kind[_Choice]:
    """One of a few words."""

    def read(given: Given) -> _Choice:
        value = given.value.strip() if isinstance(given.value, str) else given.value
        for option in options:
            if value == option:
                return option
        raise WrongValue(f"{shown(value)} is not a known value", f"write one of: {', '.join(options)}")

    return Kind(" or ".join(options), options[0], read)


def path() -> Kind[Path]:
    """A path. `~` is the home directory. A relative path starts at `Given.base`."""

    def read(given: Given) -> Path:
        text = _text(given)
        if "\0" in text:
            raise WrongValue("the path holds a NUL byte", "write a plain path")
        try:
            return given.base / Path(text).expanduser()
        except RuntimeError as error:
            raise WrongValue(f"{shown(text)}: {error}", "write the path out in full") from error

    return Kind("path", "/var/lib/midwatch", read)


def address() -> Kind[str]:
    """`host:port`; IPv6 in brackets."""

    def read(given: Given) -> str:
        text = _text(given)
        host, colon, port = text.rpartition(":")
        advice = "write host:port, for example kafka.example:9092"
        if not colon or not host or not port.isdecimal() or "/" in text or "@" in text or " " in text:
            raise WrongValue(f"{shown(text.rpartition('@')[2])} is not host:port", advice)
        if not 0 < int(port) <= _PORT_LIMIT:
            raise WrongValue(f"{port} is not a port", advice)
        return text

    return Kind("host:port", "kafka.example:9092", read)


def web_address() -> Kind[str]:
    """The base of an http address without user, query or fragment."""
    advice = "write http://host:port or https://host:port, for example http://collector.example:4318"

    def read(given: Given) -> str:
        text = _text(given)
        try:
            parts = urlsplit(text)
            port_is_right = parts.port is None or parts.port > 0
        except ValueError:
            raise WrongValue("not an http address", advice) from None
        known = parts.scheme in ("http", "https") and parts.hostname and port_is_right
        if not known or "@" in text or " " in text or parts.query or parts.fragment:
            raise WrongValue(f"{shown(text.rpartition('@')[2])} is not the base of an http address", advice)
        return text.rstrip("/")

    return Kind("http address", "http://collector.example:4318", read)


def redis_url() -> Kind[str]:
    """A Redis address without its password."""
    advice = "write redis://host:6379/0, rediss://… for TLS, or unix:///path/to/socket"

    def read(given: Given) -> str:
        text = _text(given)
        try:
            parts = urlsplit(text)
            port_is_right = parts.port is None or parts.port > 0
        except ValueError:
            raise WrongValue("not a Redis address", advice) from None
        if parts.password is not None:
            raise WrongValue(
                "the address holds a password",
                "remove it; name a file that holds it with redis.password_file, "
                "or set the variable MIDWATCH_REDIS__PASSWORD",
            )
        known = parts.scheme in ("redis", "rediss") and parts.hostname and port_is_right
        if not known and not (parts.scheme == "unix" and parts.path):
            raise WrongValue(f"{shown(text.rpartition('@')[2])} is not a Redis address", advice)
        return text

    return Kind("Redis address", "redis://redis.example:6379/0", read)


def http_url() -> Kind[str]:
    """An HTTP address without a password, or no text."""
    advice = "write http://host:8265, or https://… for TLS"

    def read(given: Given) -> str:
        text = _text(given)
        try:
            parts = urlsplit(text)
            usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            raise WrongValue("not an HTTP address", advice) from None
        if parts.username is not None or parts.query or parts.fragment:
            raise WrongValue("the address holds more than a host, a port and a path", advice)
        if text and not usable:
            raise WrongValue(f"{shown(text)} is not an HTTP address", advice)
        return text.rstrip("/")

    return Kind("HTTP address", "http://head.example:8265", read)


def secret(file_setting: str, variable: str) -> Kind[Secret]:
    """A secret from a variable. In a settings file it is an error that names the right places."""

    def read(given: Given) -> Secret:
        if given.typed:
            raise WrongValue(
                "a secret does not belong in a settings file",
                f"name a file that holds it with {file_setting}, or set the variable {variable}; "
                "replace this secret, because others could read it",
            )
        return Secret(_text(given))

    return Kind("secret, by variable only", "", read, secret=True)


def optional(kind: Kind[T]) -> Kind[T | None]:
    """The same kind, or nothing (`null`)."""

    def read(given: Given) -> T | None:
        return None if given.value is None else kind.read(given)

    return Kind(kind.name, kind.example, read, kind.secret)


def several(kind: Kind[T]) -> Kind[tuple[T, ...]]:
    """A list. In a variable, or as one text, commas separate its items."""

    def read(given: Given) -> tuple[T, ...]:
        value = given.value
        if value is None or value == "":
            return ()
        if isinstance(value, str):
            value = [part.strip() for part in value.split(",") if part.strip()]
        if not isinstance(value, list):
            raise WrongValue(f"{shown(value)} is not a list", f"write [{kind.example}]")
        return tuple(kind.read(Given(item, given.base, given.typed)) for item in cast(list[object], value))

    return Kind(f"list of {kind.name}", f"[{kind.example}]", read)


SaslMechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
WatchMode = Literal["observe", "act"]
ForeignShipper = Literal["none", "vector", "fluent-bit", "filebeat", "rsyslog"]
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
RetryCounting = Literal["documented", "compat"]
TooSlow = Literal["refuse", "quarantine", "accept"]
MessageSeverity = Literal["info", "warning", "critical"]
MailSecurity = Literal["starttls", "tls", "none"]
