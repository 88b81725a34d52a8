"""Every file of the upstream repository loads, in place: `make test OELLM=DIR`.

DIR is a clone of OpenEuroLLM/oellm-autoexp, bare or not. Its commits are read by git; nothing is written.
"""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import replace

import pytest

from midwatch.agents.policies.oellm import RetryCounting, policy_of
from midwatch.agents.policies.reader import read_policy
from midwatch.agents.policies.writer import policy_text
from midwatch.agents.rulesets.conversion import convert
from midwatch.rules.bundle import read_bundle
from midwatch.rules.loader import shipped_files
from midwatch.rules.matching.compiler import compile_rules
from midwatch.rules.model import Rule, SourceLocation
from midwatch.rules.oellm.generation import SchemaGeneration, is_foreign
from midwatch.rules.oellm.reading import Config, bundle_of, read_config
from midwatch.streams.strict_yaml import read_yaml

DIRECTORY = os.environ.get("OELLM", "")
COMMITS = {
    "3c4e837": (SchemaGeneration.MODES, 7),
    "55e1f42": (SchemaGeneration.STATES, 9),
    "95837c1": (SchemaGeneration.BINDINGS, 10),
    "c6d0cc0": (SchemaGeneration.TRANSITIONS, 8),
}
"""The generation of each, and the least number of its files that are of it and bring rules."""

_MARKS = re.compile(rb"(?m)^(?:log_signals|log_events|state_events|policies|restart_policies|monitoring):")

pytestmark = [
    pytest.mark.skipif(not DIRECTORY, reason="OELLM names no clone of OpenEuroLLM/oellm-autoexp"),
    pytest.mark.third_party("a clone of OpenEuroLLM/oellm-autoexp"),
]


def git(*arguments: str, given: bytes = b"") -> bytes:
    done = subprocess.run(["git", "-C", DIRECTORY, *arguments], input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def tree(commit: str) -> dict[str, bytes]:
    """All YAML files of a commit."""
    listed = git("ls-tree", "-r", "--name-only", "-z", commit).decode().split("\0")
    names = [name for name in listed if name.endswith((".yaml", ".yml"))]
    out = git("cat-file", "--batch", given="".join(f"{commit}:{name}\n" for name in names).encode())
    files: dict[str, bytes] = {}
    at = 0
    for name in names:
        head = out.index(b"\n", at)
        size = int(out[at:head].split()[-1])
        files[name] = out[head + 1 : head + 1 + size]
        at = head + size + 2
    return files


@pytest.fixture(scope="module", params=list(COMMITS))
def commit(request: pytest.FixtureRequest) -> str:
    """One of the four."""
    return str(request.param)


@pytest.mark.capability("S001-08", "S001-30")
def test_every_file_loads_as_it_stands(commit: str) -> None:
    files, shipped = tree(commit), shipped_files()
    assert len(files) > 30
    generation, least = COMMITS[commit]
    found = 0
    for name, content in files.items():
        config = _loaded(name, content, files)
        if config is None:
            continue
        bundle = bundle_of(config, shipped)
        compile_rules(bundle.rules)
        for counting in RetryCounting:
            policy = policy_of(config, counting)
            assert read_policy(name, policy_text(policy).encode()) == replace(policy, notes=()), name
        found += config.generation is generation and bool(bundle.rules)
    assert found >= least


def _loaded(name: str, content: bytes, files: dict[str, bytes]) -> Config | None:
    errors: list[object] = []
    empty = not re.sub(rb"(?m)#.*$", b"", content).strip()
    root = None if empty else read_yaml(name, content, errors)  # type: ignore[arg-type]  # mistakes of any kind
    assert errors == []
    if root is None or not is_foreign(root):
        assert not _MARKS.search(content), f"{name} says something to the watch and was not taken for theirs"
        return None
    return read_config(name, files)


def test_every_file_that_watches_converts_to_the_same_rules(commit: str) -> None:
    files, shipped = tree(commit), shipped_files()
    seen = 0
    for name, content in files.items():
        config = _loaded(name, content, files)
        if config is None or not config.watches:
            continue
        made = convert(config, shipped)
        ours = read_bundle("converted", {**shipped, "converted.yaml": made.rules.encode()})
        theirs = bundle_of(config, shipped)
        assert [_bare(rule) for rule in ours.rules] == [_bare(rule) for rule in theirs.rules], name
        assert (ours.silence, ours.any_line) == (theirs.silence, theirs.any_line), name
        seen += 1
    assert seen > 3


def _bare(rule: Rule) -> Rule:
    """The rule wherever it stands."""
    return replace(rule, location=SourceLocation("anywhere"))
