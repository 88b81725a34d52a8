"""`midwatch rules check FILE|DIR…`: every mistake in rule files, at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from midwatch.agents.cli.options import json_option

if TYPE_CHECKING:
    from midwatch.agents.rulesets.admission import Admitted
    from midwatch.rules.errors import LocatedError
    from midwatch.rules.model import Bundle


@click.command()
@click.argument("paths", metavar="FILE|DIR...", nargs=-1, type=click.Path(path_type=Path, exists=True))
@click.option("--insist", is_flag=True, help="Accept rules that are too slow; they are still listed.")
@click.option(
    "--no-measure", is_flag=True, help="Do not measure how fast the rules are, which saves seconds."
)
@click.option("--schema", is_flag=True, help="Print the JSON Schema of rule files, for editors.")
@json_option
def check(paths: tuple[Path, ...], insist: bool, no_measure: bool, schema: bool, as_json: bool) -> int:
    """Show every mistake in rule files, with file:line:column and what to write instead.

    It reads files of midwatch and of oellm-autoexp. For the latter it lists what has another effect here or
    none, and what midwatch does not execute. Of a directory it reads all files below. Then it measures the
    rules beside the default ones, and refuses a rule that slows the watch down. Exit code 3: a mistake or a
    slow rule.
    """
    from midwatch.rules.errors import RuleErrors
    from midwatch.rules.files.file_schema import rule_file_schema
    from midwatch.streams.records import codec

    if schema:
        if paths:
            raise click.UsageError("--schema takes no files")
        click.echo(codec.plain_to_json(rule_file_schema()))
        return 0
    if not paths:
        raise click.UsageError("give files or directories of rules, or --schema")
    checked = _Checked(paths, measured=not no_measure)
    failed = [*checked.errors, *([] if insist else checked.too_slow)]
    if as_json:
        click.echo(codec.plain_to_json(checked.json(insist=insist)))
        return 3 if failed else 0
    checked.show(insist=insist)
    if failed:
        raise RuleErrors(failed)
    return 0


class _Checked:
    """What the check found. It measures all rules together, and only if it could read all files."""

    def __init__(self, paths: tuple[Path, ...], *, measured: bool) -> None:
        from midwatch.agents.cli.rules.sources import load_all, rule_files
        from midwatch.agents.rulesets.admission import BESIDE, divided, refusals
        from midwatch.agents.rulesets.bundles import combined, shadowed
        from midwatch.rules.loader import load_bundle

        default_rules = load_bundle(BESIDE)
        self.bundles: list[tuple[Path, Bundle]] = []
        self.errors: list[LocatedError] = []
        for file in rule_files(paths):
            bundles, errors = load_all([str(file)])
            for bundle in bundles:
                notes = (*bundle.notes, *shadowed([default_rules, bundle]))
                self.bundles.append((file, replace(bundle, notes=notes)))
            self.errors += [*errors, *_policy_errors(file)]
        self.errors = list(dict.fromkeys(self.errors))
        self.shipped, self.user_rules = divided(combined(bundle for _, bundle in self.bundles))
        self.admitted: Admitted | None = None
        if measured and not self.errors:
            self.admitted = self._admit()
        self.too_slow = refusals(self.admitted.refused) if self.admitted else []

    def _admit(self) -> Admitted:
        from midwatch.agents.rulesets.admission import admit_user_rules

        return admit_user_rules(self.shipped, self.user_rules)

    def json(self, *, insist: bool) -> dict[str, Any]:
        from midwatch.agents.cli.rules.sources import error_json, note_json

        refused = self.admitted.refused if self.admitted else ()
        return {
            "version": 1,
            "files": [
                {
                    "file": str(file),
                    "rules": len(bundle.rules),
                    "examples": _examples(bundle),
                    "notes": [note_json(note) for note in bundle.notes],
                }
                for file, bundle in self.bundles
            ],
            "errors": [error_json(error) for error in sorted(self.errors, key=lambda each: each.location)],
            "too_slow": [
                {
                    "rule": refusal.rule.name,
                    "workload": refusal.workload,
                    "megabytes_per_second": refusal.speed,
                    "megabytes_per_second_without": refusal.speed_without,
                    "insisted": insist,
                    **error_json(error),
                }
                for refusal, error in zip(refused, self.too_slow, strict=True)
            ],
            "megabytes_per_second": dict(self.admitted.speeds) if self.admitted else {},
        }

    def show(self, *, insist: bool) -> None:
        notes: dict[str, None] = {}
        for file, bundle in self.bundles:
            examples = _examples(bundle)
            click.echo(f"{file}: {_count(len(bundle.rules), 'rule')}, {_count(examples, 'example')}")
            notes |= dict.fromkeys(str(note) for note in bundle.notes)
        if self.admitted is not None and self.admitted.speeds:
            speeds = ", ".join(f"{name} {speed:.0f}" for name, speed in self.admitted.speeds.items())
            click.echo(f"beside the default rules, MB/s: {speeds}")
        if insist:
            notes |= dict.fromkeys(
                f"{replace(error, what=f'warning: {error.what}; accepted by --insist')}"
                for error in self.too_slow
            )
        for note in notes:
            click.echo(note, err=True)


def _policy_errors(file: Path) -> tuple[LocatedError, ...]:
    """The mistakes in the policies that a configuration of oellm-autoexp holds beside its rules."""
    from midwatch.agents.cli.rules.sources import content
    from midwatch.agents.policies.loader import load_policy
    from midwatch.rules.errors import RuleErrors
    from midwatch.rules.loader import is_config

    try:
        if is_config(str(file), content(file)):
            load_policy(str(file))
    except RuleErrors as error:
        return error.errors
    return ()


def _examples(bundle: Bundle) -> int:
    return sum(len(rule.match) + len(rule.no_match) for rule in bundle.rules)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
