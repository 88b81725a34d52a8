"""What a job script asks of its machine behind a failure is no work that went on."""

from __future__ import annotations

import pytest

from midwatch.agents.replay.went_on.aftermath import ENOUGH
from midwatch.agents.replay.went_on.monitors import is_of_a_monitor, without_lists
from unit.agents.conftest import Watch
from unit.agents.replay.went_on.test_aftermath import RAISED, WORDS, WORK, steps

ROWS = {
    "df": "/dev/toy{n}    77G   {n}G  40G  {n}% /mnt/{word}",
    "conda list": "toy-{word}                  1.{n}.0          py311h7d4c{n:03x}_0    toy-forge",
    "ps aux": "toy   {n}7  7.{n}  0.3 7711{n} 4188 ?   Ss   11:52   0:{n:02d} /usr/bin/{word} --toys",
    "ps -ef": "toy   {n}7   1  0 11:52 ?   00:00:{n:02d} /usr/bin/{word} --toys",
    "top": " {n}77 toy   20   0   7.1g   3.7g   1.1g S  {n}.7   0.3  77:11.18 {word}",
    "ls -l": "-rw-r--r-- 1 toy toys 77{n} Mar  2 11:52 {word}.pt",
    "du": "77{n}\t./toys/{word}",
    "kubectl get pods": "{word}-toy-{n}     1/1     Running   0     {n}m",
    "docker ps": '7d4c000000{n:02x}   toys/{word}:1.{n}   "sh -c toys"   7 hours ago   Up 7 hours   {word}',
    "git log": "commit {n:040x}\nAuthor: Toy {word} <toy@example.org>",
    "gsutil cp": "Copying file://toys/{word}.json [Content-Type=application/json]...",
    "aws s3 cp": "upload: ./toys/{word}.json to s3://toys/{word}.json",
    "lscpu": "Toy {word}:               not affected",
}


def rows(name: str) -> str:
    return "".join(ROWS[name].format(n=n + 1, word=word) + "\n" for n, word in enumerate(WORDS[: 2 * ENOUGH]))


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("before", ["the toy is wound up\n", steps(1, 9)])
def test_what_a_script_lists_of_its_machine_is_no_work(watch: Watch, before: str, name: str) -> None:
    assert watch(before + RAISED + rows(name)).verdict.state == "failed"
    assert watch(before + RAISED + rows(name) + WORK).verdict.state != "failed"


def test_what_ls_counts_at_first_is_no_result(watch: Watch) -> None:
    caught = "painting toy 7\n" * 3 + RAISED.replace("<module>", "main") + "painting toy 9\n" * 2
    assert watch(f"{caught}total 4188\n{rows('ls -l')}").verdict.state == "failed"


@pytest.mark.parametrize(
    "line",
    [
        "accuracy     0.9311     0.9277     0.9290      1180",
        "epoch 7   loss 0.77   3m 11s",
        "toys 77 of 118 painted, 65% done",
        "Author of the toy: nobody",
    ],
)
def test_a_training_s_own_rows_are_of_no_monitor(line: str) -> None:
    assert not is_of_a_monitor(line)


def test_a_few_settings_and_measures_are_no_list() -> None:
    settings = [f"Toy {word}:    {word}" for word in WORDS[:5]]
    measures = [f"Toy {word}:    0.{n}" for n, word in enumerate(WORDS[:9])]
    assert list(without_lists([*settings, "paint", *measures])) == [*settings, "paint", *measures]
    assert list(without_lists([*settings, *settings, "paint"])) == ["paint"]
