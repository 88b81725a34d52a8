"""curl asks a server that its script has just started, until that one is up."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

ASKED = "curl: (7) Failed to connect to {host} port 8041 after 0 ms: Connection refused\n"
HERE = ASKED.format(host="127.0.0.1")


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_server_that_is_polled_until_it_is_up_is_no_failure(watch: Watch, host: str) -> None:
    text = ASKED.format(host=host) * 3 + "Starting the toys (budget 7); log: /toy/run.log\n"
    assert watch(text).verdict.state != "failed"


def test_what_fails_behind_the_poll_is_the_cause(watch: Watch) -> None:
    last = "train toys failed with exit code 3; inspect /toy/run.log"
    done = watch(HERE + "Starting train toys; log: /toy/run.log\n" + last + "\n")
    assert (done.verdict.state, done.verdict.root_line) == ("failed", last)


@pytest.mark.parametrize(
    "text",
    [
        HERE * 3,
        HERE + "waiting for the server\n" + HERE,
        HERE + "The server failed to start\n",
        ASKED.format(host="10.0.0.7") + "Starting the toys\n",
    ],
    ids=["nothing else", "still waiting", "the script gave up", "another machine"],
)
def test_a_server_that_never_answered_counts(watch: Watch, text: str) -> None:
    assert watch(text).verdict.error_type == "communication"
