"""What detect spends on the last words of many ranks: `PYTHONPATH=tests python -m bench.last_words`.

Each rank prints a few steps, a watchdog's line, an exception with its traceback, and a traceback that is cut
off. The records are those of the match worker, one for each node, and the fold is that of the detect agent:
bytes of its fields in, bytes out. All seconds are CPU seconds of this process. Exits with 1 if the fold of
the last words and their diagnosis take a second or more together.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import orjson

from midwatch.agents.detect.fold import DetectFold
from midwatch.agents.match.chunk_hits import match
from midwatch.agents.match.record_size import encoded
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.rules.loader import load_bundle
from midwatch.rules.matching.compiler import compile_rules
from midwatch.streams.records import (
    Anchor,
    Chunk,
    Generation,
    Heartbeat,
    Incident,
    Origin,
    SchedulerFact,
    Section,
    SpecEvent,
    codec,
)
from midwatch.streams.worker.fold import PARTITION, Message

JOB, INCARNATION = "slurm:toy/4096", "slurm:4096:0"
RANKS, RANKS_OF_A_NODE = 4096, 8
PROMISED_SECONDS = 1.0
_START = 1_795_000_000.0


@dataclass(slots=True)
class Spent:
    """CPU seconds by part, the bytes of the job's state, and the verdict that proves that all was read."""

    seconds: dict[str, float] = field(default_factory=dict)
    records: int = 0
    record_bytes: int = 0
    state_bytes: int = 0
    verdict: str = ""
    root: str = ""

    @property
    def judged(self) -> float:
        """The seconds from the first record of last words to the verdict on all of them."""
        return self.seconds["fold of the last words"] + self.seconds["end and diagnosis"]


class Partition:
    """The fields of one partition in memory, as Redis would hold them."""

    def __init__(self) -> None:
        self.fold = DetectFold(WatchLimits(), "incidents", owner_of=lambda _: 0)
        self.states: dict[bytes, dict[bytes, bytes]] = {PARTITION: {}}
        self.sent: list[object] = []
        self._offset = 0

    def take(self, value: bytes, now: float, *, keyed: bool = True) -> None:
        """Fold one record as the detect agent does. A tick has no key."""
        now_ms = int(now * 1000)
        message = Message("events", 0, self._offset, now_ms, now_ms, JOB.encode() if keyed else None, value)
        self._offset += 1
        keys = self.fold.keys(self.states[PARTITION], message)
        states = {key: self.states.get(key, {}) for key in (PARTITION, *keys)}
        applied = self.fold.apply(states, message)
        for key, changed in applied.changed.items():
            self._write(self.states.setdefault(key, {}), changed)
        self.sent += (send.value for send in applied.sends)

    @staticmethod
    def _write(fields: dict[bytes, bytes], changed: Mapping[bytes, bytes | None]) -> None:
        for name, value in changed.items():
            if value is None:
                fields.pop(name, None)
            else:
                fields[name] = value


def origin(node: int, nodes: int) -> Origin:
    """The origin of what one node's shipper sends."""
    return Origin(JOB, f"gpu-{node:04}", nodes, INCARNATION, "boot", f"gpu-{node:04}/1")


def chunk_of(node: int, nodes: int, per_node: int) -> Chunk:
    """The last lines of the ranks of one node, a file and a section each."""
    texts = [last_words(node * per_node + local).encode() for local in range(per_node)]
    sections = tuple(
        Section(
            path=f"/logs/rank{node * per_node + local}.log",
            generation=Generation(0, local, f"rank{node * per_node + local}"),
            size=len(text),
            lines=text.count(b"\n"),
            anchors=(Anchor(0, 0, 1),),
            end=len(text),
            read_before=_START + 100,
            read_at=_START + 160,
            rank=node * per_node + local,
        )
        for local, text in enumerate(texts)
    )
    return Chunk(origin(node, nodes), sections, b"".join(texts))


def last_words(rank: int) -> str:
    """Steps, a watchdog's line, an exception with its traceback, and the beginning of another."""
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(_START + 120 + rank % 30))
    glog = f"[E{clock[5:7]}{clock[8:10]} {clock[11:]}.{rank % 1000:03}000000 ProcessGroupNCCL.cpp:607]"
    steps = "".join(f"[{clock}] step: {step}  loss:  2.{step}\n" for step in range(97, 100))
    return (
        f"{steps}"
        f"[rank{rank}]:{glog} [Rank {rank}] Watchdog caught collective operation timeout:"
        f" WorkNCCL(SeqNum={900 + (rank != 77)}, OpType=ALLREDUCE, NumelIn=1048576, NumelOut=1048576,"
        " Timeout(ms)=600000) ran for 600011 milliseconds before timing out.\n"
        f"[rank{rank}]: Traceback (most recent call last):\n"
        f'[rank{rank}]:   File "/opt/trainer/loop/training.py", line 88, in train_step\n'
        f"[rank{rank}]:     loss.backward()\n"
        f"[rank{rank}]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank {rank}.\n"
        f"[rank{rank}]: Traceback (most recent call last):\n"
        f'[rank{rank}]:   File "/opt/trainer/loop/training.py", line 93, in close\n'
    )


def timed(spent: Spent, part: str, work: Iterator[object]) -> None:
    """Add the CPU seconds of the work to its part."""
    begin = time.process_time()
    for _ in work:
        pass
    spent.seconds[part] = spent.seconds.get(part, 0.0) + time.process_time() - begin


def measure(ranks: int = RANKS, per_node: int = RANKS_OF_A_NODE) -> Spent:
    """The whole way of one failure of so many ranks."""
    nodes, spent, partition = ranks // per_node, Spent(), Partition()
    rule_set = compile_rules(load_bundle("default").rules, scan=False)
    chunks = [chunk_of(node, nodes, per_node) for node in range(nodes)]
    values: list[bytes] = []

    def matched() -> Iterator[object]:
        for chunk in chunks:
            hits = match(chunk, rule_set, "bundle", int((_START + 160) * 1000))
            assert hits is not None  # each rank fails
            values.append(encoded(hits))
            yield None

    def folded(records: Sequence[bytes], at: float) -> Iterator[object]:
        for value in records:
            partition.take(value, at)
            yield None

    def beats(at: float, sequence: int, *, final: bool = False) -> Iterator[object]:
        for node in range(nodes):
            beat = Heartbeat(
                origin(node, nodes), sequence, at, at, 5.0, at_end=True, backlog=0,
                alive=not final, final=final, logged_ms=int(at * 1000),
            )  # fmt: skip
            partition.take(codec.encode(beat), at)
            yield None

    timed(spent, "match", matched())
    spent.records, spent.record_bytes = len(values), sum(map(len, values))
    partition.take(codec.encode(SpecEvent(JOB, "spec", "verdict", True, nodes, "/ckpt")), _START)
    timed(spent, "heartbeats before", beats(_START + 1, 1))
    timed(spent, "heartbeats before", beats(_START + 160, 2))
    timed(spent, "fold of the last words", folded(values, _START + 161))
    ended = SchedulerFact(
        JOB, INCARNATION, "4096", "running", "failed", ended=True, mode="crash", exit_code=1
    )
    timed(spent, "end and diagnosis", folded([codec.encode(ended)], _START + 162))
    timed(spent, "final heartbeats", beats(_START + 163, 3, final=True))
    spent.state_bytes = sum(map(len, partition.states.get(JOB.encode(), {}).values()))
    records = [codec.decode(value) for value in partition.sent if isinstance(value, bytes)]
    settled = [each for each in records if isinstance(each, Incident) and each.state == "settled"]
    if settled:
        spent.verdict, spent.root = settled[-1].verdict.error_type, settled[-1].verdict.root_line
    return spent


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write bench/results/last-words.{json,md}."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, nargs="+", default=[512, 1024, 2048, RANKS])
    parser.add_argument("--output", type=Path, default=Path("bench/results"))
    chosen = parser.parse_args(arguments)
    results = {ranks: measure(ranks) for ranks in chosen.ranks}
    for ranks, spent in results.items():
        print(ranks, {part: round(seconds, 3) for part, seconds in spent.seconds.items()}, spent.verdict)
        print("   ", spent.records, spent.record_bytes, spent.state_bytes, spent.root[:80])
    chosen.output.mkdir(parents=True, exist_ok=True)
    plain = {
        str(ranks): {"seconds": spent.seconds, "verdict": spent.verdict} for ranks, spent in results.items()
    }
    (chosen.output / "last-words.json").write_bytes(orjson.dumps(plain, option=orjson.OPT_INDENT_2) + b"\n")
    (chosen.output / "last-words.md").write_text(page(results))
    return 0 if results[max(results)].judged < PROMISED_SECONDS else 1


def page(results: Mapping[int, Spent]) -> str:
    """The page of the results."""
    parts = list(next(iter(results.values())).seconds)
    lines = [
        "# The last words of thousands of ranks: CPU seconds of detect",
        "",
        "Each rank prints a watchdog's line, an exception with its traceback, and a traceback that is",
        "cut off. Eight ranks stand on a node, and each node sends one record. Bytes in and bytes out, as",
        "the agent folds them, on one core. The fold gives the job's whole state for each record, and",
        "encodes only the lines that it does not remember. It holds at most 640 lines, so the diagnosis",
        f"does not grow with the ranks. Promised: fold and diagnosis of {RANKS:,} ranks' last words take",
        f"less than {PROMISED_SECONDS:.0f} s together. Written by `make bench-last-words`.",
        "",
        f"| ranks | {' | '.join(parts)} | state, bytes | verdict |",
        f"|---|{'---|' * (len(parts) + 2)}",
    ]
    for ranks, spent in results.items():
        cells = " | ".join(f"{spent.seconds[part]:.3f}" for part in parts)
        lines.append(f"| {ranks:,} | {cells} | {spent.state_bytes:,} | {spent.verdict or 'none'} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    raise SystemExit(main())
