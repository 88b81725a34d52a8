"""`logs`, through the real match worker's handler: what is refused, what is said, what counts after."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from bad_input.case import AT_MS, JOB, OTHER, Case, Outcome, assert_refused, ids
from bad_input.logs_cases import BEAT, CASES, KEY, ORIGIN, chunk
from midwatch.agents.match.record_size import EVENT_LIMIT
from midwatch.agents.match.worker import build
from midwatch.agents.rulesets.bundles import watched_rules
from midwatch.streams.lines.normalise import normalise
from midwatch.streams.records import Heartbeat, Hits, codec
from midwatch.streams.settings.schema import ForeignSettings, KafkaSettings, Settings
from midwatch.streams.worker.fold import Message
from midwatch.streams.worker.stateless import StatelessAgent


class Logs:
    """A match worker without Kafka: the default rules, its own handler, its own counters."""

    def __init__(self, directory: Path, **settings: Any) -> None:
        self.settings = Settings(
            state_directory=directory, kafka=KafkaSettings(bootstrap=("localhost:9",)), **settings
        )
        watched = watched_rules(("default",), scan=False)
        self.app = build(self.settings, lambda _: watched)
        self.topics = self.settings.topic_names
        self.agent = cast(StatelessAgent, self.app.readers[self.topics.logs])
        self.offset = 0

    def take(self, value: Any, key: bytes | None = KEY, headers: codec.Headers = ()) -> Outcome:
        message = Message(self.topics.logs, 0, self.offset, AT_MS, AT_MS, key, value, headers)
        self.offset += 1
        before = self.app.counters.refused.copy()
        outcome = Outcome().sort(list(self.agent.judge(message)), self.topics.dead)
        more = self.app.counters.refused - before
        outcome.counted = {kind: count for (_, kind), count in more.items()}
        return outcome

    def take_log(self, made: codec.Encoded, key: bytes | None = KEY) -> Outcome:
        return self.take(made.value, key, made.headers)

    def hits(self, outcome: Outcome) -> Hits:
        assert outcome.letters == []
        (send,) = outcome.sent
        record = codec.decode(send.value or b"")
        assert isinstance(record, Hits)
        return record


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Logs:
    return Logs(tmp_path_factory.mktemp("state"))


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_it_is_set_aside_with_its_reason_and_the_good_chunk_behind_it_is_matched(
    logs: Logs, case: Case
) -> None:
    refused = logs.take(case.value, case.key, case.headers)
    assert_refused(refused, case)
    assert refused.sent == []
    assert "cuda_out_of_memory" in {hit.rule for hit in logs.hits(logs.take_log(chunk())).hits}


def test_each_kind_of_refusal_has_its_own_counter(logs: Logs) -> None:
    before = logs.app.counters.poisoned
    for value in (b"", b'{"record":"dream","v":1}', b'{"message": "x"}'):
        logs.take(value)
    kinds = {kind for topic, kind in logs.app.counters.refused if topic == logs.topics.logs}
    assert kinds >= {"malformed", "newer", "foreign"}
    assert logs.app.counters.poisoned == before + 3


def test_a_number_that_no_record_can_hold_costs_the_line_its_step_and_no_line_its_hit(logs: Logs) -> None:
    numbers = b"consumed samples: 8 | elapsed time per iteration (ms): 100.0 | lm loss: 2.0E+00 |"
    text = b" iteration %d/ 10 | %b\n" % (10**40, numbers)
    text += b"torch.OutOfMemoryError: CUDA out of memory.\n"
    record = logs.hits(logs.take_log(chunk(text, size=len(text))))
    assert "cuda_out_of_memory" in {hit.rule for hit in record.hits}
    assert all(step == -1 for column in record.progress for step in column.steps)


def test_nan_and_infinite_captures_travel_as_the_text_they_are(logs: Logs) -> None:
    lines = [
        f" iteration {n}/ 10 | consumed samples: 8 | elapsed time per iteration (ms): 1.0 | lm loss: {loss} |"
        for n, loss in ((1, "nan"), (2, "inf"), (3, "1e999"))
    ]
    text = ("\n".join(lines) + "\n").encode()
    record = logs.hits(logs.take_log(chunk(text, size=len(text), lines=3)))
    assert {step for column in record.progress for step in column.steps} >= {1, 2}


def test_an_oversized_line_is_cut_and_what_it_ends_with_is_still_found() -> None:
    lines = normalise(b"x" * 5_000_000 + b" torch.OutOfMemoryError: CUDA out of memory.\nnext\n")
    assert max(map(len, lines.text.split(b"\n"))) <= 16 * 1024
    assert b"CUDA out of memory" in lines.text
    assert lines.text.endswith(b"\nnext\n")


def test_nul_bytes_and_invalid_utf_8_hide_no_error(logs: Logs) -> None:
    text = normalise(b"\x00\x00torch.OutOfMemoryError: \x00CUDA out of memory. \xff\xfe\n").text
    record = logs.hits(logs.take_log(chunk(text, size=len(text), lines=1)))
    hit = next(hit for hit in record.hits if hit.rule == "cuda_out_of_memory")
    assert hit.line.text.endswith("��")
    assert hit.line.raw is not None
    assert hit.line.raw.endswith(b"\xff\xfe")


def test_a_shippers_raw_escapes_and_forged_ranks_reach_no_identity(logs: Logs) -> None:
    text = b"[rank3]: \x1b[2J\x1b]0;owned\x07torch.OutOfMemoryError: CUDA out of memory.\n"
    record = logs.hits(logs.take_log(chunk(text, size=len(text), lines=1)))
    (hit, *_) = record.hits
    assert (hit.line.rank, hit.line.claimed_rank) == (None, 3)
    assert record.origin == ORIGIN


def test_a_record_of_ours_printed_into_a_log_is_a_line_like_any_other(logs: Logs) -> None:
    text = codec.encode(replace(BEAT, final=True)) + b"\n"
    assert logs.take_log(chunk(text, size=len(text), lines=1)).sent == []


def test_ten_thousand_false_alarms_are_three_lines_the_last_one_and_a_count_under_the_key_of_their_job(
    logs: Logs,
) -> None:
    text = b"torch.OutOfMemoryError: CUDA out of memory.\n" * 5000
    size = len(text)
    for part in range(2):
        outcome = logs.take_log(chunk(text, size=size, lines=5000, end=size * (part + 1)))
        record = logs.hits(outcome)
        hits = [hit for hit in record.hits if hit.rule == "cuda_out_of_memory"]
        assert [hit.line.number for hit in hits] == [1, 2, 3, 5000]
        assert sum(more.count for more in record.counts if more.rule == "cuda_out_of_memory") == 4996
        assert {send.key for send in outcome.sent} == {JOB.encode()}
    other = replace(ORIGIN, job=OTHER)
    outcome = logs.take_log(chunk(origin=other), f"{OTHER}/n0".encode())
    assert [send.key for send in outcome.sent] == [OTHER.encode()]


def test_no_chunk_makes_a_record_of_events_above_its_limit(logs: Logs) -> None:
    step = b" iteration 1/ 10 | lm loss: 2.0E+00 | elapsed time per iteration (ms): 1.0 |\n"
    errors = [b"RuntimeError: CUDA error %d " % n + b"x" * 1900 + b"\n" for n in range(60)]
    text = b"".join(errors) + step * 1800
    record = logs.take_log(chunk(text, size=len(text), lines=text.count(b"\n")))
    (send,) = record.sent
    assert len(send.value or b"") <= EVENT_LIMIT
    kept = codec.decode(send.value or b"")
    assert kept.hits
    assert kept.progress[0].numbers[-1] == text.count(b"\n")


def test_a_foreign_line_is_read_once_the_settings_say_how(tmp_path: Path) -> None:
    logs = Logs(tmp_path, cluster="night", foreign=ForeignSettings(shipper="vector", user="ada"))
    line = {"message": "torch.OutOfMemoryError: CUDA out of memory.", "job": "llm", "host": "n7"}
    record = logs.hits(logs.take(json.dumps(line).encode(), b"whatever"))
    assert (record.origin.job, record.origin.node) == ("night:ada/llm", "n7")
    no_job = logs.take(json.dumps({"message": "x"}).encode())
    assert_refused(no_job, Case("no job", "without a job in 'job'", "foreign"))


def test_a_beat_behind_bad_records_still_travels(logs: Logs) -> None:
    logs.take(b"")
    (send,) = logs.take_log(codec.encode_log(BEAT)).sent
    record = codec.decode(send.value or b"")
    assert isinstance(record, Heartbeat)
    assert record.logged_ms == AT_MS
