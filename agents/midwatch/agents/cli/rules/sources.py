"""What the commands about rules share: the rules that names mean, and notes and mistakes as JSON."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from midwatch.streams.errors import UsageError

if TYPE_CHECKING:
    from midwatch.rules.errors import LocatedError
    from midwatch.rules.model import Bundle, Note, Rule

_ENDINGS = (".yaml", ".yml")

rules_option = click.option(
    "--rules", "names", multiple=True, default=("default",), show_default=True, help="Preset, pack or file."
)


def rule_files(paths: Iterable[Path]) -> list[Path]:
    """The rule files at `paths`. Of a directory: all files in and below it that concern the watch."""
    from midwatch.agents.rulesets.user_files import POLICY_ENDINGS
    from midwatch.rules.loader import is_config, load_config

    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            if path.suffix not in _ENDINGS:
                raise UsageError(
                    "this is not a YAML file", where=str(path), remedy="its name must end in .yaml"
                )
            found.append(path)
            continue
        for file in sorted(path.rglob("*.y*ml")):
            if file.suffix not in _ENDINGS or file.name.endswith(POLICY_ENDINGS):
                continue
            if is_config(str(file), content(file)) and not _concerns_the_watch(load_config, file):
                continue
            found.append(file)
    if not found:
        raise UsageError(
            "there are no rule files",
            where=" ".join(map(str, paths)),
            remedy="name a YAML file or a directory of them",
        )
    return found


def _concerns_the_watch(load: Any, file: Path) -> bool:
    from midwatch.rules.errors import RuleErrors

    try:
        config = load(str(file))
    except RuleErrors:
        return True
    return bool(config.watches or config.policies is not None or config.presets)


def content(file: Path) -> bytes:
    """The bytes of a file that a person named."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(
            f"the file cannot be read: {error.strerror}", where=str(file), remedy="give a file or directory"
        ) from error


def load_all(names: Iterable[str]) -> tuple[list[Bundle], list[LocatedError]]:
    """The bundles of readable files, and every mistake in the others."""
    from midwatch.rules.errors import RuleErrors
    from midwatch.rules.loader import load_bundle

    bundles: list[Bundle] = []
    errors: dict[LocatedError, None] = {}
    for name in names:
        try:
            bundles.append(load_bundle(name))
        except RuleErrors as error:
            errors |= dict.fromkeys(error.errors)
    return bundles, list(errors)


def pack_of(rule: Rule) -> str:
    """The name of the file that holds a rule."""
    from midwatch.rules.files.rule_bundle import stem

    return stem(rule.location.file)


def note_json(note: Note) -> dict[str, str]:
    """A note as JSON."""
    return {"kind": note.kind.value, **_placed(note)}


def error_json(error: LocatedError) -> dict[str, str]:
    """A mistake as JSON."""
    return _placed(error)


def _placed(mistake: Note | LocatedError) -> dict[str, str]:
    return {"where": str(mistake.location), "what": mistake.what, "remedy": mistake.remedy}
