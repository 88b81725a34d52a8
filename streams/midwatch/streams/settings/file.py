"""Finds and reads the settings file, the variables and the password files.

The file is the first of: `--config FILE`, `MIDWATCH_CONFIG`, `./midwatch.yaml`,
`~/.config/midwatch/midwatch.yaml`. No file is needed, because every setting has a default.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from midwatch.streams.errors import ConfigurationError
from midwatch.streams.settings.mistakes import Mistake, Mistakes, settings_tree
from midwatch.streams.settings.reader import Assignment, assignments, read_settings, variable_name
from midwatch.streams.settings.schema import KafkaSettings, RedisSettings, Settings
from midwatch.streams.settings.secret import Secret

FILE_NAME = "midwatch.yaml"
_SECRET_LIMIT = 64 * 1024

_WithPassword = TypeVar("_WithPassword", KafkaSettings, RedisSettings)


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
    ray = settings.ray
    if ray.token_file is not None and not ray.token:
        token = _secret(ray.token_file, ("ray", "token"), mistakes)
        ray = replace(ray, token=token or ray.token)
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


def with_secret(section: _WithPassword, name: str, mistakes: list[Mistake]) -> _WithPassword:
    """The section with the password from its file. A password from a variable wins."""
    if section.password_file is None or section.password:
        return section
    password = _secret(section.password_file, (name, "password"), mistakes)
    return section if password is None else replace(section, password=password)


def _secret(file: Path, path: tuple[str, str], mistakes: list[Mistake]) -> Secret | None:
    """The secret in a file; None with a mistake where there is none."""
    where, word = str(file), path[1]
    try:
        content = file.read_bytes()
    except OSError as error:
        remedy = (
            f"{'.'.join(path)}_file names it; make it readable for this user, or set {variable_name(path)}"
        )
        mistakes.append(Mistake(where, f"the {word} file cannot be read: {error.strerror}", remedy))
        return None
    try:
        text = content.decode().strip()
    except UnicodeDecodeError:
        text = ""
    if not text or len(content) > _SECRET_LIMIT or "\n" in text:
        mistakes.append(
            Mistake(where, f"the {word} file must hold one line of text", f"write only the {word}")
        )
        return None
    return Secret(text)


def _content(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"the settings file cannot be read: {error.strerror}",
            where=str(file),
            remedy="name another with --config or MIDWATCH_CONFIG, or unset it to use the defaults",
        ) from error
