"""Writes the page `docs/policy-format.md`: `python -m midwatch.agents.policies.format_page`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

import yaml

from midwatch.agents.policies.file_schema import policy_file_schema
from midwatch.rules.files.format_page import schema_of, table

_HEAD = """# The policy format

Written by `python -m midwatch.agents.policies.format_page > docs/policy-format.md`; a test keeps it true.

A policy says what follows an end: restart, stop, hold. It is one YAML file. `midwatch run --policy FILE`, the
setting `policy` or `midwatch rules push FILE` brings it. `midwatch rules check FILE` reports every mistake
with its line and column. The examples are values of shipped policies, or of the schema.

```yaml
policy: patient
description: restarts what the network did, twice
modes:
  crash:
    kind: selective
    max_restarts: 2
    restart_on: {error_types: [nccl_timeout, communication]}
  stall: {kind: always, max_restarts: 1}
```

Durations carry their unit: `200ms`, `10s`, `5m`, `2h`, `7d`.
"""

_WEIGHED = """A clause of the kind `expected_cost` restarts if chance x `waiting` is more than (1 - chance) x
`wasted_start`. The chance is the [verdict's](verdicts.md), halved for each restart of the job in a row that
got no further. Both costs are time of the whole job, so the number of its GPUs does not matter. `waiting` is
what the file says. So is `wasted_start`, but where the last of the job's starts that made a step took longer
to it, that time counts. A failure that no rule calls transient or permanent is held if fewer than five
counted ends tell of it.
"""

_GUARDED = """A clause of the kind `guarded` asks its guards in their order:

```yaml
policy: careful
modes:
  crash:
    kind: guarded
    default: hold
    guards:
      - do: stop
        rules: [cuda_out_of_memory]
        reason: the same start would need as much memory again
      - do: restart
        states: [any, NODE_FAIL]
        when:
          all:
            - attempts_below: 3
            - cooldown: 10m
            - not: {fact: {key: subsystem, is: [nvlink]}}
```
"""


def page() -> str:
    """The whole page."""
    schema: Mapping[str, Any] = policy_file_schema()
    parts = schema["$defs"]
    policies = list(_policies())
    clauses = [clause for policy in policies for clause in policy.get("modes", {}).values()]
    restarts = [clause["restart_on"] for clause in clauses if "restart_on" in clause]
    weighed = [clause["costs"] for clause in clauses if "costs" in clause]
    return "\n".join(
        [
            _HEAD,
            "## A file\n",
            *table(schema, policies),
            "## A clause\n",
            "`modes` has one for `crash`, `stall`, `timeout` and `success`, or fewer.\n",
            *table(parts["clause"], clauses),
            "### `restart_on`\n",
            *table(schema_of(parts["clause"], "restart_on"), restarts),
            "### `costs`\n",
            *table(schema_of(parts["clause"], "costs"), weighed),
            _WEIGHED,
            _GUARDED,
            "## A guard\n",
            *table(parts["guard"], []),
            "## A condition\n",
            "It has one of these keys.\n",
            *table(parts["condition"], []),
        ]
    )


def _policies() -> Iterator[Mapping[str, Any]]:
    folder = resources.files("midwatch.agents.policies") / "packs"
    for file in sorted(folder.iterdir(), key=lambda each: each.name):
        yield yaml.safe_load(file.read_text(encoding="utf-8"))


if __name__ == "__main__":
    print(page(), end="")  # noqa: T201  # the page is its output
