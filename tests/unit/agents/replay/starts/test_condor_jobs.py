"""Jobs of HTCondor that share an event log: the last one counts."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.starts.condor_jobs import behind_ended_jobs
from unit.agents.conftest import Watch


def event(kind: str, job: str, words: str, below: str = "") -> str:
    return f"{kind} ({job}.000) 11/07 09:41:{int(kind):02} {words}\n{below}...\n"


def submitted(job: str, below: str = "") -> str:
    return event("000", job, "Job submitted from host: <10.7.7.1:9618?addrs=toys>", below) + event(
        "001", job, "Job executing on host: <10.7.7.8:9618?addrs=toys>"
    )


def ended(job: str, code: int) -> str:
    return event("005", job, "Job terminated.", f"\t(1) Normal termination (return value {code})\n")


def removed(job: str) -> str:
    return event("009", job, "Job was aborted.", "\tvia condor_rm (by user ada)\n")


def places(text: str) -> list[int]:
    return [number for _, number in behind_ended_jobs(LogFile("toy.log", text.encode(), 0.0))]


FIRST = submitted("71.000") + removed("71.000")
MANY = "".join(submitted(f"{job}.000") + removed(f"{job}.000") for job in range(100, 180))


@pytest.mark.parametrize("above", [FIRST, MANY], ids=["one", "eighty"])
def test_a_job_that_did_well_behind_removed_ones_is_healthy(watch: Watch, above: str) -> None:
    done = watch(above + submitted("777.000") + ended("777.000", 0))
    assert done.verdict.state != "failed"
    assert done.earlier[-1].verdict.error_type == "cancelled"


def test_a_job_that_failed_behind_a_good_one_failed(watch: Watch) -> None:
    done = watch(submitted("71.000") + ended("71.000", 0) + submitted("72.000") + removed("72.000"))
    assert done.verdict.error_type == "cancelled"


def test_a_removed_job_counts_while_another_one_of_its_time_does_well(watch: Watch) -> None:
    text = submitted("71.000") + submitted("72.000") + removed("71.000") + ended("72.000", 0)
    assert watch(text).verdict.error_type == "cancelled"


def test_a_job_begins_where_none_is_left() -> None:
    second = submitted("72.000") + submitted("73.000") + ended("73.000", 0) + ended("72.000", 0)
    text = FIRST + second + submitted("74.000")
    assert places(text) == [FIRST.count("\n") + 1, (FIRST + second).count("\n") + 1]


@pytest.mark.parametrize(
    "text",
    [
        FIRST,
        FIRST + submitted("71.001") + ended("71.001", 0),
        submitted("71.000", "    DAG Node: wheels\n")
        + removed("71.000")
        + submitted("72.000", "    DAG Node: axles\n"),
        "reads the toy data\n",
    ],
    ids=["one job", "processes of a cluster", "nodes of a DAG", "no event"],
)
def test_one_job_is_not_parted(text: str) -> None:
    assert places(text) == []
