"""`midwatch rules test`: the examples of rules, run through all of them together as a worker would."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from midwatch.agents.cli.options import json_option

if TYPE_CHECKING:
    from midwatch.rules.errors import LocatedError
    from midwatch.rules.matching.compiler import RuleSet
    from midwatch.rules.model import Rule


@click.command()
@click.argument("names", metavar="[FILE|DIR|PRESET]...", nargs=-1)
@json_option
def test(names: tuple[str, ...], as_json: bool) -> int:
    """Run the `match:` and `no_match:` examples of rules; without an argument of the default preset.

    Each is matched by the compiled rules of all that is named, as in a worker. Exit code 3: an example fails,
    or a file is wrong.
    """
    from midwatch.agents.cli.rules.sources import error_json, load_all, rule_files
    from midwatch.agents.rulesets.bundles import combined
    from midwatch.rules.errors import RuleErrors
    from midwatch.rules.matching.compiler import compile_rules
    from midwatch.streams.records import codec

    wanted: list[str] = []
    for name in names or ("default",):
        wanted += [str(file) for file in rule_files([Path(name)])] if Path(name).is_dir() else [name]
    bundles, errors = load_all(wanted)
    rules = combined(bundles)
    if not errors:
        errors = _failures(compile_rules(rules))
    positive, negative = sum(len(rule.match) for rule in rules), sum(len(rule.no_match) for rule in rules)
    bare = [rule.name for rule in rules if not rule.match]
    if as_json:
        body = {
            "version": 1,
            "rules": len(rules),
            "match": positive,
            "no_match": negative,
            "without_examples": bare,
            "errors": [error_json(error) for error in errors],
        }
        click.echo(codec.plain_to_json(body))
        return 3 if errors else 0
    if errors:
        raise RuleErrors(errors)
    click.echo(f"{len(rules)} rules: {positive} lines match as they must, {negative} do not as they must not")
    if bare:
        click.echo(f"without an example: {', '.join(bare)}", err=True)
    return 0


def _failures(rule_set: RuleSet) -> list[LocatedError]:
    from midwatch.rules.errors import LocatedError

    def found(rule: Rule, line: str) -> bool:
        raw = line.encode("utf-8", "surrogateescape")
        matches = rule_set.match_blocks(raw) if rule.block else rule_set.match_line(raw)
        return any(match.rule is rule for match in matches)

    return [
        LocatedError(
            rule.location,
            f"beside others rule {rule.name!r} {'misses its' if wanted else 'finds a wrong'} line {line!r}",
            "The rule alone does right, so this is a fault of midwatch: please report it.",
        )
        for rule in rule_set.rules
        for wanted, lines in ((True, rule.match), (False, rule.no_match))
        for line in lines
        if found(rule, line) is not wanted
    ]
