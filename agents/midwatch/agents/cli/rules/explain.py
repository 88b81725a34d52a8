"""`midwatch rules explain LINE`: which rules match a line, and why the others do not."""

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
    """Show which rules match LINE, what the line counts as, and why other rules do not match.

    `-` reads the line from standard input. A whole traceback is explained twice: by its last line and as a
    block.

    The watch tries a rule on a line only if the line holds one of the rule's literals. Rules that it tried
    without a match are listed. The line is judged alone: its neighbours in a log may change what it counts
    as. Exit code 1: no rule matches.
    """
    from midwatch.agents.rulesets.bundles import watched_rules
    from midwatch.rules.matching.inspection import Explanation, explain_blocks, explain_line
    from midwatch.streams.records import codec

    text = _normalised(line)
    rules = watched_rules(names).rules
    explanation = explain_line(rules, text.rpartition(b"\n")[2])
    if b"\n" in text:
        block = explain_blocks(rules, text + b"\n")
        explanation = Explanation((*block.hits, *explanation.hits), (*block.misses, *explanation.misses))
    stops = [match.rule.name for match in rules.match_stops(text.rpartition(b"\n")[2])]
    counted = _counted(rules, text)
    hits = [_hit(hit, counted) for hit in explanation.hits]
    near = sorted(explanation.misses, key=lambda miss: -len(miss.trigger))
    misses = [{"rule": miss.rule.name, "literal": miss.trigger, **_origin(miss.rule)} for miss in near]
    untried = 0 if b"\n" in text else sum(rule.block is not None for rule in rules.rules)
    others = len(rules.rules) - untried - len(hits) - len(misses)
    if as_json:
        body = {
            "version": 1,
            "line": text.decode("utf-8", "replace"),
            "hits": hits,
            "near": misses,
            "others": others,
            "not_asked": untried,
            "ends_watch_of": stops,
        }
        click.echo(codec.plain_to_json(body))
        return 0 if hits else 1
    for hit in hits:
        _show(hit)
    if not hits:
        click.echo("no rule matches")
    for miss in misses[:_NEAR]:
        click.echo(f"not {miss['rule']}: the line holds {miss['literal']!r}, but not the rest of its pattern")
        click.echo(f"    pattern  {_short(miss['pattern'])}")
    if len(misses) > _NEAR:
        click.echo(
            f"not {len(misses) - _NEAR} more rules of which the line holds a literal; --json lists them"
        )
    for name in stops:
        click.echo(f"ends the watch of {name}: after this line the rule no longer counts in this attempt")
    click.echo(f"not the other {others} rules: the line holds none of their literals")
    if untried:
        click.echo(f"not tried: {untried} rules over whole tracebacks; give a traceback with -")
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
            f"{len(lines)} lines are neither one line nor one traceback",
            where="LINE",
            remedy="`midwatch replay -` reads many lines",
        )
    return lines[0]


def _counted(rules: RuleSet, text: bytes) -> dict[str, str]:
    """The role that the line has in the stream, by rule; rules that the stream drops are absent."""
    from midwatch.agents.match.chunk_hits import match
    from midwatch.agents.replay.reading.log_files import LogFile, chunks

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
        why = "not counted: it counts only at the start of a line, or another rule knows more"
    elif role is None:
        why = "not counted: another rule knows more about this line"
    elif role != rule.role:
        why = f"counts as {role} only: the line is a warning or a quotation"
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
        **_origin(rule),
        "remedy": rule.remedy,
    }


def _origin(rule: Rule) -> dict[str, str]:
    return {"pack": pack_of(rule), "where": str(rule.location), "pattern": rule.pattern}


def _show(hit: dict[str, Any]) -> None:
    kind = f"{hit['role']}, {hit['error_type']}" if hit["error_type"] else hit["role"]
    click.echo(f"{hit['rule']} ({kind}; {hit['where']})")
    found = f"found by {hit['literal']!r}" if hit["literal"] else "no literal: tried on every line"
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
