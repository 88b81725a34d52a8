"""Changes values of a YAML file in place: every other byte stays, comments too. Pure: text in, text out."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from midwatch.streams.errors import UsageError

_PLAIN = re.compile(r"[\w./-]+")
_BY_HAND = "change this key by hand, and start the job with `midwatch run`"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A value to set, as YAML writes it. `add`: also where the key is not there yet."""

    key: str
    text: str
    add: bool = False


@dataclass(frozen=True, slots=True)
class Changed:
    """A value that was set, under its whole key, as it stood in the file and stands now. `old` "": added."""

    key: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Patch:
    """The text after all changes."""

    text: str
    changed: tuple[Changed, ...]


def setting(text: str) -> Wanted:
    """`KEY=VALUE` as a person types it. Raises UsageError if the value is none of YAML."""
    key, equals, value = text.partition("=")
    if not key.strip() or not equals or "\n" in value:
        raise UsageError(
            f"{text!r} is not KEY=VALUE", where="--set", remedy="write for example val_batch_size=16"
        )
    try:
        yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise UsageError(f"{value!r} is no value of YAML", where=f"--set {key}", remedy="quote it") from error
    return Wanted(key.strip(), value.strip() or '""')


def quoted(text: str) -> str:
    """A path as YAML writes it."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def load(text: str, where: str) -> dict[str, Any]:
    """The file's mapping. Raises UsageError if the text is no mapping of YAML."""
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(
            f"it is no YAML: {str(error).splitlines()[0]}", where=where, remedy=_BY_HAND
        ) from error
    if not isinstance(data, dict):
        raise UsageError("it is no mapping of keys to values", where=where, remedy="name another file")
    return data


def patch(text: str, wanted: Sequence[Wanted], where: str) -> Patch:
    """The text with these values.

    A key may be dotted. A bare name that stands at one place only, however deep, means that place.

    Raises:
        UsageError: a key is not there, a bare name stands at several places, or its value spans lines.
    """
    changed = []
    for want in wanted:
        data = load(text, where)
        known = [key for key, _ in keys(data)]
        if want.add and want.key not in known:
            key, old, text = want.key, "", _added(text, want)
        else:
            key = _whole_key(known, want.key, where)
            old, text = _replaced(text, key, want.text, where)
        if load(text, where) != _with(data, key.split("."), yaml.safe_load(want.text)):
            raise UsageError(f"{key} cannot be changed alone", where=where, remedy=_BY_HAND)
        changed.append(Changed(key, old, want.text))
    return Patch(text, tuple(changed))


def diff(old: str, new: str, old_name: str, new_name: str) -> str:
    """What differs, in the form of `diff -u`."""
    lines = difflib.unified_diff(old.splitlines(), new.splitlines(), old_name, new_name, lineterm="", n=1)
    return "\n".join(lines)


def keys(data: dict[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """All whole keys of a mapping with their values, the outer ones first."""
    inner = []
    for name, value in data.items():
        whole = f"{before}{name}"
        yield whole, value
        if isinstance(value, dict):
            inner.append((value, f"{whole}."))
    for mapping, prefix in inner:
        yield from keys(mapping, prefix)


def _whole_key(known: list[str], key: str, where: str) -> str:
    if key in known:
        return key
    ends = [whole for whole in known if whole.endswith(f".{key}")]
    if len(ends) == 1:
        return ends[0]
    if ends:
        raise UsageError(f"{key} could be {' or '.join(ends)}", where=where, remedy="give the whole key")
    close = difflib.get_close_matches(key, [*known, *(whole.rpartition(".")[2] for whole in known)], n=1)
    raise UsageError(
        f"it has no key {key}",
        where=where,
        remedy=f"did you mean {close[0]}?" if close else "give a key that the file has",
    )


def _replaced(text: str, key: str, new: str, where: str) -> tuple[str, str]:
    """The value's old text, and the whole text with the new one."""
    name, node = _found(yaml.compose(text), key)
    begin, end = node.start_mark.index, node.end_mark.index
    spans = isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")
    block = isinstance(node, yaml.CollectionNode) and not node.flow_style
    if spans or block or begin < name.end_mark.index:
        raise UsageError(f"the value of {key} is a block or an alias", where=where, remedy=_BY_HAND)
    if begin == end:  # nothing stands behind the colon
        begin = end = text.index(":", name.end_mark.index) + 1
        new = f" {new}"
    return text[begin:end], text[:begin] + new + text[end:]


def _found(node: Any, key: str) -> tuple[Any, Any]:
    """The nodes of a key and its value. The names of a whole key may have dots themselves."""
    for name, value in node.value:
        if name.value == key:
            return name, value
        if key.startswith(f"{name.value}.") and isinstance(value, yaml.MappingNode):
            return _found(value, key.removeprefix(f"{name.value}."))
    raise KeyError(key)


def _added(text: str, want: Wanted) -> str:
    """The text with a key of the outermost mapping, or of one that stands there, as its first."""
    before, _, last = want.key.rpartition(".")
    if not before:
        return f"{text.rstrip(chr(10))}\n{last}: {want.text}\n"
    _, node = _found(yaml.compose(text), before)
    first = node.value[0][0].start_mark
    return f"{text[: first.index]}{last}: {want.text}\n{' ' * first.column}{text[first.index :]}"


def _with(data: dict[str, Any], way: list[str], value: Any) -> dict[str, Any]:
    """The data with the value at this place."""
    for length in range(len(way), 0, -1):
        name = next((key for key in data if str(key) == ".".join(way[:length])), None)
        if name is not None:
            rest = way[length:]
            return {**data, name: _with(data[name], rest, value) if rest else value}
    return {**data, ".".join(way): value}
