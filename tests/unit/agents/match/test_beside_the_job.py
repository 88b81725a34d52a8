"""What a plotting server's or a tracker's client prints of its own exceptions, and goes on without."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch
from unit.agents.match.test_tracebacks import FRAME, HEAD, place

LINKS = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
REFUSED = "ConnectionRefusedError: [Errno 111] Connection refused"
NO_WAY = "urllib3.exceptions.MaxRetryError: HTTPConnectionPool(host='toys', port=8097): Max retries exceeded"
LAST = "requests.exceptions.ConnectionError: no toys at port 8097"
CLIENT = '  File "/toy/site-packages/{}/__init__.py", line 7, in _send\n    post(toy)'
SCRIPT = '  File "paint.py", line 7, in <module>\n    plot(toy)'


def chain(last_frame: str, link: str = LINKS[0]) -> str:
    """Three exceptions, of which the handler of the last one's traceback caught the others."""
    inner = f"{HEAD}\n{FRAME}\n    connect(toy)\n"
    return f"{inner}{REFUSED}\n\n{link}\n\n{inner}{NO_WAY}\n\n{link}\n\n{HEAD}\n{last_frame}\n{LAST}\n"


@pytest.mark.parametrize("words", [REFUSED, NO_WAY, LAST])
@pytest.mark.parametrize("package", ["visdom", "neptune", "math_verify"])
def test_each_exception_of_a_chain_that_a_client_caught_is_beside_the_job(words: str, package: str) -> None:
    assert place(chain(CLIENT.format(package)), words).kind == "beside"


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("frame", [SCRIPT, f"{SCRIPT}\n{CLIENT.format('visdom')}", CLIENT.format("toys")])
def test_what_no_client_caught_is_reported(frame: str, link: str) -> None:
    assert place(chain(frame, link), REFUSED).kind == "reported"
    assert place(chain(frame, link), NO_WAY).kind == "reported"


def test_a_chain_of_another_exception_below_says_nothing_of_this_one() -> None:
    log = f"{HEAD}\n{FRAME}\n    paint(toy)\nToyError: no paint\nretrying\n{chain(CLIENT.format('visdom'))}"
    assert place(log, "ToyError: no paint").kind == "reported"


def test_a_job_that_is_cancelled_behind_them_was_cancelled(watch: Watch) -> None:
    told = "slurmstepd-toys: error: *** JOB 4188 ON toys CANCELLED AT 2026-03-02T11:52:40 ***\n"
    run = watch(f"painting\n{chain(CLIENT.format('visdom'))}{told}")
    assert (run.verdict.error_type, run.verdict.root_line) == ("cancelled", told.strip())
    failed = watch(f"painting\n{chain(SCRIPT)}")
    assert failed.verdict.error_type == "communication"


WANDB = "/toy/site-packages/wandb/sdk/wandb_init.py"
BEGUN = f'{HEAD}\n  File "{WANDB}", line 7, in init\n    run = wi.init()\n'
UNHEARD = "wandb.errors.error.Error: Couldn't communicate with backend after 7 seconds"
ENDS = "wandb: ERROR Abnormal program exit"


@pytest.mark.parametrize(
    "ended",
    [ENDS, f"\n{ENDS}", "\x1b[34m\x1b[1mwandb\x1b[0m: \x1b[32m\x1b[41mERROR\x1b[0m Abnormal program exit"],
)
def test_a_tracker_that_ends_the_program_says_so_right_behind_its_exception(watch: Watch, ended: str) -> None:
    run = watch(f"{BEGUN}{UNHEARD}\n{ended}\n")
    assert (run.verdict.error_type, run.verdict.root_line) == ("communication", UNHEARD)
    other = watch(f"{BEGUN}wandb.errors.error.UsageError: no such toy\n{ended}\n")
    assert (other.verdict.error_type, other.decision.action) == ("config", "stop")


def test_a_tracker_that_only_tells_its_exception_ended_nothing(watch: Watch) -> None:
    told = f"{BEGUN}ValueError: no such toy\n"
    assert watch(f"{told}the toys are painted\n").verdict.state != "failed"
    assert watch(f"{told}{ENDS}\n").verdict.root_line == "ValueError: no such toy"


def test_a_tracker_that_ends_the_program_without_a_word_on_why_was_refused(watch: Watch) -> None:
    assert watch(f"painting\n{ENDS}\n").verdict.root_line == ENDS


@pytest.mark.parametrize(
    ("function", "kind"),
    [("process_request_thread", "beside"), ("_handle_request_noblock", "beside"), ("serve_toys", "reported")],
)
def test_a_server_of_python_s_goes_on_behind_what_a_request_raised(function: str, kind: str) -> None:
    first = f'  File "/opt/python3/socketserver.py", line 77, in {function}\n    self.toy(request)\n'
    own = '  File "/toys/shelf.py", line 7, in handle\n    unpack(box)\n'
    told = "Exception happened during processing of request from ('10.0.0.7', 4188)\n"
    words = "struct.error: unpack requires a buffer of 4 toys"
    assert place(f"{told}{HEAD}\n{first}{own}{words}\n", words).kind == kind
