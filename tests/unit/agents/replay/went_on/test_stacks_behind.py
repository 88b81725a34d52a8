"""Stacks behind a failure are no work, whatever their language and however their frames are shown."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

KINDS = ("Brush", "Wheel", "Shelf", "Paint", "Hammer", "Lid", "Box", "Glue", "Saw", "Lacquer", "Sand", "Nail")
BOOST = "".join(
    f"{n}# toys::{kind}::turn(int)::step<{kind}> at /toys/src/{kind}.cc:{n}7\n"
    for n, kind in enumerate(KINDS * 5)
)
IPYTHON = "".join(f"--> {n}7     {kind}.turn(toys, {kind})\n" for n, kind in enumerate(KINDS * 5))
WORK = "".join(f"{kind} {n} is painted, {kind} is dry\n" for n, kind in enumerate(KINDS * 5))


@pytest.mark.parametrize("stack", [BOOST, IPYTHON])
def test_a_long_stack_is_no_work_that_goes_on(watch: Watch, stack: str) -> None:
    failed = "the toys are unpacked\nfree(): invalid pointer\n"
    assert watch(failed + stack).verdict.error_type == "native_crash"
    assert (
        watch(failed.replace("free(): invalid pointer", "ValueError: no paint") + WORK).verdict.state
        != "failed"
    )
