# ruff: noqa: E501  # a line of a log is one line here too
"""Workloads: three kinds of made-up log text, with which admission and the benchmark measure the rules.

`progress` is rank 0 of a training run; nearly every line is a hit. `noise` is NCCL_DEBUG=INFO, progress bars and
configuration; one line in a thousand is a hit. `storm` is 128 ranks that die at once. We wrote all lines, in the form
that the libraries print. Numbers and hosts vary, so that no cache of the engine sees a line twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from midwatch.rules.prefilter.chatter import CHATTER

_NCCL = (
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO Channel {c:02}/0 : {a}[{d}] -> {b}[{e}] via P2P/CUMEM",
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO Channel {c:02}/0 : {a}[{d}] -> {b}[{e}] [send] via NET/IB/{d}/GDRDMA",
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO Channel {c:02}/0 : {b}[{e}] -> {a}[{d}] [receive] via NET/IB/{e}/GDRDMA",
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO Ring {c:02} : {a}[{x:x}] -> {b}[{y:x}] via direct shared memory",
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO Trees [0] {a}/-1/-1->{b}->{c} [1] {a}/-1/-1->{b}->{c}",
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO threadThresholds 8/8/64 | {n}/8/64 | 512 | 512",
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO {c} coll channels, 0 nvls channels, {d} p2p channels per peer",
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO AllReduce: opCount {x:x} sendbuff 0x7f{y:x} count {p} datatype 9 op 0",
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO [Proxy Progress] Device {d} CPU core {a}",
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO NCCL_IB_TIMEOUT set by environment to {c}.",
)
_CONFIGURATION = (
    '  "train_micro_batch_size_per_gpu": {d}, "gradient_clipping": {e}.0, "steps_per_print": {p},',
    "[2026-03-02 11:{m:02}:{s:02},{n}] [INFO] [config.py:{n}:print] zero_optimization_stage ...... {d}",
    "Using /home/user{a}/.cache/torch_extensions/py311_cu12{d} as PyTorch extensions root...",
    "/opt/env/lib/python3.11/site-packages/torch/utils/checkpoint.py:{n}: UserWarning: use_reentrant is unset",
    "Setting ds_accelerator to cuda (auto detect) on gpu-{h:02}",
    ':::MLLOG {{"namespace": "", "time_ms": 17{p}{t}, "event_type": "POINT_IN_TIME", "key": "throughput"}}',
    " > number of parameters on (tensor, pipeline) model parallel rank ({d}, {e}): {p}{t}",
    "Loading extension module fused_adam... Time to load fused_adam op: 0.{n}{d} seconds",
    "Some weights of the model were not used when initializing: ['head.{d}.weight', 'head.{e}.bias']",
    "Mar  2 11:{m:02}:{s:02} gpu-{h:02} sshd[{p}]: session opened for user root by (uid={a})",
    "Mar  2 11:{m:02}:{s:02} gpu-{h:02} kernel: mlx5_core 0000:{a:02x}:00.0: port {d} link state is active",
)
_EVERYDAY = (
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO NET/Plugin : no plugin was found, the internal implementation is used",
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO Setting affinity for GPU {d} to {x:x}",
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO cudaDriverVersion 12040, retrying with a smaller buffer of {n} KiB",
    "ignore me {p}, {t} samples are left over and more are to come",
    "{p} node-{n} node status {t} {d} configured out, running again, no longer starting",
    "{p} node-{n} action start {t} {d} wait (command {n}), action done",
    "{p} node-{n} unix.hw net.up {t} {d} the node has detected an available connection on network {d}",
    "{p} switch module {n}: event interval expired, link counters are reset, next link event in {d} s",
    "Mar  2 11:{m:02}:{s:02} admin{d} gmetad[{p}]: got no answer from any of the {d} sources, tries the next one",
    "Mar  2 11:{m:02}:{s:02} admin{d} ntpd[{p}]: synchronized to 10.0.{a}.{b}, stratum {d}",
    "Mar  2 11:{m:02}:{s:02} admin{d} subnet manager[{p}]: ******************** NEW SWEEP {d} ********************",
    "[W 2026-03-02 11:{m:02}:{s:02} base_model:{n}] the model does not have the field _overlap_{d}, option is ignored",
    "    options {d} and {e} are required but usually have reasonable defaults, see the source of the model",
)
_STARTING = (
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO comm 0x{x:x} rank {a} nRanks {n} nNodes {c} localRanks {d} localRank {e} MNNVL 0",
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO NVLS comm 0x{x:x} headRank {e} nHeads {d} buffSize {p} memSize {t} nvlsSize {p}",
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO comm 0x{x:x} rank {a} nranks {n} cudaDev {d} nvmlDev {e} busId {e}000 - Init START",
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO Using network IB, using non-device net plugin version 0",
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO Connected all rings, connected all trees, comm 0x{x:x} is not shared",
    ':::MLLOG {{"event_type": "INTERVAL_START", "key": "block_start", "value": {p}, "metadata": {{"file": "run.py", "lineno": {n}}}}}',
    "    duration: {d}.{n} seconds, seed: {p}, division: closed, accumulating results, status: {a} of {n} done",
    "{p} Interconnect-{n} switch_module error {t} {d} link error, event interval expired",
    "{p} node-{n} filesystem not_served {t} {d} the file system is not served by its server",
    "'model': {{'channels': {n}, 'resolutions': [], 'loss_type': 'l{d}', 'conditions': [{a}, {b}], 'dropout': 0.{c}}}",
)
_FALLING = (
    "Exception raised from checkTimeout at ../torch/csrc/ProcessGroupNCCL.cpp:{n} (most recent call first):",
    "[rank{r}]:     iteration, operations = train(",
    "[rank{r}]:     loss, skipped_iterations, norm = train_step(",
    "[rank{r}]:     return self._call_impl(*args, **kwargs)",
)
_BAR = "Epoch {d}: {a:3}%|{bar:<10}| {a}/100 [{m:02}:{s:02}<{e:02}:{s:02},  {d}.{n}s/it]"
_SELDOM = (
    _BAR,
    "gpu-{h:02}:{p}:{t} [{d}] NCCL INFO comm 0x{x:x} rank {a} nranks {n} cudaDev {d} busId {e}000 - Init COMPLETE",
    "gpu-{h:02}:{p}:{t} [{d}] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer"
    " 10.2.0.{a}<{p}> with error 12, opcode 0, len 0, vendor err 129",
)
_ITERATION = (
    " iteration {i:8}/  500000 | consumed samples: {j:12} | elapsed time per iteration (ms): {p}.{d} | learning"
    " rate: {d}.{t}E-05 | global batch size:   512 | lm loss: {e}.{p}{n}E+00 | loss scale: 1.0 | grad norm: 0.{n}"
    " | number of skipped iterations:   0 | number of nan iterations:   0 |"
)
_PROGRESS = (
    _ITERATION,
    " [2026-03-02 11:{m:02}:{s:02}]" + _ITERATION,
    "[default{d}]: [2026-03-02 11:{m:02}:{s:02}.{p}]" + _ITERATION,
)
_OTHER_PROGRESS = (
    "[2026-03-02 11:{m:02}:{s:02},{n}] [INFO] [logging.py:96:log_dist] [Rank 0] step={i}, skipped={d}, lr=[1e-05]",
    "{{'loss': {d}.{n}, 'grad_norm': 0.{p}, 'learning_rate': {e}.{n}e-05, 'epoch': 0.{n}}}",
    "step: {i}  loss:  {d}.{p}  grad_norm:  0.{n}  memory: {a}.{e}GiB({a}.{d}%)  tps: {p}",
)
_TRACEBACK = (
    '  File "/opt/trainer/train_gpt.py", line {n}, in <module>',
    "    main(arguments)",
    '  File "/opt/trainer/loop/training.py", line {n}, in train_step',
    "    losses = forward_backward(batch, model, schedule)",
    '  File "/opt/env/lib/python3.11/site-packages/torch/nn/modules/module.py", line {n}, in _call_impl',
    "    return forward_call(*args, **kwargs)",
    '  File "/opt/trainer/model/block.py", line {n}, in forward',
    "    hidden = self.activation(self.first_layer(hidden))",
)
_OUT_OF_MEMORY = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {d}.{m:02} GiB. GPU {e} has a total capacity of"
    " 79.10 GiB of which {n}.{m:02} MiB is free. Process {p} has 7{d}.{m:02} GiB memory in use. Of the allocated"
    " memory 6{e}.{m:02} GiB is allocated by PyTorch, and {n}.{m:02} MiB is reserved by PyTorch but unallocated."
)
_WATCHDOG = (
    "607] [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(SeqNum={p}, OpType=ALLREDUCE,"
    " NumelIn={t}, NumelOut={t}, Timeout(ms)=600000) ran for 6000{m:02} milliseconds before timing out.",
    "1664] [PG 1 Rank {r}] Exception (either an error or timeout) detected by watchdog at work: {p}, last enqueued"
    " NCCL work: {t}, last completed NCCL work: {p}.",
    "621] [Rank {r}] Some NCCL operations have failed or timed out. Due to the asynchronous nature of CUDA kernels,"
    " subsequent GPU operations might run on corrupted/incomplete data.",
    "627] [Rank {r}] To avoid data inconsistency, we are taking the entire process down.",
    "1515] [PG 1 Rank {r}] Process group watchdog thread terminated with exception: [Rank {r}] Watchdog caught"
    " collective operation timeout: WorkNCCL(SeqNum={p}, OpType=ALLREDUCE) ran for 6000{m:02} milliseconds",
)
_FRAMES = (
    "frame #{d}: c10::Error::Error(c10::SourceLocation, std::string) + 0x{e:x}{n} (0x7f{x:x} in libc10.so)",
    "frame #{d}: c10d::WorkNCCL::checkTimeout(std::optional<long>) + 0x{e:x}{n} (0x7f{x:x} in libtorch_cuda.so)",
    "frame #{d}: c10d::ProcessGroupNCCL::watchdogHandler() + 0x{e:x}{n} (0x7f{x:x} in libtorch_cuda.so)",
    "frame #{d}: c10d::ProcessGroupNCCL::ncclCommWatchdog() + 0x{e:x}{n} (0x7f{x:x} in libtorch_cuda.so)",
    "frame #{d}: <unknown function> + 0x{e:x}{n} (0x7f{x:x} in libstdc++.so.6)",
    "frame #{d}: clone + 0x{e:x}{n} (0x7f{x:x} in libc.so.6)",
)
_ABORT = "terminate called after throwing an instance of 'c10::DistBackendError'"
_EPILOGUE = (
    "W0302 11:{m:02}:{s:02}.{p} 139{p} torch/distributed/elastic/multiprocessing/api.py:906] Sending process {p}"
    " closing signal SIGTERM",
    "E0302 11:{m:02}:{s:02}.{p} 139{p} torch/distributed/elastic/multiprocessing/api.py:881] failed (exitcode: -6)"
    " local_rank: {d} (pid: {p}) of binary: /usr/bin/python3",
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: ",
    "srun: error: gpu-{h:02}: task {r}: Exited with exit code 1",
    "slurmstepd: error: *** STEP {p}.0 ON gpu-{h:02} CANCELLED AT 2026-03-02T11:{m:02}:{s:02} DUE TO TIME LIMIT ***",
)


class _Numbers:
    """A small generator of numbers, so that every machine and every release makes the same text."""

    def __init__(self, seed: int) -> None:
        self.state = seed * 2654435761 % (1 << 32) or 1

    def below(self, limit: int) -> int:
        self.state = (self.state * 1664525 + 1013904223) % (1 << 32)
        return (self.state >> 8) % limit

    def fill(self, template: str, **given: object) -> str:
        word = self.below(1 << 24) | 1 << 23
        other = self.below(1 << 24)
        return template.format(
            **{
                "a": word % 100,
                "b": other % 128,
                "c": word % 24,
                "d": word % 8,
                "e": other % 8,
                "h": other % 17,
                "m": word % 60,
                "n": 100 + other % 900,
                "p": 10000 + word % 89999,
                "r": other % 128,
                "s": other % 60,
                "t": 10000 + other % 89999,
                "x": word << 8,
                "y": other << 8 | 1,
                "bar": "█" * (word % 100 // 10),
            }
            | given
        )


def progress(size: int, seed: int = 1) -> bytes:
    """At least `size` bytes of rank 0's progress, in whole lines."""
    return _text(size, _progress_lines(_Numbers(seed)))


def noise(size: int, seed: int = 2) -> bytes:
    """At least `size` bytes of text in which one line in a thousand is a hit.

    The text has progress bars; of a run of them the shipper leaves one.
    """
    return _text(size, _noise_lines(_Numbers(seed)))


def storm(size: int, seed: int = 3) -> bytes:
    """At least `size` bytes of the last lines of 128 ranks, interleaved."""
    return _text(size, _storm_lines(_Numbers(seed)))


WORKLOADS: dict[str, Callable[[int], bytes]] = {"progress": progress, "noise": noise, "storm": storm}


@lru_cache(maxsize=2)
def background(size: int = 1 << 17) -> bytes:
    """Text in which few rules should hit; the selection of triggers counts literals in it."""
    numbers = _Numbers(5)
    dying = tuple(f"[rank{{r}}]: {line}" for line in _TRACEBACK)
    # The most frequent kinds of lines have the most weight.
    templates = (
        *(*_NCCL * 6, *_CONFIGURATION, *_EVERYDAY, *_STARTING),
        *(*_TRACEBACK, *dying, *_FRAMES, *_FALLING * 3, _BAR, *_OTHER_PROGRESS),
    )
    made_up = _text(
        size * 15 // 24,
        (numbers.fill(templates[numbers.below(len(templates))], i=numbers.below(9999)) for _ in iter(int, 1)),
    )
    return made_up + storm(size * 8 // 24, seed=6) + (CHATTER + b"\n") * (size // 24 // len(CHATTER) + 1)


def _text(size: int, lines: Iterator[str]) -> bytes:
    parts: list[bytes] = []
    length = 0
    for line in lines:
        parts.append(line.encode())
        length += len(parts[-1]) + 1
        if length >= size:
            break
    return b"\n".join((*parts, b""))


def _progress_lines(numbers: _Numbers) -> Iterator[str]:
    step = 0
    while True:
        step += 1
        form = _PROGRESS[step // 4000 % len(_PROGRESS)]
        yield numbers.fill(form, i=step, j=step * 512)
        kind = numbers.below(100)
        if kind < 16:
            yield numbers.fill(_OTHER_PROGRESS[kind % len(_OTHER_PROGRESS)], i=step)
        elif kind < 24:
            yield numbers.fill(_CONFIGURATION[kind % len(_CONFIGURATION)])
        if step % 500 == 0:
            yield f"saving checkpoint at iteration {step:8} to /ckpt/run in torch_dist format"
            yield f"  successfully saved checkpoint from iteration {step:8} to /ckpt/run [ t 1/8, p 1/4 ]"


def _noise_lines(numbers: _Numbers) -> Iterator[str]:
    line = 0
    while True:
        line += 1
        kind = numbers.below(100)
        if kind < 75:
            yield numbers.fill(_NCCL[numbers.below(len(_NCCL))])
        else:
            yield numbers.fill(_CONFIGURATION[numbers.below(len(_CONFIGURATION))])
        if line % 1000 == 0:
            yield numbers.fill(_SELDOM[line // 1000 % len(_SELDOM)])


def _storm_lines(numbers: _Numbers) -> Iterator[str]:
    while True:
        waiting = [list(_death(numbers, rank)) for rank in range(128)]
        while waiting:
            place = numbers.below(len(waiting))
            lines = waiting[place]
            count = 1 + numbers.below(12)
            yield from lines[:count]
            del lines[:count]
            if not lines:
                waiting[place] = waiting[-1]
                waiting.pop()
        yield from (numbers.fill(template) for template in _EPILOGUE)


def _death(numbers: _Numbers, rank: int) -> Iterator[str]:
    if rank % 3 == 1:
        head = numbers.fill(f"[rank{rank}]:[E302 11:{{m:02}}:{{s:02}}.{{p}}{{n}} ProcessGroupNCCL.cpp:")
        for template in _WATCHDOG:
            yield head + numbers.fill(template, r=rank)
        for frame in (*_FRAMES, *_FRAMES):
            yield numbers.fill(frame)
        yield _ABORT
        return
    yield f"[rank{rank}]: Traceback (most recent call last):"
    for _ in range(2 + numbers.below(3)):
        for template in _TRACEBACK:
            yield f"[rank{rank}]: " + numbers.fill(template)
    if rank % 3 == 0:
        yield f"[rank{rank}]: " + numbers.fill(_OUT_OF_MEMORY)
    else:
        yield numbers.fill("[rank{r}]: KeyError: 'sample_{n}'", r=rank)
        for _ in range(6):
            yield numbers.fill(_NCCL[numbers.below(len(_NCCL))])
