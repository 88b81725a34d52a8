"""Turns a YAML tree and MIDWATCH_* variables into one Settings value, or lists all mistakes. Pure.

A variable names a setting by its path in capitals, with two underscores between levels:
`MIDWATCH_KAFKA__BOOTSTRAP`, `MIDWATCH_DETECT__LIMITS__TRAINING`. Variables win over the file. Options of the
command line win over both. An empty variable counts as not set.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

from midwatch.streams.settings.kinds import Given, Kind, WrongValue
from midwatch.streams.settings.messages import MessagesSettings
from midwatch.streams.settings.mistakes import Mistake, Mistakes
from midwatch.streams.settings.schema import Settings
from midwatch.streams.strict_yaml import SourceLocation, YamlMapping, YamlNode, YamlScalar, plain

T = TypeVar("T")

SettingPath = tuple[str, ...]

PREFIX = "MIDWATCH_"
OTHER_VARIABLES = frozenset(
    f"{PREFIX}{name}" for name in ("CONFIG", "CACHE", "MAVEN_REPOSITORY", "JOB", "RUN", "NODE", "ATTEMPT")
)
"""midwatch's variables that are no settings, for example the settings file, the cache and the job."""

_ALIKE = 0.85
_SECRET_WORDS = ("password", "secret", "token", "credential")


@dataclass(frozen=True, slots=True)
class Assignment:
    """A setting from outside the file, as text. `where` names its variable or option."""

    path: SettingPath
    text: str
    where: str


def leaves(section: type = Settings, prefix: SettingPath = ()) -> Iterator[tuple[SettingPath, Any]]:
    """Every setting with its dataclass field, in the order of declaration."""
    for entry in fields(section):
        if entry.metadata.get("internal"):
            continue
        path = (*prefix, entry.name)
        nested = entry.default_factory
        if isinstance(nested, type) and is_dataclass(nested):
            yield from leaves(nested, path)
        else:
            yield path, entry


def variable_name(path: SettingPath) -> str:
    """The variable that sets the setting at `path`."""
    return PREFIX + "__".join(path).upper()


def assignments(environment: Mapping[str, str], mistakes: list[Mistake]) -> tuple[Assignment, ...]:
    """The settings among the variables.

    A variable with two underscores that names no setting is a mistake. One without them is a mistake only if
    it resembles a setting, because it may belong to another program.
    """
    known = {variable_name(path): path for path, _ in leaves()}
    squeezed = {name.replace("__", "_"): name for name in known}
    found = []
    for name, text in sorted(environment.items()):
        if not name.startswith(PREFIX) or name in OTHER_VARIABLES or not text.strip():
            continue
        if name in known:
            found.append(Assignment(known[name], text, f"variable {name}"))
            continue
        nearest = difflib.get_close_matches(name.replace("__", "_"), squeezed, n=1, cutoff=_ALIKE)
        if nearest:
            remedy = f"did you mean {squeezed[nearest[0]]}?"
        elif "__" in name:
            remedy = "two underscores separate the levels: kafka.bootstrap is MIDWATCH_KAFKA__BOOTSTRAP"
        else:
            continue
        mistakes.append(Mistake(f"variable {name}", "no such setting", remedy))
    return tuple(found)


def read_settings(
    tree: YamlNode | None,
    file: Path | None,
    overrides: Iterable[Assignment],
    mistakes: list[Mistake],
    here: Path,
) -> Settings:
    """The settings of one file and its overrides. The last override of a setting wins.

    Relative paths of overrides start at `here`. Those of the file start at its directory.

    Raises:
        Mistakes: there are mistakes; it lists all of them, the `mistakes` of earlier steps included.
    """
    reader = _SettingsReader(file, {a.path: a for a in overrides}, mistakes, here)
    if tree is None or (isinstance(tree, YamlScalar) and tree.value is None):
        tree = None
    elif not isinstance(tree, YamlMapping):
        reader.wrong(tree.location, "the settings are not a mapping", "begin with a line such as `kafka:`")
        tree = None
    settings = reader.section(Settings, tree, ())
    if not mistakes:
        for path, what, remedy in contradictions(settings):
            reader.wrong(reader.origin(path), what, remedy)
    if mistakes:
        raise Mistakes(mistakes)
    return settings


class _SettingsReader:
    def __init__(
        self,
        file: Path | None,
        overrides: Mapping[SettingPath, Assignment],
        mistakes: list[Mistake],
        here: Path,
    ) -> None:
        self._file = file
        self._overrides = overrides
        self._mistakes = mistakes
        self._here = here
        self._places: dict[SettingPath, SourceLocation | str] = {}
        self._sections = {path[:-1] for path, _ in leaves()}

    def wrong(self, where: SourceLocation | str, what: str, remedy: str) -> None:
        self._mistakes.append(Mistake(where, what, remedy))

    def origin(self, path: SettingPath) -> SourceLocation | str:
        """The place that sets the setting at `path`."""
        return self._places.get(path) or (str(self._file) if self._file else ".".join(path))

    def section(self, cls: type[T], mapping: YamlMapping | None, path: SettingPath) -> T:
        values: dict[str, object] = {}
        entries = dict(mapping.entries) if mapping else {}
        for entry in fields(cls):  # type: ignore[arg-type]  # every section is a dataclass
            if entry.metadata.get("internal"):
                continue
            here = (*path, entry.name)
            pair = entries.pop(entry.name, None)
            if here in self._sections:
                nested = entry.default_factory
                assert isinstance(nested, type)  # noqa: S101 (for the type checker: sections are made by class)
                values[entry.name] = self.section(nested, self._below(pair and pair[1], here), here)
                continue
            kind: Kind[object] = entry.metadata["kind"]
            if pair is not None:
                self._places[here] = pair[1].location
                base = self._file.parent if self._file else self._here
                self._read(values, entry.name, kind, Given(plain(pair[1]), base), here)
            if assignment := self._overrides.get(here):
                self._places[here] = assignment.where
                self._read(values, entry.name, kind, Given(assignment.text, self._here, typed=False), here)
        for name, (location, _) in entries.items():
            self.wrong(location, f"unknown key {name!r}{_inside(path)}", self._advice(name, path))
        return cls(**values)

    def _below(self, node: YamlNode | None, path: SettingPath) -> YamlMapping | None:
        if node is None or isinstance(node, YamlMapping):
            return node
        if not (isinstance(node, YamlScalar) and node.value is None):
            example = next(p[-1] for p, _ in leaves() if p[:-1] == path)
            self.wrong(
                node.location,
                f"{'.'.join(path)} is not a mapping",
                f"write its keys below it, indented: `{path[-1]}:` and then `  {example}: …`",
            )
        return None

    def _read(
        self, values: dict[str, object], name: str, kind: Kind[object], given: Given, path: SettingPath
    ) -> None:
        try:
            values[name] = kind.read(given)
        except WrongValue as error:
            self.wrong(self._places[path], f"{'.'.join(path)}: {error.what}", error.remedy)

    def _advice(self, name: str, path: SettingPath) -> str:
        if any(word in name.lower() for word in _SECRET_WORDS):
            secrets = " or ".join(variable_name(p) for p, entry in leaves() if entry.metadata["kind"].secret)
            return f"a secret does not belong here: name its file with password_file, or set {secrets}"
        every = [*(p for p, _ in leaves()), *self._sections]
        siblings = [p[-1] for p in every if p and p[:-1] == path]
        if near := difflib.get_close_matches(name, siblings, n=1):
            return f"did you mean {near[0]!r}?"
        elsewhere = {p[-1]: p for p in every if p and p[:-1] != path}
        if near := difflib.get_close_matches(name, elsewhere, n=1, cutoff=_ALIKE):
            return f"did you mean {'.'.join(elsewhere[near[0]])}?"
        return f"known keys: {', '.join(dict.fromkeys(siblings))}"


def _inside(path: SettingPath) -> str:
    return f" in {'.'.join(path)}" if path else ""


def _of_messages(messages: MessagesSettings) -> Iterator[tuple[SettingPath, str, str]]:
    bot, mail = messages.slack_bot, messages.email
    if bool(bot.to) != bool(bot.token or bot.token_file):
        lacking = "to" if bot.token or bot.token_file else "token_file"
        yield ("messages", "slack_bot"), f"it lacks {lacking}", f"set messages.slack_bot.{lacking}"
    if mail.to or mail.server:
        for name in ("server", "sender", "to"):
            if not getattr(mail, name):
                yield ("messages", "email"), f"it lacks {name}", f"set messages.email.{name}"
    if bool(mail.username) != bool(mail.password or mail.password_file):
        lacking = "password_file" if mail.username else "username"
        yield ("messages", "email"), f"it lacks {lacking}", f"set messages.email.{lacking}"


def contradictions(settings: Settings) -> Sequence[tuple[SettingPath, str, str]]:
    """Settings that contradict each other: the path, the mistake and the remedy."""
    kafka, redis, worker, detect = settings.kafka, settings.redis, settings.worker, settings.detect
    found: list[tuple[SettingPath, str, str]] = []
    if (kafka.password_file or kafka.password) and not kafka.username:
        found.append((("kafka", "password_file"), "a password without a user", "set kafka.username"))
    if kafka.username and not (kafka.password_file or kafka.password):
        remedy = "set kafka.password_file, or the variable MIDWATCH_KAFKA__PASSWORD"
        found.append((("kafka", "username"), "a user without a password", remedy))
    for name in ("ca_file", "certificate_file", "key_file"):
        if getattr(kafka, name) and not kafka.tls:
            found.append((("kafka", name), "a file for TLS, but TLS is off", "set kafka.tls: true"))
    if bool(kafka.certificate_file) != bool(kafka.key_file):
        lacking = "key_file" if kafka.certificate_file else "certificate_file"
        path = ("kafka", "certificate_file" if kafka.certificate_file else "key_file")
        found.append((path, "a certificate needs its key, and a key its certificate", f"set kafka.{lacking}"))
    if redis.ca_file and not redis.url.startswith("rediss:"):
        found.append((("redis", "ca_file"), "a file for TLS, but TLS is off", "use a rediss:// address"))
    found += _of_messages(settings.messages)
    if detect.settle_grace > detect.settle_max:
        remedy = "make it shorter than detect.settle_max"
        found.append((("detect", "settle_grace"), "longer than detect.settle_max", remedy))
    if worker.heartbeat_interval * 3 > worker.session_timeout:
        remedy = "keep it at a third of worker.session_timeout at most"
        found.append((("worker", "heartbeat_interval"), "too long for worker.session_timeout", remedy))
    return found
