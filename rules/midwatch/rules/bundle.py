"""A bundle of either form: our own rule files, or a configuration of oellm-autoexp."""

from __future__ import annotations

from collections.abc import Mapping

from midwatch.rules.files.rule_bundle import read_rule_bundle
from midwatch.rules.model import Bundle
from midwatch.rules.oellm.reading import read_foreign_bundle


def read_bundle(name: str, files: Mapping[str, bytes]) -> Bundle:
    """The bundle whose root is the file `name`: its path, or its name without folder and ending.

    Only the root and what it names are read. Raises RuleErrors with every mistake of every file read.
    """
    return read_foreign_bundle(name, files) or read_rule_bundle(name, files)
