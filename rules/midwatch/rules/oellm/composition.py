"""Hydra's composition: a file and the files of its `defaults:` list as one tree. Nodes keep their places.

Mappings merge, and the later one wins. A list replaces the list below it; a note names the events and
policies that were lost. The composer follows only the groups that the watch reads: monitoring, restart, job.
Interpolations (`${...}`) stay text: nothing is ever evaluated.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from midwatch.rules.errors import LocatedError
from midwatch.rules.model import Note, NoteKind, SourceLocation
from midwatch.rules.oellm.generation import is_job, is_monitor, text_of
from midwatch.streams.strict_yaml import YamlList, YamlMapping, YamlNode, YamlScalar, read_yaml

GROUPS = ("monitoring", "restart", "job")
_GLOBAL = re.compile(r"^#\s*@package\s+_global_\s*$", re.MULTILINE)
_LISTS_OF_NAMES = ("log_signals", "log_events", "state_events", "policies")
_DEEPEST = 12
_DISTANT = 8  # folders to search upwards from a file for its configuration root


class Files(Protocol):
    """Bytes by path with `/`: a mapping, or a folder that is read on demand."""

    def __contains__(self, path: object, /) -> bool: ...

    def __getitem__(self, path: str, /) -> bytes: ...


@dataclass(frozen=True, slots=True)
class GroupChoice:
    """A group's choice for which there is no file. A shipped preset or policy may replace it."""

    group: str
    name: str
    location: SourceLocation


@dataclass(slots=True)
class Composed:
    """What the watch reads of a configuration. `monitor` is the section `monitoring` or `job`."""

    root: str
    monitor: YamlMapping | None = None
    is_job: bool = False
    policies: YamlList | None = None
    missing: list[GroupChoice] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)


def compose(root: str, files: Files, errors: list[LocatedError]) -> Composed:
    """The file `root` with the files that it names (paths with `/`). It appends mistakes to `errors`."""
    composer = _Composer(files, errors)
    tree = composer.file(root, ())
    composed = Composed(root, missing=composer.missing, read=composer.read, notes=composer.notes)
    monitoring, job = _section(tree, "monitoring"), _section(tree, "job")
    if monitoring is not None and (job is None or is_monitor(monitoring)):
        composed.monitor = monitoring
    elif job is not None:
        composed.monitor, composed.is_job = job, True
    elif is_monitor(tree) or is_job(tree):
        composed.monitor, composed.is_job = tree, is_job(tree)
    restart = _section(tree, "restart")
    for holder, key in ((restart, "policies"), (tree, "restart_policies"), (tree, "policies")):
        entry = holder.entries.get(key) if holder is not None else None
        if entry is not None and isinstance(entry[1], YamlList):
            composed.policies = entry[1]
            break
    if "sweep" in tree.entries and _overrides(tree.entries["sweep"][1]):
        what = "the overrides of `sweep` that concern the watch are not read"
        composed.notes.append(
            Note(NoteKind.WARNING, tree.entries["sweep"][0], what, "Write them into a file.")
        )
    return composed


def merged(below: YamlMapping, above: YamlMapping, notes: list[Note]) -> YamlMapping:
    """Both mappings as one new mapping, in which `above` wins."""
    out = YamlMapping(above.location, dict(below.entries))
    for key, (place, value) in above.entries.items():
        old = below.entries[key][1] if key in below.entries else None
        if isinstance(old, YamlMapping) and isinstance(value, YamlMapping):
            out.entries[key] = (place, merged(old, value, notes))
            continue
        if isinstance(old, YamlList) and isinstance(value, YamlList):
            _note_lost(key, old, value, place, notes)
        out.entries[key] = (place, value)
    return out


def _note_lost(key: str, old: YamlList, new: YamlList, place: SourceLocation, notes: list[Note]) -> None:
    if key not in _LISTS_OF_NAMES:
        return
    names = {_label(item) for item in new.items}
    lost = [label for item in old.items if (label := _label(item)) and label not in names]
    if lost:
        what = f"this `{key}` replaces the list at {old.location}; lost: {', '.join(lost)}"
        remedy = "A list replaces, it does not add: repeat the entries here to keep them."
        notes.append(Note(NoteKind.WARNING, place, what, remedy))


def _label(item: YamlNode) -> str:
    return (text_of(item, "name") or text_of(item, "mode")) if isinstance(item, YamlMapping) else ""


def _section(tree: YamlMapping, key: str) -> YamlMapping | None:
    entry = tree.entries.get(key)
    return entry[1] if entry is not None and isinstance(entry[1], YamlMapping) else None


def _overrides(node: YamlNode) -> bool:
    if isinstance(node, YamlMapping):
        keys = node.entries
        if any(key.partition(".")[0] in GROUPS and re.search(r"event|signal|condit", key) for key in keys):
            return True
        return any(_overrides(value) for _, value in keys.values())
    return isinstance(node, YamlList) and any(_overrides(item) for item in node.items)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line of a defaults list: `_self_`, a file of the same folder, or a group's choice."""

    name: str
    location: SourceLocation
    group: str = ""
    replaces: bool = False  # `override /group: name`
    optional: bool = False


@dataclass(slots=True)
class _Composer:
    files: Files
    errors: list[LocatedError]
    missing: list[GroupChoice] = field(default_factory=list)
    read: list[str] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def file(self, path: str, above: tuple[str, ...]) -> YamlMapping:
        """A file's content in its own package, composed with the files that it names."""
        content = self._content(path)
        entries = list(self._defaults(content))
        content = YamlMapping(content.location, {k: v for k, v in content.entries.items() if k != "defaults"})
        if not any(entry.name == "_self_" for entry in entries):
            entries.append(_Entry("_self_", content.location))
        out = YamlMapping(content.location)
        for entry in entries:
            if entry.name == "_self_":
                out = merged(out, content, self.notes)
                continue
            found = self._find(path, entry)
            if found is None:
                self._note_missing(entry, content)
            elif found in (*above, path) or len(above) > _DEEPEST:
                what = f"{entry.name!r} includes itself: {' -> '.join((*above, path, found))}"
                self.errors.append(LocatedError(entry.location, what, "Remove one of the entries."))
            else:
                out = self._joined(out, entry, self.file(found, (*above, path)), found)
        return out

    def _joined(self, out: YamlMapping, entry: _Entry, content: YamlMapping, found: str) -> YamlMapping:
        if entry.group and not _is_global(self.files[found]):
            if entry.replaces:
                out.entries.pop(entry.group, None)
            content = YamlMapping(content.location, {entry.group: (entry.location, content)})
        return merged(out, content, self.notes)

    def _content(self, path: str) -> YamlMapping:
        self.read.append(path)
        data = self.files[path]
        if not re.sub(rb"(?m)#.*$", b"", data).strip():
            return YamlMapping(SourceLocation(path))
        tree = read_yaml(path, data, self.errors)
        if isinstance(tree, YamlMapping):
            return tree
        if tree is not None:
            self.errors.append(LocatedError(tree.location, "the file is no mapping", "Write `key: value`."))
        return YamlMapping(SourceLocation(path))

    def _defaults(self, content: YamlMapping) -> Iterator[_Entry]:
        entry = content.entries.get("defaults")
        if entry is None or not isinstance(entry[1], YamlList):
            return
        for item in entry[1].items:
            if isinstance(item, YamlScalar) and isinstance(item.value, str):
                yield _Entry(item.value, item.location)
            elif isinstance(item, YamlMapping):
                for key, (place, value) in item.entries.items():
                    yield from self._choices(key, place, value)

    def _choices(self, key: str, place: SourceLocation, value: YamlNode) -> Iterator[_Entry]:
        words = key.split()
        group = words[-1].partition("@")[0].lstrip("/")
        if group not in GROUPS:
            return  # other groups configure the launch
        for item in value.items if isinstance(value, YamlList) else [value]:
            if isinstance(item, YamlScalar) and isinstance(item.value, str):
                if "${" in item.value:
                    what = f"`{item.value}` names the {group} only after the launch has evaluated it"
                    self.notes.append(Note(NoteKind.WARNING, item.location, what, "Write the name itself."))
                else:
                    yield _Entry(item.value, place, group, "override" in words, "optional" in words)

    def _find(self, path: str, entry: _Entry) -> str | None:
        folder, name = posixpath.dirname(path), entry.name.removesuffix(".yaml")
        if not entry.group and not name.startswith("/"):
            beside = posixpath.normpath(posixpath.join(folder, f"{name}.yaml"))
            return beside if beside in self.files else None
        relative = f"{entry.group}/{name}.yaml" if entry.group else f"{name[1:]}.yaml"
        for _ in range(_DISTANT):
            candidate = posixpath.normpath(posixpath.join(folder, relative))
            if candidate in self.files:
                return candidate
            folder = posixpath.normpath(posixpath.join(folder, ".."))
        return None

    def _note_missing(self, entry: _Entry, content: YamlMapping) -> None:
        group = entry.group or (
            "monitoring" if is_monitor(content) else "restart" if "policies" in content.entries else ""
        )
        if group in ("monitoring", "restart"):
            self.missing.append(GroupChoice(group, entry.name, entry.location))
        elif not entry.optional:
            what = f"there is no file for {f'{group} ' if group else ''}{entry.name!r}"
            remedy = "Keep the configuration's folders together."
            if group:
                self.errors.append(LocatedError(entry.location, what, remedy))
            else:
                self.notes.append(
                    Note(NoteKind.WARNING, entry.location, f"{what}, so it has no effect", remedy)
                )


def _is_global(data: bytes) -> bool:
    head = data[:2000].decode("utf-8", "replace")
    return _GLOBAL.search(head) is not None
