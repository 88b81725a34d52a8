"""Read a bundle of either form: midwatch rule files, or a configuration of oellm-autoexp."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from midwatch.rules.files.rule_bundle import read_rule_bundle
from midwatch.rules.model import Bundle
from midwatch.rules.oellm.reading import read_foreign_bundle


def read_bundle(name: str, files: Mapping[str, bytes], trusted: Collection[str] = ()) -> Bundle:
    """The bundle whose root file is `name`: a path, or a name without folder and ending.

    Reads only the root and the files that it names. The rules of `trusted` files are not tried on their
    examples. Raises RuleErrors with every mistake of these files.
    """
    return read_foreign_bundle(name, files) or read_rule_bundle(name, files, trusted)
