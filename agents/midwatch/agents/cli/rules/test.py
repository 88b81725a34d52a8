"""`midwatch rules test`: matches the examples of rules by all rules together, as a worker does."""

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
    """Run the `match:` and `no_match:` examples of rules; without an argument, of the default preset.

    All named rules are compiled together, as in a worker. Exit code 3: an example fails, or a file has a
    mistake.
    """
    from midwatch.agents.cli.rules.sources import error_json, load_all, rule_files
    from midwatch.agents.rulesets.bundles import combined
    from midwatch.rules.errors import RuleErrors
    from midwatch.rules.loader import shipped_plan
    from midwatch.rules.matching.compiler import compile_rules
    from midwatch.streams.records import codec

    sources: list[str] = []
    for name in names or ("default",):
        sources += [str(file) for file in rule_files([Path(name)])] if Path(name).is_dir() else [name]
    bundles, errors = load_all(sources)
    rules = combined(bundles)
    if not errors:
        errors = _failures(compile_rules(rules, known=shipped_plan()))
    positive, negative = sum(len(rule.match) for rule in rules), sum(len(rule.no_match) for rule in rules)
    without_examples = [rule.name for rule in rules if not rule.match]
    if as_json:
        body = {
            "version": 1,
            "rules": len(rules),
            "match": positive,
            "no_match": negative,
            "without_examples": without_examples,
            "errors": [error_json(error) for error in errors],
        }
        click.echo(codec.plain_to_json(body))
        return 3 if errors else 0
    if errors:
        raise RuleErrors(errors)
    click.echo(f"{len(rules)} rules: {positive} lines match and {negative} do not match, as they should")
    if without_examples:
        click.echo(f"without an example: {', '.join(without_examples)}", err=True)
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
            f"among all rules, {rule.name!r} {'does not match' if expected else 'matches'} the line {line!r}",
            "The rule alone is right, so this is a fault of midwatch: please report it.",
        )
        for rule in rule_set.rules
        for expected, lines in ((True, rule.match), (False, rule.no_match))
        for line in lines
        if found(rule, line) is not expected
    ]
