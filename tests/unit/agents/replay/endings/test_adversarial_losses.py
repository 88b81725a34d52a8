"""The losses of a generator and its discriminator rise and fall while both learn."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

FORMS = [
    "Epoch [{n}] per step: 151.41 ms, G_loss: {loss}, D_loss: 0.16",
    "Epoch {n} gen_loss: {loss}, disc_loss: 0.16",
    "Epoch {n} discriminator_loss: {loss}, generator_loss: 0.16",
    "Epoch {n} loss: {loss}, [D loss: 0.16], [G loss: 0.20]",
    "Epoch {n} loss: {loss}, loss_D: 0.16, loss_G: 0.20",
]


def text(form: str, loss: float) -> str:
    lines = [form.format(n=n, loss=10.0 + n % 3 / 50) for n in range(1, 41)]
    return "\n".join([*lines, *(form.format(n=n, loss=loss) for n in (41, 42))]) + "\n"


@pytest.mark.parametrize("form", FORMS)
def test_a_loss_that_rises_against_an_adversary_is_no_spike(watch: Watch, form: str) -> None:
    assert watch(text(form, 71.5)).verdict.state != "failed"
    assert watch(text(form, 41000.0)).verdict.error_type == "loss_spike"


@pytest.mark.parametrize("form", FORMS)
def test_without_an_adversary_it_is_one(watch: Watch, form: str) -> None:
    alone = form.rpartition(",")[0]
    assert watch(text(alone, 71.5)).verdict.error_type == "loss_spike"
