"""A helper process gives what the work would give here, errors included, and never delays a worker's end."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from midwatch.agents.rulesets.draft import edit, prepare
from midwatch.agents.rulesets.reload.helper_process import HelperFailed, HelperProcess
from midwatch.agents.rulesets.reload.matching_rules import plan_for
from midwatch.rules.errors import RuleErrors
from midwatch.rules.matching.compiler import compile_rules
from midwatch.rules.model import Rule
from midwatch.streams.settings.schema import ExtensionSettings, RulesSettings
from processes import alive, wait_for

RULES = (Rule(name="mesh", pattern="the mesh of (racks|nodes) was lost"),)


@pytest.fixture
def over() -> threading.Event:
    return threading.Event()


def test_the_answer_is_the_same_as_here(over: threading.Event) -> None:
    assert HelperProcess().ask(over, plan_for, RULES) == compile_rules(RULES).plan


def test_every_mistake_in_a_file_comes_back_as_it_was_found(tmp_path: Path, over: threading.Event) -> None:
    (tmp_path / "own.yaml").write_text("version: 1\nrules:\n  - {name: a, pattern: '(', colour: red}\n")
    rules, nothing = RulesSettings(directories=(tmp_path,)), frozenset[str]()
    asked = ("verdict", rules, ExtensionSettings(), nothing, nothing)
    with pytest.raises(RuleErrors) as here:
        edit(*asked)
    with pytest.raises(RuleErrors) as there:
        HelperProcess().ask(over, edit, *asked)
    assert there.value.errors == here.value.errors
    assert str(there.value) == str(here.value)
    assert there.value.exit_code == here.value.exit_code


def test_what_no_rule_explains_is_told_with_its_reason(over: threading.Event) -> None:
    with pytest.raises(HelperFailed, match="ZeroDivisionError"):
        HelperProcess().ask(over, divmod, 1, 0)


def test_it_prepares_itself_before_it_is_asked(tmp_path: Path, over: threading.Event) -> None:
    assert HelperProcess(os.chdir, str(tmp_path)).ask(over, os.getcwd) == str(tmp_path)


def test_what_cannot_be_prepared_is_told_when_it_is_asked_for(tmp_path: Path, over: threading.Event) -> None:
    (tmp_path / "own.yaml").write_text("version: 1\nrules:\n  - {name: a, pattern: '('}\n")
    asked = ("verdict", RulesSettings(directories=(tmp_path,)), ExtensionSettings())
    reader = HelperProcess(prepare, *asked, frozenset[str]())
    with pytest.raises(RuleErrors, match=r"own\.yaml:3"):
        reader.ask(over, edit, *asked, frozenset[str](), frozenset[str]())


def test_what_is_printed_does_not_spoil_the_answer(over: threading.Event) -> None:
    assert HelperProcess().ask(over, print, "text") is None


def test_a_worker_that_ends_does_not_wait_for_it(over: threading.Event) -> None:
    slow = HelperProcess()
    threading.Timer(0.5, over.set).start()
    with pytest.raises(HelperFailed, match="stopped"):
        slow.ask(over, time.sleep, 600)
    assert not alive(slow.pid)


def test_one_that_is_asked_nothing_ends_with_us() -> None:
    begin = f"from {HelperProcess.__module__} import HelperProcess; print(HelperProcess().pid)"
    told = subprocess.run([sys.executable, "-c", begin], capture_output=True, check=True, timeout=60).stdout
    wait_for(lambda: not alive(int(told)), "it is gone", 30)
