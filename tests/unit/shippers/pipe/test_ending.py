"""How a command ended, as a fact that detect folds like one of the cluster `local`."""

from __future__ import annotations

from pathlib import Path

import pytest

from midwatch.shippers.pipe.ending import Ending, fact, from_bytes, to_bytes
from midwatch.shippers.pipe.spool import Spool, end_note, ended, mark_end
from midwatch.streams.records import Origin
from midwatch.streams.records.codec import decode, encode

ORIGIN = Origin("c:ada/toy", "n0", 1, "local:7:99", "boot", "shipper")
AT = 1_795_370_118.0  # 2026-11-22T17:55:18Z


@pytest.mark.parametrize(
    ("ending", "said"),
    [
        (Ending(0, AT), ("COMPLETED", "success", "", 0, None, "")),
        (Ending(1, AT), ("FAILED", "crash", "", 1, None, "")),
        (Ending(-9, AT), ("FAILED", "crash", "", None, 9, "")),
        (Ending(-15, AT, asked=True), ("CANCELLED", "ended", "cancelled", None, 15, "somebody")),
        (Ending(0, AT, asked=True), ("CANCELLED", "ended", "cancelled", 0, None, "somebody")),
    ],
)
def test_the_fact_of_an_ending(ending: Ending, said: tuple[object, ...]) -> None:
    told = fact(ORIGIN, ending)
    assert (told.new, told.mode, told.error_type, told.exit_code, told.signal, told.by_person) == said
    assert (told.ended, told.job, told.incarnation, told.native_id) == (True, "c:ada/toy", "local:7:99", "7")
    assert told.cluster == "c"
    assert told.reason.endswith("2026-11-22T17:55:18Z")
    assert decode(encode(told)) == told


def test_an_ending_survives_in_the_spool(tmp_path: Path) -> None:
    Spool(tmp_path).finish(to_bytes(Ending(-6, AT)))
    assert ended(tmp_path)
    assert from_bytes(end_note(tmp_path) or b"") == Ending(-6, AT)


def test_a_spool_whose_writer_died_has_an_end_and_no_ending(tmp_path: Path) -> None:
    assert end_note(tmp_path) is None
    mark_end(tmp_path)
    assert ended(tmp_path)
    assert from_bytes(end_note(tmp_path) or b"") is None
