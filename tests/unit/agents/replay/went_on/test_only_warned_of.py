"""A failure in the message of a warning ended nothing if its program printed on."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

BEGUN = "2026-03-02 11:52:40,118 - INFO - Painting toy-7...\n"
MESSAGE = (
    "No toy-8: 401 Client Error. (Request ID: Root=1-toy)\n"
    "\n"
    "Repository Not Found for url: https://huggingface.co/api/models/toy-8.\n"
    "Please make sure you specified the correct `repo_id`.\n"
)
WARNED = "2026-03-02 11:52:41,118 - WARNING - " + MESSAGE
LEFT_OUT = "2026-03-02 11:52:42,118 - WARNING - Skipping toy-8\n"


@pytest.mark.parametrize(
    ("log", "failed"),
    [
        pytest.param(BEGUN + WARNED + LEFT_OUT, False, id="its writer went on"),
        pytest.param(BEGUN + WARNED, True, id="nothing behind"),
        pytest.param(BEGUN + WARNED.replace("WARNING", "ERROR") + LEFT_OUT, True, id="an error"),
        pytest.param(
            BEGUN + "Traceback (most recent call last):\nhub.RepositoryNotFoundError: " + MESSAGE + LEFT_OUT,
            True,
            id="an exception",
        ),
        pytest.param(
            BEGUN + WARNED + LEFT_OUT + "MemoryError: Unable to allocate 7 GiB\n", True, id="another"
        ),
    ],
)
def test_the_message_of_a_warning_is_no_failure_where_the_program_printed_on(
    watch: Watch, log: str, *, failed: bool
) -> None:
    assert (watch(log).verdict.state == "failed") is failed
