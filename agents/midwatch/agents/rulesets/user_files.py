"""Shell: finds which user files hold rules, which hold a policy, and which hold both."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from midwatch.rules.loader import is_config, load_config
from midwatch.streams.errors import ConfigurationError
from midwatch.streams.strict_yaml import YamlMapping, read_yaml

POLICY_ENDINGS = (".policy.yaml", ".policy.yml")
"""A policy file may lie beside its rule file: `midwatch rules convert` writes such pairs."""
YAML = (".yaml", ".yml")


def rule_sources(paths: Iterable[Path]) -> tuple[str, ...]:
    """The rule files of these files and directories, for `load_bundle`."""
    return tuple(str(path) for path in _files(paths) if not is_policy_file(path))


def policy_sources(paths: Iterable[Path]) -> tuple[str, ...]:
    """The policy files of these files and directories, for `load_policy`.

    A file of oellm-autoexp may hold both rules and a policy.
    """
    return tuple(str(path) for path in _files(paths) if is_policy_file(path) or _holds_a_policy(path))


def is_policy_file(path: Path) -> bool:
    """Whether a file holds a midwatch policy, and no rules."""
    if path.name.endswith(POLICY_ENDINGS):
        return True
    tree = read_yaml(str(path), _content(path), [])
    return isinstance(tree, YamlMapping) and "policy" in tree.entries and "version" not in tree.entries


def _holds_a_policy(path: Path) -> bool:
    """Whether a file of oellm-autoexp holds a policy. If it cannot be read, reading its rules reports why."""
    try:
        if not is_config(str(path), _content(path)):
            return False
        config = load_config(str(path))
    except ConfigurationError:
        return False
    return config.policies is not None or config.policy is not None or config.watches


def _files(paths: Iterable[Path]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            yield from (file for file in sorted(path.glob("*.y*ml")) if file.suffix in YAML)
        else:
            yield path


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"the file cannot be read: {error.strerror}",
            where=str(path),
            remedy="name a YAML file, or a directory of them, that this user may read",
        ) from error
