"""Handled failures: the program went on another way, or had asked for what ended it. Pure."""

from __future__ import annotations

import re

from midwatch.agents.detect.diagnosis.candidates import NotRoot, RootCandidate, beside, speaker
from midwatch.agents.detect.diagnosis.mistakes import MISTAKE
from midwatch.agents.detect.diagnosis.noted_lines import STARTED_AGAIN, WITHOUT_COLLNET
from midwatch.agents.detect.diagnosis.relations.surroundings import Surroundings
from midwatch.agents.detect.diagnosis.relations.waits import OF_NVLS, link_reports
from midwatch.agents.detect.line_order import FirstAndLast, earlier, maybe_earlier
from midwatch.streams.records import Hit

_FALLBACKS = {"ofi_plugin_setup_failed": "nccl_tcp_fallback", "snakemake_job_failed": STARTED_AGAIN}
# Ray prints this of each worker that dies, whether or not it then runs the task once more.
_A_WORKER_DIED = "A worker died or was killed while executing a task"
_MAY_LACK_IT = re.compile(r"\b(?:Name|Import|ModuleNotFound)Error\b")
_OF_WORK = ("oom", "numerical_instability")
_PORT_TAKEN = ("store_cannot_listen", "store_port_in_use")
_RETRIED_ABOVE = 2
"""Lines between Ray's word that it runs the task once more and its word on the worker that died."""
_TRACE = "nccl_call_returned_an_error"
_OF_THE_START = re.compile(r"\binit\.cc:\d+ -> ")
_REQUEUE = re.compile(r"DUE TO JOB REQUEUE")
_OF_ITS_STEP = ("slurm_srun_gone", "slurm_step_clean_up", "said_cancelled")
"""What srun says of the step that a requeue ends."""
_TOGETHER = 8  # lines: srun and slurmstepd tell of one requeue within these
_WARNED = "lightning_requeued"
"""The rule of a handler that was warned of the end and asks for a new start."""


def asked_for_itself(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """The job had put itself back into the queue, so the scheduler starts it again by itself.

    Its handler of the scheduler's warning tells of the warning first, and of the request after that.
    """
    warned = hit.rule == _WARNED
    if not warned and _REQUEUE.search(hit.line.text) is None and not _of_a_requeued_step(hit, around):
        return None
    for each in around.noted:
        if each.rule == "job_requeues_itself" and (warned or earlier(each.line, hit.line)):
            return beside(hit, NotRoot("asked for itself", each.line))
    return None


def _of_a_requeued_step(hit: Hit, around: Surroundings) -> bool:
    """Whether srun tells there how the step ended that a requeue took."""
    return hit.rule in _OF_ITS_STEP and any(
        each.line.file == hit.line.file and abs(each.line.number - hit.line.number) <= _TOGETHER
        for each in around.once(_requeues)
    )


def _requeues(around: Surroundings) -> list[Hit]:
    return [each for each in around.hits if _REQUEUE.search(each.line.text)]


def went_another_way(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """The program took its fallback, or ran the task once more: the failure ended nothing."""
    of_ray = _A_WORKER_DIED in hit.line.text
    way = "ray_task_retried" if of_ray else _FALLBACKS.get(hit.rule)
    if way is None:
        return None
    for each in around.noted:
        told_above = of_ray and _right_above(hit, each)
        if each.rule == way and (earlier(hit.line, each.line) or told_above):
            return beside(hit, NotRoot("went another way", each.line))
    return None


def _right_above(hit: Hit, retried: Hit) -> bool:
    """Whether Ray said of this very worker that its task runs once more."""
    above = hit.line.number - retried.line.number
    return hit.line.file == retried.line.file and 0 < above <= _RETRIED_ABOVE


def port_left_alone(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """The store found its port taken. The program caught that, told it quietly, and went on without peers.

    One that needs its peers fails of that soon: then the port is the cause after all.
    """
    if hit.rule not in _PORT_TAKEN or around.once(_lacks_its_group).behind(hit.line) is not None:
        return None
    for each in around.noted:
        told = each.rule in _PORT_TAKEN and each.aside == "quiet" and each.line.file == hit.line.file
        if told and earlier(hit.line, each.line):
            return beside(hit, NotRoot("went another way", each.line))
    return None


def _lacks_its_group(around: Surroundings) -> FirstAndLast:
    return FirstAndLast(each for each in around.causes if each.rule == "process_group_missing")


def got_over(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A store or a service failed, a program told it, and went on until a mistake ended it.

    torch prints the rank in front of each exception that ends a process. A report without one ended none.
    """
    told = hit.role == "cause" and hit.transient is not False and speaker(hit) == (None, None)
    if not told or not (hit.error_type == "storage" or (hit.fallback and hit.error_type == "communication")):
        return None
    ended = around.once(_ended_by_mistakes).behind(hit.line)
    if ended is None or ended.line.file != hit.line.file:
        return None
    return RootCandidate(hit, NotRoot("got over", ended.line))


def _ended_by_mistakes(around: Surroundings) -> FirstAndLast:
    return FirstAndLast(
        hit
        for hit in around.causes
        if hit.line.claimed_rank is not None and MISTAKE.search(hit.line.text) is not None
    )


def module_done_without(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A module was missing, and behind that a program in the same file filled a card or broke its numbers.

    So the module was optional, or another program's. Neither of these follows from a missing module. Nor did
    it end a rank, where a mistake ended one that names itself (`got_over`). But for want of a module a name
    or another module may be missing.
    """
    if hit.error_type != "import_error":
        return None
    behind = [around.once(_worked).behind(hit.line)]
    if speaker(hit) == (None, None):
        behind.append(around.once(_ended_by_mistakes).behind(hit.line))
    for each in filter(None, behind):
        if each.line.file == hit.line.file and _MAY_LACK_IT.search(each.line.text) is None:
            return RootCandidate(hit, NotRoot("got over", each.line))
    return None


def _worked(around: Surroundings) -> FirstAndLast:
    return FirstAndLast(each for each in around.causes if each.error_type in _OF_WORK and not each.fallback)


def transport_given_up(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """NCCL tried NVLink SHARP or CollNet and took another way. If it could not go on, its error follows."""
    tried = _of_nvls(hit) or _of_collnet(hit, around)
    if not tried or any(
        maybe_earlier(hit.line, each.line) and each.rule != _TRACE
        for each in around.once(link_reports).get(hit.line.file, ())
    ):
        return None
    return beside(hit, NotRoot("transport given up"))


def _of_nvls(hit: Hit) -> bool:
    return hit.rule == "nccl_device_call_failed" and OF_NVLS.search(hit.line.text) is not None


def _of_collnet(hit: Hit, around: Surroundings) -> bool:
    """Whether a communicator's start hands up the error of a CollNet that NCCL said it does without."""
    if hit.rule != _TRACE:
        return False
    return _OF_THE_START.search(hit.line.text) is not None and any(
        each.rule == WITHOUT_COLLNET and earlier(each.line, hit.line) for each in around.noted
    )
