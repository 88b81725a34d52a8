"""A process that dies is started again at once; one that dies over and over, ever later, but always."""

from __future__ import annotations

from midwatch.agents.launch.backoff import LOOP, PAUSES, WINDOW, loops, pause, recent


def test_the_first_start_again_comes_at_once_and_later_ones_wait_longer() -> None:
    waits = [pause([float(n) for n in range(deaths)], float(deaths)) for deaths in range(1, 12)]
    assert waits[0] <= 0.1
    assert waits == sorted(waits)
    assert waits[-1] == PAUSES[-1]


def test_a_long_life_is_forgiven() -> None:
    deaths = [float(n) for n in range(6)]
    assert pause(deaths, 6.0) > 1
    assert recent(deaths, 6.0 + WINDOW) == ()
    assert pause([*deaths, 100.0], 100.0) == PAUSES[0]


def test_a_crash_loop_is_told_from_a_few_deaths() -> None:
    assert not loops([float(n) for n in range(LOOP - 1)], 10.0)
    assert loops([float(n) for n in range(LOOP)], 10.0)
    assert not loops([n * WINDOW for n in range(20)], 19 * WINDOW)
