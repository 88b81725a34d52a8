"""Who waits for the good end of a job, and the dependency that lets it wait for another."""

from __future__ import annotations

import pytest

from midwatch.agents.schedulers.slurm.dependents import pointed_at, waiting


def row(native: str, dependency: str, state: str = "PENDING") -> str:
    return f"{native:40}|{state:24}|{'ann':40}|{dependency:80}"


def test_only_what_waits_for_a_good_end_is_stuck() -> None:
    text = "\n".join(
        [
            row("50", "afterok:44(failed)"),
            row("51", "afterany:44(unfulfilled)"),
            row("52", "afternotok:44(unfulfilled),afterok:45(unfulfilled)"),
            row("53", "afterok:45(unfulfilled),afterok:44(unfulfilled)"),
            row("54", "afterok:444(unfulfilled)"),
            row("55", "(null)"),
            row("56", "afterok:44(failed)", state="CANCELLED"),
            row("57_2", "aftercorr:44_*(unfulfilled)"),
        ]
    )
    assert [job.native_id for job in waiting(text, "44")] == ["50", "53", "57_2"]
    assert [job.native_id for job in waiting(text, "44_3")] == ["50", "53", "57_2"]
    assert [job.user for job in waiting(text, "444")] == ["ann"]


@pytest.mark.parametrize(
    ("dependency", "old", "pointed"),
    [
        ("afterok:44(failed)", "44", "afterok:60"),
        ("afterok:44(failed),afterany:12(unfulfilled)", "44", "afterok:60,afterany:12"),
        ("afterok:44(failed)?afterok:45+10(unfulfilled)", "44", "afterok:60?afterok:45+10"),
        ("afterany:44(unfulfilled),afterok:44(failed)", "44", "afterany:44,afterok:60"),
        ("afterok:44_3(failed),singleton", "44_3", "afterok:60,singleton"),
        ("afterok:44_*(failed)", "44_3", ""),
        ("afterok:44_3(failed),afterok:44_4(unfulfilled)", "44_3", "afterok:60,afterok:44_4"),
        ("afterok:44(failed)", "44_3", ""),
        ("afterok:44(failed),aftero", "44", ""),
    ],
)
def test_the_new_start_takes_the_place_of_the_old_one(dependency: str, old: str, pointed: str) -> None:
    assert pointed_at(dependency, old, "60") == pointed
