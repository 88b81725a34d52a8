"""The page of the policy format says what the reader takes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from midwatch.agents.policies.file_schema import policy_file_schema
from midwatch.agents.policies.format_page import page
from midwatch.agents.policies.reader import read_policy
from midwatch.rules.loader import load_bundle

ROOT = Path(__file__).parents[4]
VALUES: Mapping[str, Any] = {
    "policy": "p", "description": "d", "restart_cancelled": True, "on_time_limit": "stop",
    "kind": "guarded", "max_restarts": 1, "unlimited": True, "default": "hold", "across_modes": True,
    "restart_on": {"error_types": ["oom"], "subsystems": ["slurm"], "signals": ["x"]},
    "exclude": {"error_types": ["oom"]}, "restart_reason": "r", "stop_reason": "s",
    "guards": [{"do": "restart", "rules": ["x"], "states": ["RUNNING", "any"], "reason": "r",
                "when": {"always": True}}],
    "always": True, "attempts_below": 2, "cooldown": "5m", "fact": {"key": "step", "is": ["1"]},
    "costs": {"waiting": "6h", "wasted_start": "2h", "margin": 3},
    "all": [{"always": True}], "any": [{"always": True}], "not": {"always": True}, "not_asked": "x",
}  # fmt: skip


def _file(clause: Mapping[str, Any] | None = None, **top: Any) -> bytes:
    modes = {"modes": {"crash": dict(clause)}} if clause else {}
    document = {"policy": "p", **modes, **top}
    jsonschema.validate(document, policy_file_schema())
    return yaml.safe_dump(document).encode()


def test_the_page_in_the_repository_is_the_present_one() -> None:
    wanted = "python -m midwatch.agents.policies.format_page > docs/policy-format.md"
    assert (ROOT / "docs/policy-format.md").read_text() == page(), wanted


def test_the_reader_takes_every_field_of_the_schema() -> None:
    schema: Mapping[str, Any] = policy_file_schema()
    parts = schema["$defs"]
    clause = {name: VALUES[name] for name in parts["clause"]["properties"]}
    read_policy("p.yaml", _file(clause | {"kind": "expected_cost", "guards": []}))
    read_policy("p.yaml", _file({name: value for name, value in clause.items() if name != "costs"}))
    read_policy("p.yaml", _file(**{n: VALUES[n] for n in schema["properties"] if n != "modes"}))
    for name in parts["condition"]["properties"]:
        guard = {"do": "restart", "when": {name: VALUES[name]}}
        read_policy("p.yaml", _file({"kind": "guarded", "guards": [guard]}))
    assert set(parts["guard"]["properties"]) == set(VALUES["guards"][0])


def test_every_row_of_the_page_has_an_example_that_the_reader_takes() -> None:
    rows = re.findall(r"^\| `(\w+)` \|.*\| (.*) \|$", page(), re.MULTILINE)
    assert [name for name, example in rows if not example] == []
    parts: Mapping[str, Any] = policy_file_schema()["$defs"]  # type: ignore[assignment]  # a mapping, as JSON Schema has it
    examples = {name: field.get("examples") for name, field in parts["condition"]["properties"].items()}
    for name, (example,) in examples.items():
        guard = {"do": "restart", "when": {name: example}}
        read_policy("p.yaml", _file({"kind": "guarded", "guards": [guard]}))
    guard = {name: field["examples"][0] for name, field in parts["guard"]["properties"].items()}
    shown = set(re.findall(r"rules: \[(\w+)\]", page())) | {*guard["rules"]}
    assert shown <= {rule.name for rule in load_bundle("default").rules}
    read_policy("p.yaml", _file({"kind": "guarded", "guards": [guard]}))
    for name, field in parts["clause"]["properties"].items():
        if "examples" in field:
            kinds = {"guards": "guarded", "costs": "expected_cost"}
            kind = {"kind": kinds[name]} if name in kinds else {}
            read_policy("p.yaml", _file(kind | {name: field["examples"][0]}))


def test_every_shipped_policy_follows_the_schema() -> None:
    for file in (resources.files("midwatch.agents.policies") / "packs").iterdir():
        jsonschema.validate(yaml.safe_load(file.read_text()), policy_file_schema())


def test_every_field_has_a_meaning_and_the_example_is_a_policy() -> None:
    schema: Mapping[str, Any] = policy_file_schema()
    for part in (schema, *schema["$defs"].values()):
        for name, field in part["properties"].items():
            assert field.get("description"), name
    example = re.findall(r"```yaml\n(.*?)```", page(), re.DOTALL)
    assert [read_policy("example.yaml", each.encode()).name for each in example] == ["patient", "careful"]
