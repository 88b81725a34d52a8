"""A record's own fields and its envelope share one JSON object: neither may hide the other."""

from __future__ import annotations

from dataclasses import fields

import pytest

from midwatch.streams.records import Finding, codec


@pytest.mark.parametrize("cls", sorted(codec._NAMES, key=repr))
def test_no_record_has_a_field_that_the_envelope_needs(cls: type) -> None:
    assert not {entry.name for entry in fields(cls)} & {"record", "v"}


def test_a_finding_comes_back_with_its_kind() -> None:
    finding = Finding("local:me/demo", 2, "loss_spike", True, 1_000, "the loss is four times its mean")
    assert codec.decode(codec.encode(finding)) == finding
