"""`midwatch rules convert FILE|DIR`: files of oellm-autoexp in midwatch's form."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.options import json_option, retries_option
from midwatch.agents.cli.rules.sources import content
from midwatch.streams.errors import ConfigurationError, UsageError

if TYPE_CHECKING:
    from midwatch.agents.rulesets.conversion import Converted
    from midwatch.rules.errors import LocatedError
    from midwatch.rules.oellm.reading import Config


@click.command()
@click.argument("path", metavar="FILE|DIR", type=click.Path(path_type=Path, exists=True))
@click.option(
    "--output", type=click.Path(path_type=Path), default=".", show_default=True, help="Directory to write to."
)
@click.option("--force", is_flag=True, help="Overwrite existing files.")
@retries_option
@json_option
def convert(path: Path, output: Path, retries: str, force: bool, as_json: bool) -> None:
    """Write a configuration of oellm-autoexp in midwatch's form: NAME.rules.yaml and NAME.policy.yaml.

    It reads all four generations, with the files that their `defaults:` lists name. Of a directory it
    converts every file that concerns the watch. Standard error lists what midwatch does not execute, and what
    means something else here. If any file has a mistake, it writes nothing.
    """
    from midwatch.agents.policies.loader import load_policy, shipped_policies
    from midwatch.agents.policies.oellm import RetryCounting
    from midwatch.agents.rulesets.conversion import convert as convert_config
    from midwatch.rules.errors import RuleErrors
    from midwatch.rules.loader import shipped_files

    shipped, policies = shipped_files(), {name: load_policy(name) for name in shipped_policies()}
    errors: list[LocatedError] = []
    converted: list[tuple[Path, Converted]] = []
    for file in _files(path):
        try:
            config = _config(file, alone=file == path)
            if config is not None:
                converted.append((file, convert_config(config, shipped, RetryCounting(retries), policies)))
        except RuleErrors as error:
            errors += error.errors
    if errors:
        raise RuleErrors(errors)
    base = path if path.is_dir() else path.parent
    written = [(file, made, _write(output / file.relative_to(base), made, force)) for file, made in converted]
    _show(written, as_json=as_json)


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*.y*ml") if file.suffix in (".yaml", ".yml"))


def _config(file: Path, *, alone: bool) -> Config | None:
    """None for a file of a directory that does not concern the watch."""
    from midwatch.rules.loader import is_config, load_config

    if not is_config(str(file), content(file)):
        if alone:
            raise ConfigurationError(
                "this is no configuration of oellm-autoexp",
                where=str(file),
                remedy="Name a file with log_signals, log_events, policies or a job, or a directory of them.",
            )
        return None
    config = load_config(str(file))
    concerns_the_watch = config.watches or config.policies is not None or config.presets
    return config if concerns_the_watch or alone else None


def _write(place: Path, made: Converted, force: bool) -> dict[str, str]:
    written: dict[str, str] = {}
    for kind, text in (("rules", made.rules), ("policy", made.policy)):
        target = place.with_suffix(f".{kind}.yaml")
        if not text:
            continue
        if target.exists() and not force:
            raise UsageError("the file exists already", where=str(target), remedy="give --output or --force")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        written[kind] = str(target)
    return written


def _show(written: list[tuple[Path, Converted, dict[str, str]]], *, as_json: bool) -> None:
    from midwatch.streams.records import codec

    if as_json:
        rows = [{"file": str(file), **files, "notes": list(_plain(made))} for file, made, files in written]
        click.echo(codec.plain_to_json({"version": 1, "converted": rows}))
        return
    notes: dict[str, None] = {}
    for file, made, files in written:
        notes |= dict.fromkeys(str(note) for note in made.notes)
        click.echo(f"{file} → {', '.join(files.values()) or 'nothing: the file does not concern the watch'}")
    for note in notes:
        click.echo(note, err=True)


def _plain(made: Converted) -> Iterator[dict[str, str]]:
    for note in made.notes:
        yield {
            "kind": note.kind.value,
            "where": str(note.location),
            "what": note.what,
            "remedy": note.remedy,
        }
