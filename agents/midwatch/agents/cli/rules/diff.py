"""`midwatch rules diff A B`: how two sets of rules differ."""

from __future__ import annotations

import click

from midwatch.agents.cli.options import json_option


@click.command()
@click.argument("before", metavar="A")
@click.argument("after", metavar="B")
@json_option
def diff(before: str, after: str, as_json: bool) -> int:
    """Show which rules B adds, removes or changes against A. Both are presets, packs or files.

    The place of a rule in its file does not count. Exit code 1 if they differ.
    """
    from midwatch.agents.cli.rules.sources import load_all
    from midwatch.rules.errors import RuleErrors
    from midwatch.rules.matching.inspection import differences
    from midwatch.rules.model import Rule
    from midwatch.streams.records import codec

    bundles, errors = load_all([before, after])
    if errors:
        raise RuleErrors(errors)
    sides = [{rule.name: rule for rule in bundle.rules} for bundle in bundles]
    rows = []
    for what, name in differences(bundles[0], bundles[1]):
        old, new = (side.get(name) for side in sides)
        changed = {
            field: [_plain(getattr(old, field)), _plain(getattr(new, field))]
            for field in Rule.__slots__
            if old and new and field != "location" and getattr(old, field) != getattr(new, field)
        }
        rows.append({"what": what, "name": name, "changed": changed})
        if not as_json:
            click.echo(f"{what:8}{name}")
            for field, (was, now) in changed.items():
                click.echo(f"          {field}: {was!r} → {now!r}")
    limits = [{phase.value: seconds for phase, seconds in bundle.silence.items()} for bundle in bundles]
    if as_json:
        silence = {"before": limits[0], "after": limits[1]}
        click.echo(codec.plain_to_json({"version": 1, "rules": rows, "silence": silence}))
    elif limits[0] != limits[1]:
        click.echo(f"silence: {_limits(limits[0])} → {_limits(limits[1])}")
    return 1 if rows or limits[0] != limits[1] else 0


def _plain(value: object) -> object:
    return str(value) if value is not None and not isinstance(value, (bool, int, float)) else value


def _limits(limits: dict[str, float]) -> str:
    return ", ".join(f"{phase} {seconds:g} s" for phase, seconds in limits.items()) or "none"
