"""Finds which generation of the configuration a file is, from its keys alone."""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

from midwatch.streams.strict_yaml import YamlList, YamlMapping, YamlNode, YamlScalar

MONITOR_KEYS = frozenset(
    {
        "log_signals",
        "log_events",
        "state_events",
        "poll_interval_seconds",
        "check_interval_seconds",
        "inactivity_threshold_seconds",
        "termination_string",
        "termination_command",
    }
)
JOB_KEYS = frozenset(
    {
        "log_path",
        "log_path_current",
        "config_path_current",
        "start_condition",
        "cancel_condition",
        "finish_condition",
    }
)
MONITORS = frozenset({"NullMonitor", "SlurmLogMonitor"})
_SECTIONS = frozenset({"monitoring", "job", "restart", "restart_policies", "policies"})
_MIDWATCH_KEYS = frozenset({"version", "policy"})


class SchemaGeneration(IntEnum):
    """The generations, by what an event holds."""

    MODES = 0  # `action` and `mode` as text
    STATES = 1  # `state.class_name`, a list of `actions`; separate restart policies
    BINDINGS = 2  # `log_events`, and `state_events` that carry the actions
    TRANSITIONS = 3  # one `action` an event, guarded by a `condition`; state events by transition


def is_foreign(tree: YamlNode) -> bool:
    """Whether this is a file of oellm-autoexp. A midwatch file always has `version` or `policy`."""
    if not isinstance(tree, YamlMapping) or _MIDWATCH_KEYS & tree.entries.keys():
        return False
    if is_monitor(tree) or is_job(tree) or _SECTIONS & tree.entries.keys():
        return True
    defaults = tree.entries.get("defaults")
    return defaults is not None and isinstance(defaults[1], YamlList)


def is_monitor(node: YamlMapping) -> bool:
    """Whether the mapping is a section `monitoring`."""
    name = text_of(node, "class_name")
    return name in MONITORS or bool(MONITOR_KEYS & node.entries.keys())


def is_job(node: YamlMapping) -> bool:
    """Whether the mapping is a section `job` of the newest generation."""
    return bool(JOB_KEYS & node.entries.keys())


def generation_of(monitor: YamlMapping | None, *, is_job: bool) -> SchemaGeneration:
    """The generation. A file whose keys do not decide it counts as `STATES`."""
    if monitor is None:
        return SchemaGeneration.STATES
    signals = list(mappings(monitor, "log_signals"))
    if signals:
        newer = any({"state", "actions"} & signal.entries.keys() for signal in signals)
        older = any({"action", "mode"} & signal.entries.keys() for signal in signals)
        return SchemaGeneration.MODES if older and not newer else SchemaGeneration.STATES
    events = [*mappings(monitor, "log_events"), *mappings(monitor, "state_events")]
    single = {"action", "condition", "transition", "match_once", "inactivity_polls", "inactivity_timeout_s"}
    if is_job or any(single & event.entries.keys() for event in events):
        return SchemaGeneration.TRANSITIONS
    return (
        SchemaGeneration.BINDINGS if events or "state_events" in monitor.entries else SchemaGeneration.STATES
    )


def mappings(node: YamlMapping, key: str) -> Iterator[YamlMapping]:
    """The mappings in the list under a key. It skips all other items."""
    entry = node.entries.get(key)
    if entry is not None and isinstance(entry[1], YamlList):
        yield from (item for item in entry[1].items if isinstance(item, YamlMapping))


def text_of(node: YamlMapping, key: str) -> str:
    """The text under a key, or "" where there is none."""
    entry = node.entries.get(key)
    if entry is None or not isinstance(entry[1], YamlScalar) or not isinstance(entry[1].value, str):
        return ""
    return entry[1].value
