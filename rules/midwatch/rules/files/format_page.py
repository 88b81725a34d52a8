"""Writes the page of the rule format: `python -m midwatch.rules.files.format_page > docs/rule-format.md`.

The tables come from the JSON Schema, the defaults from the model, and the examples from the shipped rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, fields
from enum import Enum
from importlib import resources
from typing import Any

import yaml

from midwatch.rules.files.file_schema import rule_file_schema
from midwatch.rules.model import Rule

Schema = Mapping[str, Any]
Values = Mapping[str, object]

_HEAD = """# The rule format

Written by `python -m midwatch.rules.files.format_page > docs/rule-format.md`; a test keeps it true.

A rule file is YAML. `midwatch rules check FILE` reports every mistake with its line and column.
[rules.md](rules.md) tells how a file comes into force. The examples are values of shipped rules.

```yaml
version: 1
description: failures of our data loader
rules:
  - name: shard_missing
    error_type: data
    subsystem: loader
    transient: false
    pattern: 'ShardError: no shard (?P<shard>\\S+)'
    remedy: Restore the shard, or leave it out of the mixture.
    match: ['ShardError: no shard train-00017']
    no_match: ['looked for a shard and found it']
```

Durations carry their unit: `200ms`, `10s`, `5m`, `2h`, `7d`.
"""
_SHOWN = 60
_PLURAL = {"string": "texts", "object": "mappings"}


def page() -> str:
    """The whole page."""
    schema = rule_file_schema()
    packs = [_document(file) for file in _packs()]
    rule = schema_of(schema, "rules")["items"]
    rules = [each for pack in packs for each in pack.get("rules", ())]
    defaults: dict[str, object] = {
        each.name: each.default for each in fields(Rule) if each.default is not MISSING
    }
    return "\n".join(
        [
            _HEAD,
            "## A file\n",
            *table(schema, packs),
            "## A rule\n",
            *table(rule, rules, defaults),
            "### `rate_limit`\n",
            *table(schema_of(rule, "rate_limit"), []),
        ]
    )


def schema_of(schema: Schema, name: str) -> Schema:
    """The schema of one property."""
    found: Schema = schema["properties"][name]
    return found


def table(schema: Schema, documents: Iterable[Values], defaults: Values | None = None) -> Iterator[str]:
    """The lines of a Markdown table of an object's properties. `documents` give an example of each, else
    the schema does."""
    documents = list(documents)
    required = schema.get("required", ())
    yield "| field | kind | default | | example |"
    yield "|---|---|---|---|---|"
    for name, field in schema["properties"].items():
        known = field.get("default", (defaults or {}).get(name))
        default = "required" if name in required else _default(known)
        values = [document[name] for document in documents if name in document] + field.get("examples", [])
        example = next((shown for value in values if (shown := _shown(value))), "")
        cells = (f"`{name}`", kind_of(field), default, str(field.get("description", "")), example)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""


def kind_of(field: Schema) -> str:
    """What a value of the field is, in words."""
    if "$ref" in field:
        return f"a {field['$ref'].rpartition('/')[2]}"
    if "const" in field:
        return f"`{field['const']}`"
    if "enum" in field:
        return " ".join(f"`{value}`" for value in field["enum"])
    if field.get("type") == "array":
        items = field["items"]
        name = items["$ref"].rpartition("/")[2] + "s" if "$ref" in items else _PLURAL[items["type"]]
        return f"list of {name}"
    if "ms|s|m|h|d" in str(field.get("pattern", "")):
        return "duration"
    words = {
        "string": "text",
        "boolean": "true or false",
        "integer": "number",
        "number": "number",
        "object": "mapping",
    }
    return words.get(str(field.get("type", "")), "text")


def _default(value: object) -> str:
    if value is None or value in ("", ()):
        return ""
    return f"`{json.dumps(value.value if isinstance(value, Enum) else value)}`".replace('"', "")


def _shown(value: object) -> str:
    """A value that fits into a cell; nothing for a long or an empty one."""
    text = value if isinstance(value, str) else json.dumps(value)
    if value in (None, "", [], {}) or len(text) > _SHOWN or "`" in text:
        return ""
    return f"`{text}`"


def _packs() -> Iterator[str]:
    folder = resources.files("midwatch.rules") / "packs"
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        yield file.read_text(encoding="utf-8")


def _document(text: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(text)
    return document


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  # the page is its output
