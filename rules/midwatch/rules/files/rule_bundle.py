"""A bundle: one rule file with all files that it includes, checked as a whole."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath

from midwatch.rules.errors import LocatedError, RuleErrors
from midwatch.rules.files.rule_reader import read_rule_file, refuse_double_names
from midwatch.rules.model import Bundle, Phase, Rule, RuleFile, SourceLocation


def read_rule_bundle(name: str, files: Mapping[str, bytes], trusted: Collection[str] = ()) -> Bundle:
    """The bundle of the root file `name` (its path, or its name without folder and ending).

    The reader reads the root and its includes only. It includes a file once, however often it is named.
    Included rules come first. The patterns of `trusted` files are not tried on their examples. Raises
    RuleErrors with every mistake of every file read.
    """
    return _Collector(files, trusted).bundle(name)


def stem(path: str) -> str:
    """The name by which `include:` names a file: without folders and ending."""
    return PurePosixPath(path.replace("\\", "/")).stem


class _Collector:
    def __init__(self, files: Mapping[str, bytes], trusted: Collection[str]) -> None:
        self.files = files
        self.trusted = trusted
        self.errors: list[LocatedError] = []
        self.paths: dict[str, list[str]] = {}
        for path in files:
            self.paths.setdefault(stem(path), []).append(path)
        self.read_files: dict[str, RuleFile] = {}
        self.silence: dict[Phase, float] = {}
        self.rules: list[Rule] = []

    def bundle(self, name: str) -> Bundle:
        path = name if name in self.files else self.find(name, SourceLocation(name))
        if path is not None:
            self.collect(path, ())
        refuse_double_names(tuple(self.rules), self.errors)
        if self.errors or path is None:
            raise RuleErrors(self.errors)
        digest = hashlib.sha256(path.encode())
        for read in sorted(self.read_files):
            digest.update(f"\0{read}\0{len(self.files[read])}\0".encode())
            digest.update(self.files[read])
        return Bundle(
            name=stem(path),
            content_hash=digest.hexdigest(),
            rules=tuple(self.rules),
            silence=self.silence,
            description=self.read_files[path].description,
            files=tuple(self.read_files),
            any_line=any(read.any_line for read in self.read_files.values()),
        )

    def find(self, name: str, location: SourceLocation) -> str | None:
        paths = self.paths.get(name, [])
        if len(paths) == 1:
            return paths[0]
        if paths:
            what, remedy = f"{name!r} is ambiguous: {', '.join(paths)}", "Rename one of the files."
        else:
            close = difflib.get_close_matches(name, self.paths, n=1)
            what = f"there are no rules named {name!r}"
            remedy = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(sorted(self.paths))}."
        self.errors.append(LocatedError(location, what, remedy))
        return None

    def collect(self, path: str, above: tuple[str, ...]) -> None:
        tried = path not in self.trusted
        read = read_rule_file(path, self.files[path], self.errors, tried=tried)
        self.read_files[path] = read
        first = len(self.rules)
        for name, location in read.include:
            included = self.find(name, location)
            if included in (*above, path):
                what = f"{name!r} includes itself: {' -> '.join((*above, path, str(included)))}"
                self.errors.append(LocatedError(location, what, "Remove one of the includes."))
            elif included is not None and included not in self.read_files:
                self.collect(included, (*above, path))
        for name, location in read.exclude:
            kept = [rule for rule in self.rules if rule.name != name]
            if len(kept) == len(self.rules):
                close = difflib.get_close_matches(name, [rule.name for rule in self.rules], n=1)
                remedy = (
                    f"Did you mean {close[0]!r}?" if close else "Exclude only rules that are included here."
                )
                self.errors.append(LocatedError(location, f"no included rule is named {name!r}", remedy))
            self.rules[first:] = [rule for rule in self.rules[first:] if rule.name != name]
        self.rules.extend(read.rules)
        self.silence.update({limit.phase: limit.seconds for limit in read.silence})
