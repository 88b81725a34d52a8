"""A saved log that ends within a traceback of a client: the service was asked when it failed."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

OPEN = """step 1 loss 2.0
step 2 loss 1.9
Traceback (most recent call last):
  File "/toy/train.py", line 17, in <module>
    main()
  File "{}", line 9, in send
    return self.turn(wheel)
"""


@pytest.mark.parametrize(
    ("file", "error_type"),
    [
        ("/toy/.venv/lib/python3.12/site-packages/httpx/_transports/default.py", "communication"),
        ("/toy/.venv/lib/python3.12/site-packages/urllib3/connectionpool.py", "communication"),
        ("/usr/lib/python3.11/ssl.py", "communication"),
        ("/toy/.venv/lib/python3.12/site-packages/toys/ssl.py", "exception"),
        ("/toy/requests/train.py", "exception"),
    ],
)
def test_the_last_frame_tells_whether_a_service_was_asked(watch: Watch, file: str, error_type: str) -> None:
    done = watch(OPEN.format(file))
    assert (done.verdict.error_type, done.decision.action) == (error_type, "hold")
    assert done.decision.reason == "the log ends within a traceback"


NOTEBOOK = """step 1 loss 2.0
step 2 loss 1.9
{}                      Traceback (most recent call last)
<ipython-input-7-aa11> in <module>
      1 import toys
----> 2 toys.fetch("wheel")

"""


@pytest.mark.parametrize(
    ("name", "error_type"), [("ConnectionResetError", "communication"), ("ValueError", "exception")]
)
def test_a_notebook_names_the_exception_in_its_heading(watch: Watch, name: str, error_type: str) -> None:
    done = watch(NOTEBOOK.format(name))
    assert done.verdict.error_type == error_type
    assert done.verdict.root_line.startswith("ConnectionResetError ") is (error_type == "communication")


SPYDER = """step 1 loss 2.0
step 2 loss 1.9
Traceback (most recent call last):

  File ~/toys/train.py:17
    toys.init(wheel="red")

  File ~/toys/lib/toys/start.py:9 in init
    raise error
"""


def test_the_frames_of_spyder_stand_between_blank_lines(watch: Watch) -> None:
    done = watch(SPYDER)
    assert (done.verdict.error_type, done.verdict.root_line) == ("exception", "    raise error")
    assert watch(SPYDER + "step 3 loss 1.8\n").verdict.state == "healthy"
