"""Whether an end may pass: what the root and the steps made show, and what nothing shows."""

from __future__ import annotations

import pytest

from midwatch.agents.detect.diagnosis.transience import HARDLY_BEGUN
from midwatch.agents.replay.scheduler_record import from_exit_code
from unit.agents.conftest import Watch
from unit.agents.detect.diagnosis.test_cascades import frames
from unit.agents.detect.diagnosis.test_scheduler_word import CONTRADICTS, STEPS, Judge, judge

__all__ = ["judge"]

BARRIER = "RuntimeError: Rank 3 failed to pass monitoredBarrier in 1800000 ms\n"
CONNECT = (
    "n1:77:78 [0] misc/socket.cc:456 NCCL WARN socketStartConnect: Connect to 10.0.0.9<46035> failed : "
    "Connection timed out\n"
)


@pytest.mark.parametrize(
    ("raised", "action"),
    [
        ("RuntimeError: the toy went sideways", "hold"),
        ("toy.errors.FlimflamError: gizmo 4", "hold"),
        ("OSError: [Errno 95] Operation not supported", "hold"),
        ("KeyError: 'wheels'", "stop"),
        ("TypeError: drive() takes 1 positional argument but 2 were given", "stop"),
        ("FileExistsError: [Errno 17] File exists: '/toy/out'", "stop"),
    ],
)
def test_only_an_exception_for_a_mistake_is_called_permanent(watch: Watch, raised: str, action: str) -> None:
    done = watch(STEPS + frames(raised) + "\n")
    assert (done.verdict.family, done.decision.action) == ("code", action)
    assert (done.verdict.transient is False) == (action == "stop")


REFUSED = frames("ConnectionRefusedError: [Errno 111] Connection refused") + "\n"


NOT_READ = frames("OSError: [Errno 5] Input/output error") + "\n"


@pytest.mark.parametrize("line", [BARRIER, CONNECT, REFUSED, NOT_READ])
def test_a_link_that_had_carried_steps_may_pass(watch: Watch, line: str) -> None:
    assert watch(STEPS + line).decision.action == "restart"
    assert watch(line).decision.action == "hold"


@pytest.mark.parametrize(
    "line",
    [
        "rsync: connection unexpectedly closed (0 bytes received so far) [sender]",
        "rclone: Failed to copy: connection reset by peer",
        "upload failed: ./toys to s3://toys/7 Connection reset by peer",
        "cp: error writing '/mnt/toys/x': Stale file handle",
        "mv: cannot move 'x' to '/mnt/y': Transport endpoint is not connected",
    ],
)
def test_what_a_copying_tool_says_behind_the_steps_may_follow_a_good_end(watch: Watch, line: str) -> None:
    done = watch(f"{STEPS}{line}\n")
    assert (done.verdict.state, done.verdict.root_line, done.decision.action) == ("failed", line, "hold")
    assert "see whether the training had ended" in done.decision.reason
    fetched = "curl: (56) Recv failure: Connection reset by peer"
    assert watch(f"{STEPS}{fetched}\n").decision.action == "restart"


STORE = (
    'botocore.exceptions.EndpointConnectionError: Could not connect to the endpoint URL: "http://{}/toys/7"\n'
)


@pytest.mark.parametrize("address", ["localhost:9000", "127.0.0.1:9000", "[::1]:9000"])
def test_a_service_of_this_machine_that_never_answered_is_not_waited_for(watch: Watch, address: str) -> None:
    assert watch(STORE.format("toys.example.org")).decision.action == "restart"
    assert watch(STORE.format(address)).decision.action == "hold"
    assert watch(STEPS + STORE.format(address)).decision.action == "restart"
    late = f"requests.exceptions.HTTPError: 503 Server Error: Service Unavailable for url: http://{address}/toys\n"
    assert watch(late).decision.action == "restart"


GRPC = (
    "grpc._channel._InactiveRpcError: <_InactiveRpcError of RPC that terminated with:\n"
    "\tstatus = StatusCode.{}\n"
    '\tdetails = "the toy did not answer"\n>'
)
POOL = "requests.exceptions.{}: HTTPSConnectionPool(host='{}', port=443): {} "


@pytest.mark.parametrize(
    "raised",
    [
        GRPC.format("UNAVAILABLE"),
        POOL.format("ConnectionError", "toy", "Max retries exceeded with url: /toy"),
        "TimeoutError: [Errno 110] Connection timed out",
        "OSError: [Errno 113] No route to host",
        "openai.InternalServerError: Error code: 503 - {'error': 'the toy is busy'}",
        "kafka.errors.NoBrokersAvailable: NoBrokersAvailable",
        "pymongo.errors.ServerSelectionTimeoutError: 10.0.0.9:27017: timed out",
        "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>",
        "requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/toy",
        "torch.distributed.DistNetworkError: Connection reset by peer",
    ],
)
def test_a_service_that_is_away_after_steps_may_pass(watch: Watch, raised: str) -> None:
    done = watch(STEPS + frames(raised) + "\n")
    assert (done.verdict.family, done.verdict.transient, done.decision.action) == ("comms", True, "restart")
    assert watch(frames(raised) + "\n").decision.action == "hold", (
        "before any step it may never have been there"
    )


@pytest.mark.parametrize(
    "raised",
    [
        POOL.format("ReadTimeout", "huggingface.co", "Read timed out. (read timeout=10)"),
        POOL.format("ReadTimeout", "toy", "Read timed out. (read timeout=10)"),
        "httpx.ReadTimeout: The read operation timed out",
        "aiohttp.client_exceptions.ServerDisconnectedError: Server disconnected",
    ],
)
@pytest.mark.parametrize("before", ["", STEPS])
def test_a_service_that_was_reached_and_gave_no_answer_may_pass(
    watch: Watch, raised: str, before: str
) -> None:
    done = watch(before + frames(raised) + "\n")
    assert (done.verdict.family, done.verdict.transient, done.decision.action) == ("comms", True, "restart")


@pytest.mark.parametrize(
    "error",
    [
        "{ [Toy box error: the toys are gone]\n  cause: 'Send the toy failed, http code: 502' }",
        "     - Error: socket hang up",
    ],
)
def test_a_service_that_did_not_answer_a_program_in_node_may_pass(watch: Watch, error: str) -> None:
    done = watch(f"the toys are handed in\n{error}\n")
    assert (done.verdict.error_type, done.decision.action) == ("communication", "restart")
    assert done.verdict.root_line.strip() == error.splitlines()[-1].strip()


@pytest.mark.parametrize(
    "raised",
    [
        GRPC.format("PERMISSION_DENIED"),
        "urllib.error.URLError: <urlopen error [Errno -2] Name or service not known>",
        POOL.format("SSLError", "toy", "Max retries exceeded (certificate verify failed)"),
        "requests.exceptions.HTTPError: 404 Client Error: Not Found for url: https://toy.example.org",
        "requests.exceptions.HTTPError: 500 Server Error: Internal Server Error for url: https://toy.example.org",
        "ssh: Could not resolve hostname n4: Temporary failure in name resolution",
    ],
)
def test_an_address_or_a_right_that_is_wrong_does_not_pass(watch: Watch, raised: str) -> None:
    assert watch(STEPS + frames(raised) + "\n").decision.action != "restart"


def test_what_a_tool_of_the_script_does_not_reach_says_nothing_of_the_training(watch: Watch) -> None:
    line = "curl: (7) Failed to connect to toy.example.org port 443: Connection refused\n"
    assert watch(STEPS + line).decision.action == "hold"
    assert watch(STEPS + REFUSED).decision.action == "restart", "the training's own connection"


def test_a_configuration_that_carried_steps_does_not_keep_a_peer_away(watch: Watch) -> None:
    line = (
        "n1:77:78 [0] NCCL WARN NET/OFI Request 0x55 completed with error: err: 113, "
        "prov_errno: 15 (Unreachable remote - never received a response)\n"
    )
    assert watch(line).decision.action == "stop"
    assert watch(STEPS + line).decision.action == "hold"


DIED = "(raylet) A worker died or was killed while executing a task by an unexpected system error.\n"
ACTOR = frames("ray.exceptions.RayActorError: The actor died unexpectedly before finishing this task.") + "\n"


@pytest.mark.parametrize("notices", [DIED + ACTOR, ACTOR + DIED, DIED])
def test_rays_notices_of_one_death_mean_the_same_in_either_order(watch: Watch, notices: str) -> None:
    done = watch(STEPS + notices)
    assert (done.verdict.error_type, done.decision.action) == ("ray_actor_died", "restart")
    raised = watch(STEPS + notices + frames("KeyError: 'wheels'", prefix="(Toy pid=77) ") + "\n")
    assert raised.decision.action == "stop", "what killed it stands there"


def test_a_notice_of_the_raylet_alone_before_any_step_shows_nothing(watch: Watch) -> None:
    assert watch(DIED).decision.action == "hold"


def test_a_card_of_the_fabric_that_refuses_shows_nothing_that_passes(watch: Watch) -> None:
    refused = "libfabric:77:17::cxi:core:cxip_toy():7<warn> n1: cxip_alloc_toy failed: -28, No space left\n"
    assert watch(STEPS + refused).decision.action == "hold"


def test_an_exit_code_of_zero_behind_a_failure_is_no_success(judge: Judge) -> None:
    short = STEPS.replace("/ 900", "/ 90000")
    done = judge(from_exit_code(0), short + CONTRADICTS)
    assert (done.verdict.state, done.verdict.mode, done.decision.action) == ("failed", "crash", "stop")
    assert "success" not in done.decision.reason


def test_a_bus_error_of_a_node_that_failed_is_its_last_word(watch: Watch) -> None:
    broke = "/spool/slurmd/job77/slurm_script: line 20:    78 Bus error               python train.py\n"
    failed = watch(STEPS + broke + "srun: error: Node failure on n7\n")
    assert (failed.verdict.error_type, failed.decision.action) == ("slurm_failure", "restart")
    assert watch(STEPS + broke).verdict.error_type == "host_oom"


def test_a_thread_that_aborts_while_python_ends_is_no_root(watch: Watch) -> None:
    aborted = "terminate called without an active exception\n"
    raised = frames("KeyError: 'wheels'") + "\n"
    assert watch(aborted * 3 + raised).verdict.root_line == "KeyError: 'wheels'"
    assert watch(aborted).verdict.family == "code"


def test_a_server_that_somebody_may_have_interrupted_is_held(watch: Watch) -> None:
    done = watch("step 1 loss 2.0\nstep 2 loss 1.9\nKeyboardInterrupt: terminated\n")
    assert (done.verdict.error_type, done.decision.action) == ("cancelled", "hold")


CAUGHT = (
    "[rank3]:[E302 11:52:40.1 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective operation "
    "timeout: WorkNCCL(SeqNum={at}, OpType=ALLREDUCE, NumelIn=8, NumelOut=8, Timeout(ms)=90000) ran for "
    "90041 milliseconds before timing out.\n"
)
ONE_STEP = "{'loss': 0.71, 'learning_rate': 4e-06, 'epoch': 0.0}\n"


@pytest.mark.parametrize(
    ("work", "at", "action"),
    [
        (ONE_STEP, 37, "hold"),
        ("step: 7 loss: 2.5\n", 99, "hold"),
        (ONE_STEP, 4188, "restart"),
        (ONE_STEP, 100, "restart"),
        ("step: 10 loss: 2.5\n", 37, "restart"),
    ],
)
def test_a_collective_among_the_first_of_its_group_shows_that_hardly_anything_worked(
    watch: Watch, work: str, at: int, action: str
) -> None:
    done = watch(work + CAUGHT.format(at=at))
    assert (done.verdict.error_type, done.decision.action) == ("nccl_timeout", action)
    assert (HARDLY_BEGUN in done.decision.reason) is (action == "hold")


@pytest.mark.parametrize(
    ("work", "words", "action"),
    [
        (STEPS, "RuntimeError: CUDA error: unspecified launch failure", "restart"),
        ("", "RuntimeError: CUDA error: unspecified launch failure", "hold"),
        (STEPS, "RuntimeError: CUDA error: an illegal memory access was encountered", "stop"),
    ],
)
def test_a_kernel_that_ended_for_no_known_reason_behind_good_steps_may_pass(
    watch: Watch, work: str, words: str, action: str
) -> None:
    done = watch(work + frames(words) + "\n")
    assert (done.verdict.error_type, done.decision.action) == ("torch", action)


@pytest.mark.parametrize(
    ("work", "words", "action"),
    [
        ("step: 7 loss: 2.5\n", "RuntimeError: CUDA error: unknown error", "restart"),
        ("", "RuntimeError: CUDA error: unknown error", "hold"),
        ("step: 7 loss: 2.5\n", "RuntimeError: CUDA error: device not ready", "hold"),
    ],
)
def test_a_card_that_carried_steps_was_lost_and_another_may_carry_on(
    watch: Watch, work: str, words: str, action: str
) -> None:
    done = watch(work + frames(words) + "\n")
    assert (done.verdict.error_type, done.decision.action) == ("hardware", action)
