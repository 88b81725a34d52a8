"""A YAML file is changed in place: every other byte stays."""

from __future__ import annotations

import pytest

from midwatch.agents.rescue.resume_keys import resume_values
from midwatch.agents.rescue.yaml_patch import Changed, Wanted, load, patch, setting
from midwatch.agents.schedulers.resume import ResumePoint
from midwatch.streams.errors import UsageError

TEXT = """\
# the team's own
trainer:
    batch: {train: 64, val: 32}  # sizes
    lr: 1e-4     # peak
    names:
    - "a"
    - b
seed:   # none yet
on: yes
note: 'quoted'
text: |
  two
  lines
base: &base 1
same: *base
"""


def changed(key: str, value: str) -> str:
    return patch(TEXT, (Wanted(key, value),), "f").text


@pytest.mark.parametrize(
    ("key", "value", "old", "new"),
    [
        ("trainer.batch.val", "16", "val: 32}", "val: 16}"),
        ("val", "16", "val: 32}", "val: 16}"),
        ("lr", "3e-5", "lr: 1e-4 ", "lr: 3e-5 "),
        ("seed", "7", "seed:   #", "seed: 7   #"),
        ("note", "plain", "'quoted'", "plain"),
        ("trainer.batch", "{val: 1}", "{train: 64, val: 32}", "{val: 1}"),
    ],
)
def test_only_the_value_changes(key: str, value: str, old: str, new: str) -> None:
    assert TEXT.count(old) == 1
    assert changed(key, value) == TEXT.replace(old, new)


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("val_size", "no key val_size"),
        ("text", "a block or an alias"),
        ("names", "a block or an alias"),
        ("same", "a block or an alias"),
        ("base", "cannot be changed alone|it is no YAML"),
    ],
)
def test_what_cannot_be_changed_alone_is_refused(key: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        changed(key, "5")


def test_a_bare_name_at_several_places_is_refused_and_a_near_one_proposed() -> None:
    text = "train: {size: 1}\nval: {size: 2}\n"
    with pytest.raises(UsageError, match=r"train\.size or val\.size"):
        patch(text, (Wanted("size", "3"),), "f")
    with pytest.raises(UsageError, match="did you mean val_batch_size"):
        patch("val_batch_size: 32\n", (Wanted("val_batchsize", "16"),), "f")


def test_a_value_is_what_the_person_typed() -> None:
    found = patch("a: 1  # one\n", (setting("a=[1, 2]"),), "f")
    assert (found.text, found.changed) == ("a: [1, 2]  # one\n", (Changed("a", "1", "[1, 2]"),))
    for wrong in ("a", "=1", "a={"):
        with pytest.raises(UsageError):
            setting(wrong)


POINT = ResumePoint(40, "/ck pt/step_40", "/ck pt", 0)
FORMS = {
    "resume_from: null\n": 'resume_from: "/ck pt/step_40"\n',
    "resume_from_checkpoint:\n": 'resume_from_checkpoint: "/ck pt/step_40"\n',
    "load: /old\n": 'load: "/ck pt"\n',
    "ckpt_path: null\n": 'ckpt_path: "/ck pt/step_40"\n',
    "load_from: null\nresume: false\n": 'load_from: "/ck pt/step_40"\nresume: true\n',
    "trainer:\n  resume_mode: auto\n  resume_from_path: null\n": (
        'trainer:\n  resume_mode: resume_path\n  resume_from_path: "/ck pt/step_40"\n'
    ),
    "resume_from_checkpoint: true\n": "resume_from_checkpoint: true\n",  # torchtune's is no path
    "lr: 1\n": "lr: 1\n",
}


@pytest.mark.capability("S000-13")
@pytest.mark.parametrize("text", FORMS)
def test_a_known_resume_key_gets_the_checkpoint(text: str) -> None:
    assert patch(text, resume_values(load(text, "f"), POINT, None), "f").text == FORMS[text]


def test_a_resume_key_of_the_persons_own_is_added() -> None:
    data = load("a: 1\n", "f")
    assert patch("a: 1\n", resume_values(data, POINT, "init"), "f").text == 'a: 1\ninit: "/ck pt/step_40"\n'
    nested = "m:\n  b: 2\n"
    wanted = resume_values(load(nested, "f"), POINT, "m.init")
    assert patch(nested, wanted, "f").text == 'm:\n  init: "/ck pt/step_40"\n  b: 2\n'
    assert resume_values(data, POINT, "") == ()
