"""Pages and files that code writes: each is what the code says now, or the gate is red.

The tests beside each writer hold the same. The gate looks, too: an example of a rule is changed in a
second, and its page is forgotten by whoever plays no test after it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from bad_input.page import page as bad_input_page
from house.tree import ROOT
from midwatch.agents.grafana.page import page as grafana_page
from midwatch.agents.grafana.write import files as observe_files
from midwatch.agents.policies.format_page import page as policy_format_page
from midwatch.rules.catalogue import page as catalogue_page
from midwatch.rules.files.format_page import page as rule_format_page
from midwatch.rules.loader import PLANNED, load_bundle, shipped_files, shipped_plan
from midwatch.rules.matching.compiler import compile_rules
from midwatch.rules.prefilter.plan_file import text_of_plan
from midwatch.streams.settings.page import page as settings_page
from midwatch.streams.telemetry.page import page as telemetry_page


def plan_text() -> str:
    """The shipped prefilter plan where it belongs to its rules, else a new one, which takes seconds."""
    rules = compile_rules(load_bundle(PLANNED).rules, scan=False)
    try:
        known = shipped_plan()
    except (OSError, KeyError, TypeError, ValueError):
        known = None
    plan = known if known and known.rules == rules.content_hash else rules.make_plan()
    return text_of_plan(plan).decode()


PAGES: Mapping[str, Callable[[], str]] = {
    "docs/bad-input.md": bad_input_page,
    "docs/catalogue.md": lambda: catalogue_page(shipped_files()),
    "docs/grafana.md": grafana_page,
    "docs/policy-format.md": policy_format_page,
    "docs/rule-format.md": rule_format_page,
    "docs/settings.md": settings_page,
    "docs/telemetry.md": telemetry_page,
    f"rules/midwatch/rules/plans/{PLANNED}.json": plan_text,
}


def current() -> dict[str, str]:
    """The text of each written file, by its path below the root, as the code says it now."""
    observe = {f"observe/{path}": text for path, text in observe_files().items()}
    return {path: page() for path, page in PAGES.items()} | observe


def check(root: Path = ROOT) -> list[str]:
    """One sentence for each file that is missing or says something else than the code."""
    stale = [path for path, text in current().items() if _present(root / path) != text]
    return [f"{path} is stale: make pages" for path in stale]


def write(root: Path = ROOT) -> None:
    """Write them all."""
    for path, text in current().items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")


def _present(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None
