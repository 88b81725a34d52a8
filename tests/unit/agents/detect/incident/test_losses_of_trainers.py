"""A loss that breaks or jumps is found while it runs, whatever its trainer's lines look like."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

# {n}: the count, {p}: its share in percent, {loss}.
LINES = {
    "Lightning": "Epoch 4:  {p}%|###   | {n}/50 [00:{n:02}<00:31,  1.31it/s, v_num=3, train_loss={loss}]",
    "NeMo": "Epoch 0: :  {p}%|##    | {n}/50 [00:{n:02}<00:31, reduced_train_loss={loss}, global_step={n}.0]",
    "Keras 2": "{n}/50 [=====>........] - ETA: 31s - loss: {loss} - accuracy: 0.4131",
    "Keras 3": "{n}/50 ━━━━━━━━━━━━━━━━━━━━ 31s 131ms/step - accuracy: 0.4131 - loss: {loss}",
    "torchtune": "2|{n}|Loss: {loss}:  {p}%|###   | {n}/50 [00:{n:02}<00:31,  1.31s/it]",
    "OpenRLHF": "Train epoch [1/1]:  {p}%|##  | {n}/50 [00:{n:02}<00:31,  1.31s/it, gpt_loss={loss}]",
    "MMEngine": "mmengine - INFO - Epoch(train) [2][ {n}/50]  lr: 3.0e-03  eta: 0:31:00  loss: {loss}",
    "MMCV": "mmdet - INFO - Epoch [2][{n}/50]\tlr: 3.0e-03, eta: 0:31:00, time: 0.31, loss: {loss}",
    "fairseq": "train_inner | epoch 002: {n} / 50 loss={loss}, ppl=8.13, wps=313, num_updates={n}, lr=3e-05",
    "Detectron2": "d2.utils.events]:  eta: 0:31:00  iter: {n}  total_loss: {loss}  time: 0.31  lr: 3.0e-03",
    "timm": "Train: 2 [ {n}/50 ( {p}%)]  Loss: {loss} (1.83)  Time: 0.313s,  31.3/s  LR: 3.0e-03",
    "nanoGPT": "iter {n}: loss {loss}, time 131.31ms, mfu 13.31%",
    "torchtitan": "[titan] root - INFO - step: {n}  loss:  {loss}  grad_norm:  0.9  tps: 313",
    "Megatron": " iteration {n}/ 50 | consumed samples: {n} | elapsed time per iteration (ms): 313.1 | "
    "learning rate: 3.0E-04 | lm loss: {loss} | loss scale: 1.0 | grad norm: 0.9 |",
    "DeepSpeed": "steps: {n} loss: {loss} iter time (s): 0.313 samples/sec: 31.3",
    "PyTorch's ImageNet": "Epoch: [2][ {n}/50]\tTime  0.313 ( 0.331)\tLoss {loss} (1.83e+00)",
    "PyTorch's MNIST": "Train Epoch: 2 [{n}/600 ({p}%)]\tLoss: {loss}",
    "an epoch a line": "Epoch {n}/50, Train Loss: {loss}, Val Loss: 1.93",
    "transformers 4": "{{'loss': {loss}, 'grad_norm': 0.9, 'learning_rate': 3e-05, 'epoch': 0.{n:02}}}",
    "transformers 5": "{{'loss': '{loss}', 'grad_norm': '0.9', 'learning_rate': '3e-05', 'epoch': '.{n}'}}",
    "diffusers": "Steps:  {p}%|###   | {n}/50 [00:{n:02}<00:31,  1.31it/s, lr=3e-5, step_loss={loss}]",
    "kohya": "steps:  {p}%|###   | {n}/50 [00:{n:02}<00:31,  1.31it/s, avr_loss={loss}]",
    "verl": "step:{n} - train/loss:{loss} - train/lr(1e-3):0.03",
    "MaxText": "completed step: {n}, seconds: 0.3, TFLOP/s/device: 31.3, Tokens/s/device: 31.3, loss: {loss}",
    "Composer": "[batch={n}/50]:\n\t Train time/batch: {n}\n\t Train loss/train/total: {loss}",
    "ESPnet": "INFO: 2epoch:train:{n}-{n}batch: iter_time=0.03, loss={loss}, backward_time=0.3",
    "PaddleClas": "ppcls INFO: [Train][Epoch 2/9][Iter: {n}/50]lr: 0.03, CELoss: {loss}, loss: {loss}",
}


def log(line: str, last: str) -> str:
    usual = ["1.91", "1.87", "1.94", "1.83"] * 8
    losses = [*usual, last, last, last, last]
    return "".join(line.format(n=n, p=2 * n, loss=loss) + "\n" for n, loss in enumerate(losses, 10))


@pytest.mark.capability("C-4", "S003-32")
@pytest.mark.parametrize("trainer", LINES)
def test_a_broken_loss_and_a_jump_are_found_and_a_usual_loss_is_not(watch: Watch, trainer: str) -> None:
    for last in ("nan", "23.1"):
        assert [each.kind for each in watch(log(LINES[trainer], last)).findings] == ["loss_spike"], last
    assert watch(log(LINES[trainer], "1.79")).findings == ()
