"""ml-agents has the same words for Ctrl+C and a failed environment; the exception below tells which."""

from __future__ import annotations

from unit.agents.conftest import Watch

WORDS = "INFO:mlagents.envs:Learning was interrupted. Please wait while the graph is generated.\n"
RAISED = """Traceback (most recent call last):
  File "/toy/mlagents/trainers/trainer_controller.py", line 177, in start_learning
    raise ex
mlagents_envs.exception.UnityEnvironmentException: the toy needs a worker-id of its own
"""


def test_an_exception_below_the_words_is_the_cause(watch: Watch) -> None:
    verdict = watch(WORDS + RAISED).verdict
    assert (verdict.error_type, verdict.root_line) == ("config", RAISED.splitlines()[-1])


def test_the_words_alone_tell_of_an_interrupt(watch: Watch) -> None:
    verdict = watch(WORDS).verdict
    assert (verdict.error_type, verdict.root_line) == ("user_interrupt", WORDS.strip())
