"""`midwatch rules explain LINE`: which rules match, by what, and why the others do not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from midwatch.agents.cli.options import json_option
from midwatch.agents.cli.rules.sources import pack_of, rules_option
from midwatch.streams.errors import UsageError

if TYPE_CHECKING:
    from midwatch.rules.matching.compiler import RuleSet
    from midwatch.rules.matching.inspection import LineMatch
    from midwatch.rules.model import Rule

_NEAR, _PATTERN = 5, 160


@click.command()
@click.argument("line")
@rules_option
@json_option
def explain(line: str, names: tuple[str, ...], as_json: bool) -> int:
    """Say which rules match LINE (- reads it), what the watch takes it for, and why others do not match.

    A whole traceback is explained by its last line and as the block that it is.

    A rule is tried on a line only if one of its literals stands there; those that were tried in vain are
    named. The line is looked at alone: what stands around it in a log may change what it counts for. Exit
    code 1: no rule matches.
    """
    from midwatch.agents.rulesets.bundles import watched_rules
    from midwatch.rules.matching.inspection import Explanation, explain_blocks, explain_line
    from midwatch.streams.records import codec

    text = _normalised(line)
    rules = watched_rules(names).rules
    told = explain_line(rules, text.rpartition(b"\n")[2])
    if b"\n" in text:
        block = explain_blocks(rules, text + b"\n")
        told = Explanation((*block.hits, *told.hits), (*block.misses, *told.misses))
    stops = [match.rule.name for match in rules.match_stops(text.rpartition(b"\n")[2])]
    counted = _counted(rules, text)
    hits = [_hit(hit, counted) for hit in told.hits]
    near = sorted(told.misses, key=lambda miss: -len(miss.trigger))
    misses = [{"rule": miss.rule.name, "literal": miss.trigger, **_stood(miss.rule)} for miss in near]
    unasked = 0 if b"\n" in text else sum(rule.block is not None for rule in rules.rules)
    others = len(rules.rules) - unasked - len(hits) - len(misses)
    if as_json:
        body = {
            "version": 1,
            "line": text.decode("utf-8", "replace"),
            "hits": hits,
            "near": misses,
            "others": others,
            "not_asked": unasked,
            "ends_watch_of": stops,
        }
        click.echo(codec.plain_to_json(body))
        return 0 if hits else 1
    for hit in hits:
        _show(hit)
    if not hits:
        click.echo("no rule matches")
    for miss in misses[:_NEAR]:
        click.echo(f"not {miss['rule']}: {miss['literal']!r} stands there, the rest of its pattern does not")
        click.echo(f"    pattern  {_short(miss['pattern'])}")
    if len(misses) > _NEAR:
        click.echo(f"not {len(misses) - _NEAR} more of which a literal stands there: --json lists them")
    for name in stops:
        click.echo(f"ends the watch of {name}: behind this line it counts no more in this attempt")
    click.echo(f"not the other {others}: no literal of theirs stands in the line")
    if unasked:
        click.echo(f"not asked: {unasked} over whole tracebacks; give one with -")
    return 0 if hits else 1


def _normalised(line: str) -> bytes:
    from midwatch.streams.lines.blocks import finished
    from midwatch.streams.lines.normalise import normalise

    raw = click.get_binary_stream("stdin").read() if line == "-" else line.encode("utf-8", "surrogateescape")
    text = normalise(raw).text
    lines = [each for each in text.split(b"\n") if each]
    block = next(reversed(list(finished(text))), None)
    if block is not None and block.end >= len(text.rstrip(b"\n")):
        return text.rstrip(b"\n")
    if len(lines) != 1:
        raise UsageError(
            f"{len(lines)} lines are neither a line nor a traceback to explain",
            where="LINE",
            remedy="`midwatch replay -` reads many",
        )
    return lines[0]


def _counted(rules: RuleSet, text: bytes) -> dict[str, str]:
    """What the stream would make of the line: the role by rule, of the rules that it keeps."""
    from midwatch.agents.match.chunk_hits import match
    from midwatch.agents.replay.log_files import LogFile, chunks

    kept: dict[str, str] = {}
    for chunk in chunks("replay:file/line", LogFile("line", text + b"\n", 0.0), 0):
        found = match(chunk, rules, "", 0)
        if found is not None:
            kept |= {hit.rule: hit.role for hit in found.hits}
            kept |= {column.rule: "progress" for column in found.progress}
    return kept


def _hit(hit: LineMatch, counted: dict[str, str]) -> dict[str, Any]:
    rule = hit.rule
    role = counted.get(rule.name)
    why = ""
    if role is None and rule.at_start:
        why = "set aside: it counts only where it begins the line, or another rule knows more"
    elif role is None:
        why = "set aside: another rule knows more of this line"
    elif role != rule.role:
        why = f"counts as {role} only: the line does not say it in earnest (a warning, or quoted)"
    return {
        "rule": rule.name,
        "role": rule.role.value,
        "error_type": rule.error_type,
        "transient": rule.transient,
        "matched": hit.matched,
        "literal": hit.trigger,
        "captures": dict(hit.captures),
        "counts_as": role,
        "why": why,
        **_stood(rule),
        "remedy": rule.remedy,
    }


def _stood(rule: Rule) -> dict[str, str]:
    return {"pack": pack_of(rule), "where": str(rule.location), "pattern": rule.pattern}


def _show(hit: dict[str, Any]) -> None:
    kind = f"{hit['role']}, {hit['error_type']}" if hit["error_type"] else hit["role"]
    click.echo(f"{hit['rule']} ({kind}; {hit['where']})")
    found = f"found by {hit['literal']!r}" if hit["literal"] else "without a literal: tried on every line"
    click.echo(f"    matched  {hit['matched']!r}, {found}")
    click.echo(f"    pattern  {_short(hit['pattern'])}")
    for name, value in hit["captures"].items():
        click.echo(f"    {name:8} {value}")
    if hit["why"]:
        click.echo(f"    {hit['why']}")
    if hit["remedy"]:
        click.echo(f"    remedy   {hit['remedy']}")


def _short(pattern: str) -> str:
    return pattern if len(pattern) <= _PATTERN else f"{pattern[:_PATTERN]}…"
