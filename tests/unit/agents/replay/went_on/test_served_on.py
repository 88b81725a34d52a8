"""A server that answered a request like the one that failed had not ended with it."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

WHO = "(ToyServer pid=7) "
UP = f"{WHO}INFO:     Application startup complete.\n"
GOOD = f'{WHO}INFO:     10.8.0.4:41200 - "POST /v1/toys HTTP/1.1" 200 OK\n'
HEALTH = f'{WHO}INFO:     10.8.0.4:41200 - "GET /health HTTP/1.1" 200 OK\n'
FAILED = f'{WHO}INFO:     10.8.0.4:41200 - "POST /v1/toys?box=3 HTTP/1.1" 500 Internal Server Error\n'
RAISED = (
    f"{WHO}ERROR:    Exception in ASGI application\n{WHO}Traceback (most recent call last):\n"
    f'{WHO}  File "/opt/py/site-packages/uvicorn/protocols/http/h11_impl.py", line 77, in run_asgi\n'
    f"{WHO}    result = await app(\n"
    f'{WHO}  File "/toys/serve.py", line 9, in paint\n{WHO}    box.paint()\n'
    f"{WHO}toys.errors.ToyError: the box holds 77 toys, and 16 fit\n"
)
OWN = RAISED.replace("/opt/py/site-packages/uvicorn/protocols/http/h11_impl.py", "/toys/loop.py")


@pytest.mark.parametrize(
    ("text", "failed"),
    [
        pytest.param(UP + GOOD + FAILED + RAISED + GOOD, False, id="answered like it later"),
        pytest.param(UP + GOOD + FAILED + RAISED, True, id="nothing behind"),
        pytest.param(UP + GOOD + FAILED + RAISED + HEALTH, True, id="only its health is well"),
        pytest.param(UP + GOOD + FAILED + RAISED + FAILED, True, id="failed again"),
        pytest.param(UP + GOOD + FAILED + OWN + GOOD, True, id="no request raised it"),
    ],
)
def test_only_a_good_answer_to_such_a_request_shows_that_it_serves_on(
    watch: Watch, text: str, *, failed: bool
) -> None:
    assert (watch(text).verdict.state == "failed") is failed
