"""A batch script asks whether a module is there, before it has the environment that holds it."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

PROBE = (
    "Traceback (most recent call last):\n"
    '  File "<string>", line 1, in <module>\n'
    "ModuleNotFoundError: No module named 'tensorflow'\n"
)
SPEAKS = "2026-03-02 11:52:40.118000: I tensorflow/core/toy/toy_device.cc:77] Created the toy device\n"
FILE = "/opt/toy/lib/tensorflow/toy/networks.py:9: UserWarning: the toy is old\n"


@pytest.mark.parametrize("later", [SPEAKS, FILE])
def test_a_module_that_speaks_behind_a_probe_is_there(watch: Watch, later: str) -> None:
    done = watch(f"loads the toy modules\n{PROBE}{later}")
    assert done.verdict.state != "failed"
    assert "that failure ended nothing" in " ".join(done.assumed)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(PROBE, id="nothing behind it"),
        pytest.param(SPEAKS + PROBE, id="it spoke before"),
        pytest.param(PROBE + SPEAKS.replace("tensorflow/", "toyflow/"), id="another module"),
        pytest.param(PROBE.replace("<string>", "train.py") + SPEAKS, id="the program itself"),
        pytest.param("ModuleNotFoundError: No module named 'tensorflow'\n" + SPEAKS, id="no traceback"),
    ],
)
def test_a_module_that_is_missing_ends_a_program(watch: Watch, text: str) -> None:
    assert watch(text).verdict.error_type == "import_error"
