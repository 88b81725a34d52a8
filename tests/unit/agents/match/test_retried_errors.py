"""What a numbered try met behind which its client tried again ended nothing."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

MET = "Error: HTTPSConnectionPool(host='toys.example', port=443): Read timed out.\n"
GOT = "wheels: 100%|##########| 9/9 [elapsed: 02:30 remaining: 00:00]\n"


def tries(*numbers: int, met: str = MET) -> str:
    return "".join(f"The toys could not be fetched. Retrying... ({n}/5)\n{met}" for n in numbers)


@pytest.mark.parametrize("text", [tries(1) + GOT, tries(1, 2, 3) + GOT, "0: " + tries(4) + GOT])
def test_a_client_that_tried_again_had_not_failed(watch: Watch, text: str) -> None:
    assert watch(text).verdict.state != "failed"


@pytest.mark.parametrize(
    "text",
    [
        tries(5) + "the toys end here\n",
        tries(1, 2, 3, 4, 5) + "the toys end here\n",
        tries(3),
        MET + "the toys end here\n",
        "The toys could not be fetched. Retrying...\n" + MET + "the toys end here\n",
    ],
    ids=["the last try", "all of them", "nothing behind it", "no try", "without a number"],
)
def test_the_words_of_the_last_try_count(watch: Watch, text: str) -> None:
    done = watch(text)
    assert (done.verdict.error_type, done.verdict.root_line) == ("communication", MET.strip())
