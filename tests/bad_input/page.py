"""Writes `docs/bad-input.md` from the cases: `PYTHONPATH=tests python -m bad_input.page > FILE`."""

from __future__ import annotations

from collections.abc import Iterator

from bad_input import (
    logs_cases,
    test_events,
    test_files,
    test_lines,
    test_orders,
    test_rules_topic,
    test_user_files,
)
from bad_input.case import Case

HEAD = """\
# Bad input

Written from the cases in `tests/bad_input`, of which each is a test; a test keeps this page true.
Twenty-three of them run on real workers as well, on a real Kafka and Redis (`tests/integration/bad_input`).

What cannot be read or believed is never skipped in silence. The worker says it in its log on one line, counts
it, and writes a dead letter to the topic `midwatch.dead`: its key is `topic/partition/offset`, it holds the
reason, the kind of refusal, and key and value of the record (the first 256 KiB). Then the next record counts.

| kind | what was wrong | what to do |
|---|---|---|
| `malformed` | no record, or a field out of its bounds | find who writes it: the letter holds it |
| `newer` | of a newer version, or of a kind that nobody here knows | upgrade the worker |
| `misdirected` | under another job's key, in another partition or topic | look at the sender's partitioner |
| `unsigned` | an order that this installation's key did not sign | share the keys, or find the forger |
| `foreign` | a JSON line that the settings do not read | set `foreign.shipper` and its fields |
| `too_large` | what it would make is more than Kafka takes | look at the record; report it |
| `failed` | the code that handled it raised; the job is held | report it; `midwatch arm` lifts the hold |

The counter is `refused`, by topic and kind (`midwatch.streams.worker.counters`). On `events` and `incidents`
a newer record is never set aside: its partition stops, a gauge says why, and goes on once the worker is
upgraded. What cannot be read in `rules` is told and counted by every worker, and match writes the letter.
Nothing but a person's question reads `decisions`: `midwatch why` says how many records it could not read.

What remains possible: who may write to `logs` or `events` under a job's own name is believed to be that job.
Give each shipper's user the right to write to `logs` alone, and nobody but the agents that to `events`. A
clock that is some days off, rather than years, is believed until the node's first beat.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD.rstrip(), *_sections(), ""])


def _sections() -> Iterator[str]:
    yield from _topic("The topic `logs` (match)", logs_cases.CASES)
    yield from _topic("The topic `events` (detect)", test_events.EVENTS)
    yield from _topic("The topic `incidents` (decide)", (*test_events.INCIDENTS, *test_events.MISDIRECTED))
    yield from _topic("The topic `commands` (executor)", test_orders.ORDERS)
    yield from _topic("The topic `specs` (executor)", test_orders.SPECS)
    yield from _topic("The topic `rules` (every worker)", test_rules_topic.CASES)
    yield from _told("Settings", test_user_files.SETTINGS)
    yield from _told("Rules", test_user_files.RULES)
    yield from _told("A shipper's identity", test_files.IDENTITIES)
    yield "\n## Lines that a job prints\n"
    yield "| what is printed | what comes of it |\n|---|---|"
    for case in test_lines.LINES:
        yield f"| {case.name} | {case.goes} |"


def _topic(title: str, cases: tuple[Case, ...]) -> Iterator[str]:
    yield f"\n## {title}\n"
    yield "| what arrives | what is said | kind | where it goes |\n|---|---|---|---|"
    for case in cases:
        yield f"| {case.name} | … {_plain(case.said)} … | `{case.kind}` | {case.goes} |"


def _told(title: str, cases: tuple[Case, ...]) -> Iterator[str]:
    yield f"\n## {title}\n"
    yield "| what is given | what is said | how it ends |\n|---|---|---|"
    for case in cases:
        yield f"| {case.name} | … {_plain(case.said)} … | {case.goes} |"


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    print(page(), end="")
