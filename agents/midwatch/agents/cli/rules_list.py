"""`midwatch rules list`: what is looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.options import json_option
from midwatch.agents.cli.rules_reading import pack_of, rules_option

if TYPE_CHECKING:
    from midwatch.rules.model import Rule

_TRANSIENT = {True: "transient", False: "lasting", None: "depends"}


@click.command("list")
@rules_option
@json_option
def list_rules(names: tuple[str, ...], as_json: bool) -> None:
    """List the rules of presets, packs or files: name, role, error type, whether transient, and pack.

    Transient: the same start may succeed with nothing changed. At the end come the names that --rules takes.
    """
    from midwatch.agents.bundles import combined
    from midwatch.rules.loader import load_bundle, shipped_files
    from midwatch.streams import codec

    rules = combined([load_bundle(name) for name in names])
    shipped: dict[str, list[str]] = {}
    for file in sorted(shipped_files()):
        folder, _, name = file.partition("/")
        shipped.setdefault(folder, []).append(name.rpartition(".")[0])
    if as_json:
        click.echo(codec.plain_to_json({"version": 1, "rules": [_plain(rule) for rule in rules], **shipped}))
        return
    rows = [(rule.name, str(rule.role), rule.error_type, _transience(rule), pack_of(rule)) for rule in rules]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(5)]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    click.echo(f"{len(rows)} rules", err=True)
    for folder, known in shipped.items():
        click.echo(f"{folder}: {', '.join(known)}", err=True)


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
        "remedy": rule.remedy,
        "source": rule.source,
    }
