"""Reads rule files into rules. It reports all mistakes at once, and tries each rule on its examples."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from midwatch.rules.errors import LocatedError, RuleErrors
from midwatch.rules.expressions import Expression, PatternError
from midwatch.rules.fields import Fields, describe
from midwatch.rules.files.syntax_advice import advice_for
from midwatch.rules.model import (
    BlockKind,
    Mode,
    Phase,
    RateLimit,
    Role,
    Rule,
    RuleFile,
    Severity,
    Shows,
    SilenceLimit,
    SourceLocation,
)
from midwatch.streams.lines.blocks import finished
from midwatch.streams.lines.launcher_prefix import FRONT
from midwatch.streams.strict_yaml import YamlNode, YamlScalar, plain, read_yaml

VERSION = 1
MAX_PATTERN = 4096
FRONT_MARK = "{{front}}"
"""Stands in a pattern for the prefixes of launchers and log collectors. RE2 knows no such syntax."""
_NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}\Z")
_GROUP_NAME = re.compile(r"\(\?P?<([A-Za-z_]\w*)>")


def read_rules(files: Mapping[str, bytes]) -> tuple[Rule, ...]:
    """The rules of all files, in the order of the mapping. It ignores `include:` and silence limits.

    The keys of `files` are the names that errors show. Raises RuleErrors with every mistake of every file.
    """
    errors: list[LocatedError] = []
    rules = tuple(rule for name, data in files.items() for rule in read_rule_file(name, data, errors).rules)
    refuse_double_names(rules, errors)
    if errors:
        raise RuleErrors(errors)
    return rules


def read_rule_file(name: str, data: bytes, errors: list[LocatedError], *, tried: bool = True) -> RuleFile:
    """One file, as far as it can be read. It appends mistakes to `errors`.

    Equal bytes under the same name are read and tried once in a process. Callers share the result. With
    `tried=False` no pattern is compiled and no example is tried, for files that were tried before.
    """
    read, mistakes = _read_once(name, data, tried)
    errors += mistakes
    return read


@lru_cache(maxsize=128)
def _read_once(name: str, data: bytes, tried: bool) -> tuple[RuleFile, tuple[LocatedError, ...]]:
    errors: list[LocatedError] = []
    return _read(name, data, errors, tried), tuple(errors)


def _read(name: str, data: bytes, errors: list[LocatedError], tried: bool) -> RuleFile:
    root = read_yaml(name, data, errors)
    if root is None:
        return RuleFile(name=name)
    fields = Fields(root, errors, "the file")
    version = fields.whole_number("version", required=True)
    if version is not None and version != VERSION:
        fields.complain(fields.place("version"), f"version {version} of the rule format", f"Write {VERSION}.")
    description = fields.text("description")
    include = tuple(fields.texts("include"))
    exclude = tuple(fields.texts("exclude"))
    silence = _silence(fields)
    any_line = fields.flag("any_line") or False
    rules = tuple(
        rule for node in fields.items("rules") if (rule := _read_rule(node, errors, tried)) is not None
    )
    fields.done()
    return RuleFile(
        name=name,
        description=description,
        include=include,
        exclude=exclude,
        silence=silence,
        any_line=any_line,
        rules=rules,
    )


def refuse_double_names(rules: tuple[Rule, ...], errors: list[LocatedError]) -> None:
    """Reports each rule whose name another rule already has: its hits would be ambiguous."""
    first: dict[str, SourceLocation] = {}
    for rule in rules:
        if rule.name in first:
            what = f"a second rule named {rule.name!r}, first at {first[rule.name]}"
            remedy = "Rename one, or leave the included one out with `exclude:`."
            errors.append(LocatedError(rule.location, what, remedy))
        else:
            first[rule.name] = rule.location


def _silence(fields: Fields) -> tuple[SilenceLimit, ...]:
    node = fields.node("silence")
    if node is None:
        return ()
    limits = Fields(node, fields.errors, "`silence`")
    found = [
        SilenceLimit(phase=phase, seconds=seconds)
        for phase in Phase
        if (seconds := limits.duration(phase)) is not None
    ]
    limits.done()
    return tuple(found)


def _read_rule(node: YamlNode, errors: list[LocatedError], tried: bool) -> Rule | None:
    before = len(errors)
    fields = Fields(node, errors, "the rule")
    name = fields.text("name", required=True)
    if name:
        fields.what = f"rule {name!r}"
        if not _NAME.match(name):
            remedy = "Use small letters, digits, `_`, `-` and `.`, at most 64."
            fields.complain(fields.place("name"), f"{name!r} is no name for a rule", remedy)
    pattern = _with_front(fields.text("pattern", required=True))
    role = fields.choice("role", Role) or Role.CAUSE
    error_type = fields.text("error_type")
    if role in (Role.CAUSE, Role.CONSEQUENCE) and not error_type:
        remedy = "Add `error_type:`, or set `role:` to context, progress or success."
        fields.complain(fields.location, f"{fields.what} is a {role} without an error type", remedy)
    phase = fields.choice("phase", Phase)
    rule = Rule(
        name=name,
        pattern=pattern,
        error_type=error_type,
        subsystem=fields.text("subsystem"),
        severity=fields.choice("severity", Severity) or usual_severity(role),
        role=role,
        transient=fields.flag("transient"),
        captures=_captures(fields),
        remedy=fields.text("remedy"),
        match=tuple(text for text, _ in fields.texts("match")),
        no_match=tuple(text for text, _ in fields.texts("no_match")),
        metadata={key: plain(value) for key, (_, value) in fields.mapping("metadata").items()},
        rate_limit=_rate_limit(fields),
        stop_pattern=_with_front(fields.text("stop_pattern")),
        fallback=fields.flag("fallback") or False,
        any_level=fields.flag("any_level") or False,
        at_start=fields.flag("at_start") or False,
        phase=phase or (Phase.TRAINING if role is Role.PROGRESS else None),
        shows=fields.choice("shows", Shows) or Shows.STEP,
        mode=fields.choice("mode", Mode),
        block=fields.choice("block", BlockKind),
        source=fields.text("source"),
        export=tuple(name for name, _ in fields.texts("export")),
        location=fields.location,
    )
    fields.done()
    if rule.block and (rule.at_start or rule.role is Role.PROGRESS):
        what = f"{fields.what} searches a {rule.block}: `at_start` and `role: progress` are for single lines"
        fields.complain(fields.place("block"), what, "Leave out `block:`, or the other key.")
    if rule.shows is not Shows.STEP and rule.role is not Role.PROGRESS:
        what = f"{fields.what} is no progress: `shows` says what a line of `role: progress` proves"
        fields.complain(fields.place("shows"), what, "Leave it out, or set `role: progress`.")
    if pattern and tried:
        _try_patterns(rule, fields)
    return rule if len(errors) == before else None


def usual_severity(role: Role) -> Severity:
    """The severity of a rule of this role that names none."""
    return Severity.ERROR if role in (Role.CAUSE, Role.CONSEQUENCE) else Severity.INFO


def _captures(fields: Fields) -> dict[str, str]:
    found: dict[str, str] = {}
    for group, (location, node) in fields.mapping("captures").items():
        if isinstance(node, YamlScalar) and isinstance(node.value, str) and node.value:
            found[group] = node.value
        else:
            what = f"the meaning of group {group!r} is {describe(node)}, not text"
            fields.complain(location, what, "Write `group: meaning`, for example `r: rank`.")
    return found


def _rate_limit(fields: Fields) -> RateLimit | None:
    node = fields.node("rate_limit")
    if node is None:
        return None
    limit = Fields(node, fields.errors, "`rate_limit`")
    hits, seconds = limit.whole_number("hits", required=True), limit.duration("per", required=True)
    limit.done()
    if hits is not None and hits < 1:
        limit.complain(limit.place("hits"), "`hits` is below 1", "Leave the rule out instead.")
    return RateLimit(hits, seconds) if hits and hits > 0 and seconds else None


def _with_front(pattern: str) -> str:
    """The pattern with what launchers print in front of lines in place of `{{front}}`."""
    return pattern.replace(FRONT_MARK, FRONT)


def _try_patterns(rule: Rule, fields: Fields) -> None:
    expression = _compile(rule.pattern, "pattern", fields)
    if rule.stop_pattern:
        _compile(rule.stop_pattern, "stop_pattern", fields)
    if expression is None:
        return
    place = fields.place("pattern")
    names = _GROUP_NAME.findall(rule.pattern)
    for name in sorted({name for name in names if names.count(name) > 1}):
        remedy = "Give each its own name and one meaning: `captures: {a: size, b: size}`."
        fields.complain(place, f"group {name!r} is in the pattern twice", remedy)
    for group, (location, _) in fields.mapping("captures").items():
        if group not in expression.group_numbers:
            remedy = f"Groups: {', '.join(expression.group_numbers) or 'none'}."
            fields.complain(location, f"the pattern has no group {group!r}", remedy)
    _check_exports(rule, expression, fields)
    if expression.search(b"") is not None:
        text_kind = rule.block or "line"
        what = f"the pattern matches an empty {text_kind}, so it would match every {text_kind}"
        fields.complain(place, what, "Require at least one character that the message always has.")
    for key, must_match in (("match", True), ("no_match", False)):
        for line, location in fields.texts(key):
            if rule.block:
                _try_block(expression, line, location, must_match, fields)
            else:
                _try_example(expression, line, location, must_match, fields)


def _check_exports(rule: Rule, expression: Expression, fields: Fields) -> None:
    meanings = {rule.captures.get(group, group) for group in expression.group_numbers}
    for name, location in fields.texts("export"):
        if name not in meanings:
            remedy = f"Captures: {', '.join(sorted(meanings)) or 'none'}."
            fields.complain(location, f"the pattern captures no {name!r} to export", remedy)
        elif rule.role is Role.PROGRESS:
            remedy = "Leave out `export:`; step and loss of progress lines are metrics already."
            fields.complain(location, f"{fields.what} is of progress and exports nothing", remedy)


def _try_example(
    expression: Expression, line: str, location: SourceLocation, must_match: bool, fields: Fields
) -> None:
    if "\n" in line:
        what = "an example of more than one line"
        remedy = "A rule sees one line at a time: split the example, or write `block: traceback`."
        fields.complain(location, what, remedy)
    elif (expression.search(line.encode("utf-8", "surrogateescape")) is not None) != must_match:
        _report_example(line, location, must_match, fields)


def _try_block(
    expression: Expression, text: str, location: SourceLocation, must_match: bool, fields: Fields
) -> None:
    blocks = [block.text for block in finished(text.encode("utf-8", "surrogateescape"))]
    if not blocks:
        what = f"an example without a whole traceback: {text!r}"
        remedy = "Write all its lines, from `Traceback (most recent call last):` to the exception, after `|`."
        fields.complain(location, what, remedy)
    elif any(expression.search(block) is not None for block in blocks) != must_match:
        _report_example(text, location, must_match, fields)


def _report_example(text: str, location: SourceLocation, must_match: bool, fields: Fields) -> None:
    what = (
        f"{fields.what} does not match its example"
        if must_match
        else f"{fields.what} matches the line that it must not match"
    )
    fields.complain(location, f"{what}: {text!r}", "Correct the pattern or the example.")


def _compile(pattern: str, key: str, fields: Fields) -> Expression | None:
    place = fields.place(key)
    if len(pattern) > MAX_PATTERN:
        what = f"`{key}` has {len(pattern)} characters, more than {MAX_PATTERN}"
        fields.complain(place, what, "Split the rule.")
        return None
    try:
        return Expression(pattern)
    except PatternError as error:
        fields.complain(place, f"RE2 does not accept `{key}`: {error}", advice_for(pattern))
        return None
