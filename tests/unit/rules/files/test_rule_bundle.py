"""Bundles: composed by including, never by replacing."""

from __future__ import annotations

from pathlib import Path

import pytest

from midwatch.rules.bundle import read_bundle
from midwatch.rules.errors import RuleErrors
from midwatch.rules.loader import load_bundle
from midwatch.rules.model import Phase
from midwatch.streams.errors import ConfigurationError

FILES = {
    "packs/a.yaml": b"version: 1\nrules: [{name: a1, error_type: oom, pattern: x}]\n"
    b"silence: {training: 10m}\n",
    "packs/b.yaml": b"version: 1\ninclude: [a]\nrules: [{name: b1, error_type: oom, pattern: y}]\n",
    "mine.yaml": b"version: 1\ninclude: [b, a]\nexclude: [a1]\nsilence: {training: 5m, evaluation: 1h}\n"
    b"rules: [{name: a1, error_type: nccl, pattern: z}]\n",
    "broken.yaml": b"version: 1\nincluded: [a]\n",
}


def test_included_rules_stay_and_the_including_file_may_replace_one_by_name() -> None:
    bundle = read_bundle("mine", FILES)
    assert [(rule.name, rule.error_type) for rule in bundle.rules] == [("b1", "oom"), ("a1", "nccl")]
    assert bundle.silence == {Phase.TRAINING: 300.0, Phase.EVALUATION: 3600.0}


def test_files_that_are_not_included_are_not_read() -> None:
    assert read_bundle("b", FILES).files == ("packs/b.yaml", "packs/a.yaml")


def test_the_hash_changes_with_any_included_byte_and_with_nothing_else() -> None:
    before = read_bundle("mine", FILES).content_hash
    assert read_bundle("mine", {**FILES, "broken.yaml": b""}).content_hash == before
    changed = {**FILES, "packs/a.yaml": FILES["packs/a.yaml"] + b"# a comment\n"}
    assert read_bundle("mine", changed).content_hash != before


def test_an_unknown_include_names_the_likely_one() -> None:
    files = {**FILES, "packs/memory.yaml": b"version: 1\n", "m.yaml": b"version: 1\ninclude: [memroy]\n"}
    with pytest.raises(RuleErrors, match=r"(?s)m\.yaml:2:11: there are no rules named 'memroy'.*'memory'"):
        read_bundle("m", files)


def test_a_circle_of_includes_is_named_and_ends() -> None:
    files = {"x.yaml": b"version: 1\ninclude: [y]\n", "y.yaml": b"version: 1\ninclude: [x]\n"}
    with pytest.raises(RuleErrors, match=r"y\.yaml:2:11: 'x' includes itself: x\.yaml -> y\.yaml -> x\.yaml"):
        read_bundle("x", files)


def test_an_exclude_that_leaves_nothing_out_is_a_mistake() -> None:
    files = {**FILES, "m.yaml": b"version: 1\ninclude: [long]\nexclude: [long_nam]\n"}
    files["long.yaml"] = b"version: 1\nrules: [{name: long_name, error_type: oom, pattern: x}]\n"
    with pytest.raises(
        RuleErrors, match=r"(?s)m\.yaml:3:11: no included rule is named 'long_nam'.*'long_name'"
    ):
        read_bundle("m", files)


def test_a_user_s_file_may_include_what_is_shipped_and_what_lies_beside_it(tmp_path: Path) -> None:
    (tmp_path / "ours.yaml").write_text("version: 1\nrules: [{name: ours, error_type: oom, pattern: x}]\n")
    (tmp_path / "watch.yaml").write_text("version: 1\ninclude: [megatron_basic, ours]\n")
    names = [rule.name for rule in load_bundle(str(tmp_path / "watch.yaml")).rules]
    assert names[-1] == "ours"
    assert "megatron_iteration" in names


def test_a_missing_file_says_what_where_and_how_to_see_the_shipped_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"(?s)none\.yaml: there is no such file.*rules list"):
        load_bundle(str(tmp_path / "none.yaml"))
    with pytest.raises(RuleErrors, match="megatron_production"):
        load_bundle("megatron_prodution")
