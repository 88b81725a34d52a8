"""The level that a line gives itself. A warning or information of its own writer is no failure. Pure."""

from __future__ import annotations

import re
from functools import lru_cache

from midwatch.streams.lines.envelopes import level_of_record
from midwatch.streams.lines.forms import LONGEST_FORM, form_of
from midwatch.streams.lines.launcher_prefix import front, grade

_HEAD = 240  # bytes in which a line names its level; its message comes after

# The first level word of a line decides. NCCL and its kin have no level above WARN. In JSON a `severity` is
# the collector's, which gives one to all that stands on a stream.
_LEVEL = re.compile(
    rb"(?P<loud>[A-Z]CCL WARN|\bCCOM WARN|\b(?:ERROR|CRITICAL|FATAL)|[Ee]rror:"
    rb"|(?:\A|[\s\]])\[(?:error|critical|fatal)\]|(?:\A|\s)level=(?:error|fatal|panic)\s"
    rb"|\A\s*\{(?:[^{}]*, ?)?\"(?:level(?:_?name)?|lvl)\": ?\"(?i:error|critical|fatal|panic)\""
    rb"|(?:\A|[\s\])]|\]:)[EF]\d{4} \d\d:\d\d:\d\d|\[[EF](?:\d{3,4} [\d:.]+)? ?\w+\.(?:cpp|hpp|cc|h):)"
    rb"|(?P<quiet>(?<![='\"])\b(?:INFO|DEBUG|NOTICE|TRACE|WARNING|WARN)\b"  # not NCCL_DEBUG=INFO, a setting
    rb"|\b(?:[A-Z]\w*)?[Ww]arning: |\b(?:WARNUNG|AVERTISSEMENT|ADVERTENCIA|INFOS): "
    rb"|(?:\xe8\xad\xa6\xe5\x91\x8a|\xe4\xbf\xa1\xe6\x81\xaf): "  # Java's words in other languages
    rb"|(?:\A|[\s\])]|\]:)[IWD]\d{4} \d\d:\d\d:\d\d"  # glog, klog and torch: [rank3]:W0302 11:52:40
    rb"|\[[IWD](?:\d{3,4} [\d:.]+)? ?\w+\.(?:cpp|hpp|cc|h):"  # c10: [W302 11:52:40.1 socket.cpp:12]
    rb"|(?:\A|[\s\])])\[[IWD](?:\]| (?:\d{4}-\d\d-\d\d|\d{6}) [\d:]{8}[^\]]{0,40}\]) "  # Optuna, Tornado
    rb"|: [IWD] /?\w+/"  # TensorFlow, Horovod: 2020-10-28 03:51:08.1: W tensorflow/core/..
    rb"|(?:\A|[\s\]])\[(?:trace|debug|info|notice|warn|warning)\](?![^\s\[])"  # spdlog, nginx
    rb"|(?:\A|\s)level=(?:trace|debug|info|warn(?:ing)?)\s"  # logfmt, of programs in Go
    rb"|\A\s*\{(?:[^{}]*, ?)?\"(?:level(?:_?name)?|lvl)\": ?\"(?i:trace|debug|info|notice|warn(?:ing)?)\""
    rb"|\[NeMo [WID] "
    rb"|\b(?:slurmstepd|slurmd|srun|salloc): debug\d?: | UCX +DIAG "
    rb"|:\d+<(?:info|debug|trace)> )"  # libfabric, which warns of what ends a run
)
# Weights & Biases reports the end of a run by an exception. Only its start may fail in a line of its own.
_WANDB = re.compile(
    rb"\A\W{0,8}(?:\([^()]{0,80}pid=[^()]{0,80}\)\W{0,8})?wandb: (?!ERROR Run initialization has timed out)"
)
# What other trackers cannot send ends no run either.
_TRACKER = re.compile(
    rb"\A\W{0,4}COMET (?:ERROR|WARNING): "
    rb"|\A[\d\s:/.,-]{0,30}ERROR mlflow\.utils\.(?:async_logging|autologging_utils)\b"
    rb"|\A\{\"time\":\"[^\"]{1,40}\",\"level\":\"ERROR\",\"msg\":"
    rb"\"(?:sender|stream|api|handler|filestream|runfiles|monitor|writer|processOutgoingData): "
)
# An autotuner tries variants that may not fit the GPU, and leaves out those that do not. XLA's times them.
_AUTOTUNER = re.compile(rb"_inductor/select_algorithm\.py:\d+\]|\b(?:cuda|gpu)_timer\.cc:\d+\] Delay kernel ")
# NCCL's port for questions about the job (RAS) is beside the job: without it NCCL goes on.
_NCCL_RAS = re.compile(rb"\bras/\w+\.cc:\d+ NCCL WARN ")
# What bash says of a tool beside the run, which a script ends when its training has.
_TOOL_ENDED = re.compile(
    rb": line \d+: +\d+ (?:Killed|Terminated) +(?:\S*/)?(?:tail|sleep|nvidia-smi|watch|top|vmstat|iostat"
    rb"|dmesg|ping|tensorboard)\b"
)
# OpenCV gives an empty image where it could not read one.
_UNREAD = re.compile(rb"\bloadsave\.cpp:\d+\)? (?:\w+ )?imread_")
# UCX shows its objects as files, and works without that. gRPC numbers what it waits for. A warning of
# numba quotes the errors for which it compiles in another way. THC asked an old driver too much. Weights &
# Biases sends files from threads of a process of its own, and writes of them in its own log. PowerShell
# writes the name of a class where a program under it wrote an empty line to its standard error. NCCL leaves
# out a card of the network that it may not open. Where a parser of tool calls fails, vLLM still answers.
# GTK looks for a screen, and matplotlib takes another way. TensorFlow trains where its profiler cannot trace.
# gRPC waits for its own threads when a process ends. A reader that took enough closes gzip's pipe. Where
# TensorFlow cannot make a graph better, it takes the graph as it is. Matplotlib makes a folder elsewhere.
# vLLM takes a model whose files name no sizes. An editor's server has a socket for the passwords of Git.
# Wine writes of all that it lacks. A poll of SLURM's daemon that fails ends nothing, nor does what meets it
# when it leaves the cgroup of a step that has ended. A tracker asks git where the code came from. A prolog
# asks the scheduler for a job that it does not know any more. A notebook's kernel gets messages for widgets
# that are gone. A tracker cannot tell the notebook's name. No program is there to show an image. What draws
# a window's frame does without. A model reads in another way, and a counter leaves out a layer.
_NEEDLESS = re.compile(
    rb"\bvfs_fuse\.c:\d+ +UCX +ERROR |\bev_epoll1_linux\.cc?:\d+\] +grpc epoll fd: "
    rb"|\A\s+(?:\x1b\[\d+m)*(?:Typing|Numba\w*)Error: |\bwandb-upload_\d+:\d+ \[|\Apanic: stream_init: "
    rb"|\bTHCudaCheck FAIL file=\S*/THCGeneral\.cpp line=\d+ error=\d+ : invalid argument"
    rb"|\ASystem\.Management\.Automation\.RemoteException\s*\Z"
    rb"|NCCL WARN (?:Call to ibv_open_device failed|NET/IB : Unable to open device )"
    rb"|\[\w*tool_parser\.py:\d+\] |\AUnable to init server: Could not connect: "
    rb"|\bcupti_tracer\.cc:\d+\] function |\binit\.cc:\d+\] grpc_wait_for_shutdown_with_timeout\(\) timed out"
    rb"|\A(?:gzip: stdout|xz: \(stdout\): Write error): Broken pipe|\bgrappler/optimizers/\w+\.cc:\d+\] "
    rb"|\bmkdir -p failed for path \S*matplotlib|\[repo_utils\.py:\d+\] Error retrieving safetensors: "
    rb"|\AError: connect \w+ \S*/vscode-(?:git|ipc)-|\A[0-9a-f]{4}:(?:err|warn|fixme):\w+:"
    rb"|\Aslurmstepd: error: (?:poll\(\): |common_file_write_uint\d+s: write pid \d+ to \S*/cgroup\.procs "
    rb"|_cgroup_procs_check: failed on path |Cannot write to cgroup\.procs for "
    rb"|Unable to move pid \d+ to init root cgroup |error unlocking cgroup )"
    rb"|\A\S*/git-core/git-remote-https?: symbol lookup error: "
    rb"|\AERROR running (?:scontrol|squeue|sacct) |\Ascontrol_print_job error: "
    rb"|\ANo such comm: [0-9a-f]{32}|\AFailed to detect the name of this notebook, "
    rb"|\AError: no \"\w+\" mailcap rules found for type |\bFailed to load plugin: '\S+: undefined symbol: g_"
    rb"|\AFlashAttention\d is not installed\.|\A\[(?:MAdd|Flops|Memory)\]: \w+ is not supported!"
)
# A page or a port to look at the run, or what is sent to one. The run goes on without it.
_TO_LOOK_AT = re.compile(
    rb"(?i)\b(?:failed|could ?n[o']t|can ?not|unable) (?:to )?(?:start|launch|open|serve|bind) "
    rb"(?:the |a )?(?:\w+ )?(?:web ?server|web ?ui|tensorboard|visuali[sz]er|visuali[sz]ation server"
    rb"|metrics (?:server|exporter|port))\b"
    rb"|\b(?:failed|could ?n[o']t|can ?not|unable) to (?:push|send|export|report|upload|flush|publish) "
    rb"(?:\d+ |the |some )?(?:metrics?|telemetry|spans?|traces)\b"
    rb"|\b(?:metrics?|telemetry):? (?:push|upload|export|report|flush)(?:ing)? (?:failed|error)\b"
    rb"|\bgiving up on (?:the )?(?:metrics|telemetry)\b|\bexport metrics to agent failed: "
)
# diffusers then reads weights of another kind, or raises.
_OTHER_WEIGHTS = re.compile(
    rb"\bAn error occurred while trying to fetch .{1,400}: Error no file named \S+\.safetensors found in "
)
# A link that was being closed was closed already.
_CLOSED = re.compile(
    rb"(?i)\b(?:clos(?:e|ing) failed|(?:failed|could ?n[o']t|unable) (?:to )?close"
    rb"|error (?:while|when|in) closing)\b"
    rb".{0,60}\b(?:connection ?(?:reset|aborted)|broken ?pipe|not connected|already closed)"
)
# Some writers end a run and log it as information, for example TensorFlow's coordinator.
_ENDS_ALL = re.compile(rb"\bError reported to Coordinator: ")
# The line itself says that its writer goes on.
_GOES_ON = re.compile(
    rb"(?i)(?:\b|(?<=[)\]}'\"`/%.]))(?:retrying in \d|trying (?:batch size|again in)"
    rb"|recovering from (?:connection|http) error \["  # ECMWF's client, which tries 500 times
    rb"|skipping (?:this |the )?batch|[,;:] skip (?:this|the) (?:batch|step|iteration|update)\b"
    rb"|skipp(?:ed|ing) (?:due to|because)\b"
    rb"|skipping (?:(?:this|the|bad|corrupt(?:ed)?|broken|invalid|unreadable) )*"
    rb"(?:sample|image|file|example|record|row|document|shard|clip|utterance|video)s?"
    rb"(?: ?#?\d| [^\s:]+: |: | \(|[.!]?\s*\Z)"
    rb"|ignoring this choice|will be (?:skipped|ignored)\b"
    rb"|[,;(] ?(?:(?:(?:this|the) )?(?:sample|image|file|record|row|shard|clip) )?"
    rb"(?:skipped|ignored|left out)\b"
    rb"|[,;(] ?(?:skipping|retrying|ignoring|falling back|switching to|substituting|carrying on"
    rb"|going on|moving on|continuing(?= with| anyway|[.!]?\s*\Z)|(?:so )?(?:the )?\w+ (?:goes|went) on"
    rb"|(?:restarting|trying again) in \d+ ?s\w*|(?:the )?training (?:goes on|continues)"
    rb"|taking .{1,60} instead|using (?:the )?cached|(?:starting|training) (?:anew )?from scratch"
    rb"|trying (?:another|the (?:one before|previous|next|older|earlier|other)))\b"
    rb"|[.!;,] (?:(?:skipping|ignoring)(?: (?:it|this|the|that)\b[\w ]{0,24})?[.!]?\s*\Z"
    rb"|(?:falling back|adjusting) to\b"
    rb"|will (?:retry|fall back|skip|ignore|continue)\b"
    rb"|(?:proceeding|continuing) (?:anyway|without|with|to)\b)"
    rb")|\A(?:\[[^\[\]\n]{1,60}\]:?)?[\W\d]{0,40}(?:skip(?:ped|ping)?|ignoring)\b"
    rb"|\*\*\* \[[^\[\]\n]{1,200}\] Error \d+ \(ignored\)"  # make, of a command that may fail
    rb"|\ADoesn't fit on GPU\. "  # a benchmark of transformers, which then measures the next size
)
# Words in brackets on one of several cases: "or None (where the step will be skipped)".
_OF_A_CASE = re.compile(rb"\((?:where|when|if|in which case)\b[^()]*\)")
# A sample of a data set or of what a model wrote, as it was read or printed.
_SAMPLE = re.compile(
    rb"(?i)\A\s{0,8}(?:[\[{].{0,60}?[\"'](?:role|prompt|completion|instruction|conversations|messages|question"
    rb"|answer)[\"']: ?[\"'\[{]|(?:question|answer|prompt|completion): )"
)
# A drill announces the fault that it injects. The processes that it strikes report what follows.
_DRILL = re.compile(rb"\A[\W\d]{0,40}(?:\w+ ){0,2}[Ii]njection: ")


# A loop that caught the failure above leaves this batch out and takes the next, or tries a smaller one.
_LEFT_OUT = re.compile(
    rb"(?i)[^\n]{0,200}?(?:\bskipp(?:ing|ed) (?:this |the )?batch\b"
    rb"|\b(?P<again>"
    rb"re-?trying (?:\w+ (?:\d+ )?)?(?:with|at) (?:a )?(?:smaller )?(?:(?:micro[ -]?)?batch\b|\d)"
    rb"|(?:carrying|going) on (?:without|anyway)\b|training (?:goes on|continues)\b|status \d+, ignored\b"
    rb"|relying on driver to perform ptx compilation"  # TensorFlow, of ptxas that did not run
    rb"|trying to resume download"  # the Hub's client, of a download that broke off
    rb"|silently ignoring the lookup\b"  # PEFT, of a base model that it may not read
    rb"|\bre-?trying(?:\.{1,3})?[ \t]*(?:\n|\Z)|\bstarting (?:anew |over )?from scratch\b"
    rb"|\b(?:using (?:an? |the )?(?:\w+ )?fallback|falling back (?:to|on))\b"
    rb"|may or may not result in some failure\b)"  # SLURM, of memory that was full once
    rb"|(?P<made>\*\*\* \[[^\[\]\n]{1,200}\] Error \d+ \(ignored\)))"
)
_PARTS = (
    b"skipp",
    b"silently",
    b"trying ",
    b"trying.",
    b"trying\n",
    b"from scratch",
    b"may or may not",
    b"ing on ",
    b"training ",
    b", ignored",
    b"(ignored)",
    b"relying on",
    b"fallback",
    b"falling back",
)
_LEFT_OUT_WITHIN = 210  # bytes of the next line that hold its words
_BREAKS = re.compile(rb"\n[^\n]{0,80}?Traceback \(most recent call last\)")

_FAILURE = re.compile(
    rb"(?i)\b(?:fail(?:ed|ure|s|ing)?|errors?|exceptions?|could ?n[o']t|can ?not|can't|unable)\b"
)
_DEBUGS = re.compile(rb"(?i:DEBUG)|\bD\d{4} |\[NeMo D ")
_WARNS = re.compile(rb"(?i:WARN)|\bW(?:\d{3,4})? |\bW\d{4} |\[W\]|\[W[ \d]|\[NeMo W")

_ECHO = re.compile(rb"\[repeated \d+x across cluster\]")


def _level(line: bytes) -> re.Match[bytes] | None:
    return level_of_record(line) or _LEVEL.search(line[:_HEAD], grade(line))


def is_warning(line: bytes) -> bool:
    """Whether a quiet line calls itself a warning, not information."""
    found = _level(line)
    return found is not None and found["quiet"] is not None and _WARNS.search(found[0]) is not None


def stands_aside(line: bytes) -> bool:
    """Whether a line of this writer never ends a run.

    It is from a service or port beside the run, or an autotuner's trial. It may also be a sample of the data
    or a drill's announcement.
    """
    head = line[:_HEAD]
    words = head[front(head) :]
    return (
        any(pattern.match(words) for pattern in (_WANDB, _TRACKER, _DRILL, _SAMPLE))
        or _AUTOTUNER.search(head) is not None
        or _NCCL_RAS.search(head) is not None
        or _UNREAD.search(head) is not None
        or _TOOL_ENDED.search(line) is not None
        or _CLOSED.search(head) is not None
        or _OTHER_WEIGHTS.search(line) is not None
        or _NEEDLESS.search(head) is not None
        or is_about_a_view(head)
    )


def is_about_a_view(line: bytes) -> bool:
    """Whether the line is about a page or a port to look at the run, or about what is sent to one."""
    return _TO_LOOK_AT.search(line[:_HEAD]) is not None


def goes_on(line: bytes) -> bool:
    """Whether the line itself says that its writer goes on: it skips, tries again, or takes another way."""
    if _GOES_ON.search(line) is None:
        return False
    return b"(" not in line or _GOES_ON.search(_OF_A_CASE.sub(b"", line)) is not None


def got_over(line: bytes) -> bool:
    """Whether the line tells of a failure, and says that its writer goes on."""
    return goes_on(line) and _FAILURE.search(line) is not None


def is_debugged_failure(line: bytes) -> bool:
    """Whether a debug record tells of a failure. A writer who could not go on would not hide it there."""
    if _DEBUGS.search(line) is None or _FAILURE.search(line) is None:
        return False
    found = _level(line)
    return found is not None and found["quiet"] is not None and _DEBUGS.search(found[0]) is not None


def is_quiet(line: bytes) -> bool:
    """Whether the line reports no failure by its writer's own account.

    It is a warning, information or less, a line that `stands_aside`, or a fault that its writer gets over.
    """
    return _is_quiet(form_of(line)) if len(line) <= LONGEST_FORM else _is_quiet.__wrapped__(line)


@lru_cache(maxsize=1024)
def _is_quiet(line: bytes) -> bool:
    if stands_aside(line) or goes_on(line):
        return True
    found = _level(line)
    return found is not None and found["quiet"] is not None and _ENDS_ALL.search(line[:_HEAD]) is None


def is_echo(line: bytes) -> bool:
    """Whether Ray printed the line for others like it. It printed the first of them at once."""
    return _ECHO.search(line) is not None


def was_left_out(text: bytes, end: int) -> bool:
    """Whether the loop got over the failure in the line that ends at `end`.

    The next line must report that the loop tries another size, or that it leaves the batch out. Behind the
    latter no traceback may begin. Lines after `text` are unknown.
    """
    end += text.startswith(b"\n\n", end)  # a blank line may stand between
    near = text[end + 1 : end + 1 + _LEFT_OUT_WITHIN].lower()
    if not any(part in near for part in _PARTS):
        return False
    left_out = _LEFT_OUT.match(text, end + 1)
    if left_out is None:
        return False
    # The traceback of the next try, or of make's next command, is its own.
    if left_out["again"] is not None or left_out["made"] is not None:
        return True
    return _BREAKS.match(text, text.find(b"\n", left_out.end())) is None
