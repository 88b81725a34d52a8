"""Finds and reads the settings file, the variables and the password files.

The file is the first of: `--config FILE`, `MIDWATCH_CONFIG`, `./midwatch.yaml`,
`~/.config/midwatch/midwatch.yaml`. No file is needed, because every setting has a default.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar, cast

from midwatch.streams.errors import ConfigurationError
from midwatch.streams.settings.mistakes import Mistake, Mistakes, settings_tree
from midwatch.streams.settings.reader import Assignment, assignments, read_settings, variable_name
from midwatch.streams.settings.schema import Settings
from midwatch.streams.settings.secret import Secret

FILE_NAME = "midwatch.yaml"
_SECRET_LIMIT = 64 * 1024

_Section = TypeVar("_Section")
_MESSAGE_SECRETS = (
    ("slack", "url", 1),
    ("slack_bot", "token", 1),
    ("webhook", "url", 1),
    ("webhook", "token", 1),
    ("email", "password", 1),
    ("apprise", "urls", 1000),
)
"""Section, setting, and the most lines of its file."""


def load_settings(
    config: Path | None = None,
    *,
    options: Iterable[Assignment] = (),
    environment: Mapping[str, str] | None = None,
    here: Path | None = None,
) -> Settings:
    """The settings of this process, with the secrets from their files.

    `options` are settings from the command line. `environment` and `here` default to the process's.

    Raises:
        Mistakes: the file, a variable or a password file has mistakes; it lists all of them.
        ConfigurationError: the settings file cannot be read.
    """
    environment = os.environ if environment is None else environment
    here = here or Path.cwd()
    mistakes: list[Mistake] = []
    file = settings_file(config, environment, here)
    tree = settings_tree(str(file), _content(file), mistakes) if file else None
    overrides = (*assignments(environment, mistakes), *options)
    settings = read_settings(tree, file, overrides, mistakes, here)
    kafka = with_secret(settings.kafka, "kafka", mistakes)
    redis = with_secret(settings.redis, "redis", mistakes)
    ray = with_secret(settings.ray, "ray", mistakes, name="token")
    if mistakes:
        raise Mistakes(mistakes)
    sources = (*([str(file)] if file else []), *(a.where for a in overrides))
    return replace(
        settings,
        kafka=kafka,
        redis=redis,
        ray=ray,
        state_directory=settings.state_directory.expanduser(),
        sources=sources,
    )


def settings_file(config: Path | None, environment: Mapping[str, str], here: Path) -> Path | None:
    """The settings file to read. A file that the user names must exist; one in a usual place need not."""
    if config is not None:
        return here / config
    if named := environment.get("MIDWATCH_CONFIG"):
        return here / Path(named).expanduser()
    usual = (here / FILE_NAME, Path("~/.config/midwatch").expanduser() / FILE_NAME)
    return next((path for path in usual if path.is_file()), None)


def with_message_secrets(settings: Settings) -> Settings:
    """The settings with the secrets of the channels from their files; only a sender of messages needs them.

    Raises:
        Mistakes: a file cannot be read, or does not hold what it must.
    """
    messages, mistakes = settings.messages, list[Mistake]()
    for section, name, lines in _MESSAGE_SECRETS:
        path = ("messages", section)
        filled = with_secret(getattr(messages, section), ".".join(path), mistakes, name=name, lines=lines)
        messages = replace(messages, **{section: filled})
    if mistakes:
        raise Mistakes(mistakes)
    return replace(settings, messages=messages)


def with_secret(
    section: _Section, path: str, mistakes: list[Mistake], *, name: str = "password", lines: int = 1
) -> _Section:
    """The section with a secret from its file, by default the password. One from a variable wins."""
    file: Path | None = getattr(section, f"{name}_file")
    if file is None or getattr(section, name):
        return section
    where = str(file)
    try:
        content = file.read_bytes()
    except OSError as error:
        remedy = (
            f"{path}.{name}_file names it; make it readable for this user, or set "
            f"{variable_name((*path.split('.'), name))}"
        )
        mistakes.append(Mistake(where, f"the {name} file cannot be read: {error.strerror}", remedy))
        return section
    try:
        text = content.decode().strip()
    except UnicodeDecodeError:
        text = ""
    if not text or len(content) > _SECRET_LIMIT or text.count("\n") >= lines:
        mistakes.append(
            Mistake(where, f"the {name} file must hold one line of text", f"write only the {name}")
        )
        return section
    return cast(_Section, replace(cast(Any, section), **{name: Secret(text)}))


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"the settings file cannot be read: {error.strerror}",
            where=str(file),
            remedy="name another with --config or MIDWATCH_CONFIG, or unset it to use the defaults",
        ) from error
