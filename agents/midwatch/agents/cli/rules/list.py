"""`midwatch rules list`: the rules of presets, packs, files, or of the running watch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.options import json_option, with_settings
from midwatch.agents.cli.rules.sources import pack_of, rules_option

if TYPE_CHECKING:
    from midwatch.rules.model import Rule
    from midwatch.streams.settings.schema import Settings

_TRANSIENT = {True: "transient", False: "lasting", None: "depends"}


@click.command("list")
@rules_option
@click.option("--in-force", is_flag=True, help="List the rules that the running watch uses.")
@json_option
@with_settings()
def list_rules(*, names: tuple[str, ...], in_force: bool, as_json: bool, settings: Settings) -> None:
    """List the rules of presets, packs or files: name, role, error type, whether transient, and pack.

    Transient: the same start may succeed with nothing changed. The last lines name what --rules takes.
    """
    if in_force:
        _list_in_force(settings, as_json=as_json)
        return
    from midwatch.agents.rulesets.bundles import combined
    from midwatch.rules.loader import load_bundle, shipped_files
    from midwatch.streams.records import codec

    rules = combined([load_bundle(name) for name in names])
    shipped: dict[str, list[str]] = {}
    for file in sorted(shipped_files()):
        folder, _, name = file.partition("/")
        shipped.setdefault(folder, []).append(name.rpartition(".")[0])
    if as_json:
        click.echo(codec.plain_to_json({"version": 1, "rules": [_plain(rule) for rule in rules], **shipped}))
        return
    _print(rules)
    for folder, known in shipped.items():
        click.echo(f"{folder}: {', '.join(known)}", err=True)


def _list_in_force(settings: Settings, *, as_json: bool) -> None:
    from midwatch.agents.rulesets.content import content
    from midwatch.agents.rulesets.reload.status import ask
    from midwatch.streams.records import codec
    from midwatch.streams.services.connection import with_connection

    status = ask(with_connection(settings))
    found = (
        content(status.current.in_force.bundle, status.record) if status.current and status.record else None
    )
    rules = found.rules if found else ()
    if as_json:
        body = {"version": 1, "in_force": status.plain(), "rules": [_plain(rule) for rule in rules]}
        click.echo(codec.plain_to_json(body))
        return
    _print(rules)
    click.echo(status.line(), err=True)
    if status.refused:
        click.echo(f"warning: {status.warning()}", err=True)


def _print(rules: Sequence[Rule]) -> None:
    rows = [(rule.name, str(rule.role), rule.error_type, _transience(rule), pack_of(rule)) for rule in rules]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(5)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    click.echo(f"{len(rows)} rules", err=True)


def _transience(rule: Rule) -> str:
    return _TRANSIENT[rule.transient] if rule.error_type else ""


def _plain(rule: Rule) -> dict[str, object]:
    return {
        "name": rule.name,
        "role": rule.role.value,
        "error_type": rule.error_type,
        "subsystem": rule.subsystem,
        "transient": rule.transient,
        "pack": pack_of(rule),
        "where": str(rule.location),
        "pattern": rule.pattern,
        "block": rule.block.value if rule.block else None,
        "remedy": rule.remedy,
        "source": rule.source,
    }
