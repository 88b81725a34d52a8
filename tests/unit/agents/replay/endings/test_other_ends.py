"""What Keras draws of an evaluation looks like one more epoch. Only the number of its batches differs."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

FORMS = (
    "{n}/{n} [==============================] - 2s 9ms/step - loss: {loss:.4f}",
    "{n}/{n} \u2501\u2501\u2501\u2501 2s 9ms/step - accuracy: 0.9812 - loss: {loss:.4f}",
    "{n}/{n} - 2s - loss: {loss:.4f} - accuracy: 0.9812",
)


def fit(form: str) -> str:
    return "".join(
        f"Epoch {epoch}/60\n{form.format(n=15, loss=0.061 + epoch % 7 / 9000)}\n" for epoch in range(1, 40)
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_bar_of_another_length_behind_the_epochs_is_an_evaluation_s(watch: Watch, form: str) -> None:
    text = f"{fit(form)}how well are toys of the shelf known?\n{form.format(n=2, loss=0.0898)}\n"
    assert watch(text).verdict.state == "healthy"


@pytest.mark.parametrize("form", FORMS)
def test_one_more_epoch_whose_loss_stands_out_is_a_spike(watch: Watch, form: str) -> None:
    text = f"{fit(form)}Epoch 40/60\n{form.format(n=15, loss=0.0898)}\n"
    assert watch(text).verdict.error_type == "loss_spike"
