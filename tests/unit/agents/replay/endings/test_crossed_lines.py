"""A cross or a stop sign in front of what a program could not do: its last words in any language."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

BEGUN = "[2026-03-02 11:52:40] the toys are packed\n"
STEPS = "".join(f"step {n} loss {3 - n / 50:.3f}\n" for n in range(1, 31))


@pytest.mark.parametrize(
    "line",
    [
        "❌ Toy file not found: /toys/7.pt",
        "[2026-03-02 11:52:41] ❌ Training could not be started!",
        "2026-03-02 11:52:41 | ERROR | ❌ the toy folder does not exist",
        "✗ Cannot open wheels.yaml",
        "⛔ the list of toys is missing",
        "🛑 Error while painting: no brush",
        "❌ Boyama hatas\u0131: f\u0131r\u00e7a yok",
        "❌ 训练失败\uff1a没有玩具",
        "❌ Ошибка: нет игрушек",
        "❌ Erreur: pas de jouets",
        "❌ Fehler: kein Spielzeug da",
        "❌ Erro: sem brinquedos",
        "❌ Errore: niente giocattoli",
        "❌ 错误: 没有玩具",
        "❌ 錯誤: 沒有玩具",
        "❌ エラー: 玩具がない",
        "❌ 失敗: 玩具がない",
        "❌ 오류: 장난감 없음",
        "❌ 실패: 장난감 없음",
    ],
)
def test_a_crossed_last_line_that_tells_of_a_failure_is_the_end(watch: Watch, line: str) -> None:
    done = watch(BEGUN + line + "\n")
    assert (done.verdict.state, done.decision.action) == ("failed", "hold")
    assert done.verdict.root_line == line
    assert watch(BEGUN + line + "\n" + STEPS).verdict.state == "healthy"


@pytest.mark.parametrize(
    "line",
    [
        "❌ Not solved (goal: 7 wheels, best: 3)",
        "✗ still slow at some sizes; the table stays",
        "❌ FAIL: it still cannot learn to roll",
        "toy_track_4.yaml            ❌     7     0        0            4          0.281",
        "❌ Errors: 3",
        "⚠️ the list of toys is missing",
    ],
)
def test_the_verdict_on_a_model_is_no_failure_of_its_job(watch: Watch, line: str) -> None:
    assert watch(BEGUN + line + "\n").verdict.state != "failed"
