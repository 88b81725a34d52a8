"""What Metal, Gaudi, simulators, pools and clouds say of an end, each beside its kin of runs that go on."""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

STEPS = "Epoch 3 step 40/900 loss 2.31\nEpoch 3 step 50/900 loss 2.30\n"
MORE = "Epoch 3 step 60/900 loss 2.29\nEpoch 3 step 70/900 loss 2.29\nEpoch 3 step 80/900 loss 2.28\n"
METAL = "[METAL] Command buffer execution failed: "
LIBCXX = "libc++abi: terminating due to uncaught exception of type std::runtime_error: "
HELD = "Job in status 2 put on hold by SYSTEM_PERIODIC_HOLD due to memory usage 77000."
NRT = "2026-03-02 11:52:40.000118:  4188  ERROR ||NEURON_CC_WRAPPER||: "
RING = "2026-03-02 11:52:40.118290: E tensorflow/core/common_runtime/ring_alg.cc:7] Aborting RingReduce with "
CRASH = "2026-03-02T11:52:40Z [52ms] [Warning] [carb.crashreporter-breakpad.plugin] "
ASSERTED = (
    "terminate called after throwing an instance of 'toy::Exception'\n  what():  in void gpuAssert(toy)\n"
)
DRIVER = "GPUassert: driver shutting down toy.cu 46"
EGL = "Platform::WindowlessEglApplication::"
SPOT = '{"level":"warn","message":"Spot interruption payload received: {\\"action\\":\\"terminate\\"}"}'
ENDINGS = [
    (f"{LIBCXX}{METAL}Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)", "oom"),
    ("RuntimeError: [metal::malloc] Attempting to allocate 77 bytes which is greater than the toy", "oom"),
    ("RuntimeError: [metal::malloc] Resource limit (77) exceeded.", "oom"),
    ("RuntimeError: [malloc] Unable to allocate 77 bytes.", "oom"),
    (f"{LIBCXX}{METAL}Internal Error (0000000e:Internal Error)", "torch"),
    ("RuntimeError: [jaccl] Recv failed with error code 12", "communication"),
    ("RuntimeError: [ring] Couldn't connect (error: 60)", "communication"),
    ("GPUassert: out of memory toy.cu 77", "oom"),
    ("GPUassert: invalid argument toy.cu 77", "torch"),
    ("[TRT] [E] 2: [toyBuffer.cpp::resize::140] Error Code 2: OutOfMemory (no further information)", "oom"),
    (f"	Error from slot1@n4: {HELD}", "host_oom"),
    ("	Error from slot1@n4: memory usage exceeded request_memory", "host_oom"),
    ("	Job was OOM killed by cgroup memory limit before it could start.", "host_oom"),
    ("	The job exceeded allowed execute duration of 08:00:00", "slurm_failure"),
    ("	Error from slot1@n4: runtime exceeded maximum (7700 seconds)", "slurm_failure"),
    ("	Error from slot1@n4: disk usage exceeded allocated disk", "storage"),
    ("Job 7 is already in terminal state FAILED_CONTROLLER. For more details, run: sky", "slurm_failure"),
    ("Failure reason: Unexpected error occurred: [AssertionError] JobStatus.FAILED_DRIVER", "slurm_failure"),
    ("ResourcesUnavailableError: Failed to provision all possible launchable resources.", "slurm_failure"),
    ('There is no more capacity in the zone "toy-b"; you can try in another zone', "slurm_failure"),
    ("(exit 1) INFO: resources failed with non-zero exit code: toy failed: 1 (exit code 1)", "exception"),
    (SPOT, "preemption"),
    ("Instance is going to be interrupted in 2 minutes. Exiting...", "preemption"),
    ("Connection timed out during banner exchange", "communication"),
    (f"{RING}Cancelled: [_Derived_]Cancelled", "communication"),
    ("GCS may have been killed. It's either GCS is terminated by `ray stop` or toy", "communication"),
    ("toy.bash: line 124: /bin/mv: Input/output error", "storage"),
    ("/toy/toy.sh: /bin/bash: bad interpreter: Input/output error", "storage"),
    ("toy.sh: line 7: 4188 Floating point exceptionpython train.py", "native_crash"),
    (f"{CRASH}[crash]  buildHash = 'toy'", "native_crash"),
    (f"{NRT}Got a cached failed neff at /toy/model.neff. Will skip compilation", "exception"),
    ("E39999  Aicpu kernel execute failed, device_id=0, stream_id=12, task_id=2.[FUNC:Toy]", "torch"),
    ("Core halted unexpectedly:", "torch"),
    ("[Rank:0] FATAL ERROR :: MODULE:PT_EAGER HCCL: hcclCommInitRank failed", "nccl"),
    ("[Rank:0] FATAL ERROR :: MODULE:PT_TOY the toy is broken", "exception"),
    ("PxgCudaDeviceMemoryAllocator fail to allocate memory 77 bytes!! Result = 2", "oom"),
    (f"{EGL}tryCreateContext(): unable to find CUDA device 0 among 2 EGL devices in total", "config"),
    ("qt.qpa.xcb: could not connect to display", "config"),
    ("Hostfile is not formatted correctly, unable to proceed with training.", "config"),
    ("No slot '7' specified on host 'n4'", "config"),
    ("The system is going down for reboot NOW!", "slurm_failure"),
    ("The system will power off now!", "slurm_failure"),
    ("fish: Job 1, 'python train.py' terminated by signal SIGSEGV (toy)", "native_crash"),
    ("fish: Job 1, 'python train.py' terminated by signal SIGKILL (toy)", "host_oom"),
    ("libc++abi: Pure virtual function called!", "native_crash"),
]


@pytest.mark.parametrize(("last", "error_type"), ENDINGS)
def test_the_last_word_gives_the_failure(watch: Watch, last: str, error_type: str) -> None:
    done = watch(f"{STEPS}{last}\n")
    assert (done.verdict.state, done.verdict.error_type) == ("failed", error_type)
    assert done.verdict.root_line.strip() == last.strip()


@pytest.mark.parametrize(("last", "error_type"), ENDINGS)
def test_a_run_that_trains_on_got_over_it(watch: Watch, last: str, error_type: str) -> None:
    assert error_type
    assert watch(f"{STEPS}{last}\n{MORE}").verdict.state != "failed"


@pytest.mark.parametrize(
    "line",
    [
        "Error: command buffer exited with error status.",
        "Execution of the command buffer was aborted due to an error during execution. toy",
        "request_memory of the job: 4096 MB; memory usage: 77 MB",
        f"{RING}Out of range: End of sequence",
        f"{CRASH}[previous crash] preventing upload of minidump due to user opt-out: 'toy.dmp'",
        f"{CRASH}[crash] crash reporter is on",
        "INFO ||NEURON_CACHE||: Compile cache path: /var/tmp/neuron-compile-cache",
        "[malloc] Able to allocate 77 bytes.",
        "the zone toy-b has more capacity",
        "Job 7 is already in terminal state SUCCEEDED.",
        "allowed execute duration: 08:00:00",
        "[ring] Connected to rank 3",
        f"{EGL} eglQueryDeviceStringEXT(EGLDevice=0): EGL_EXT_device_drm",
        "The system will reboot at Mon 2026-03-02 12:00:00 UTC!",
    ],
)
def test_the_same_library_says_nothing_of_a_failure(watch: Watch, line: str) -> None:
    assert watch(f"{STEPS}{line}\n").verdict.state != "failed"


def test_the_reason_of_a_gpu_assert_stands_above_the_exception_that_carries_it(watch: Watch) -> None:
    done = watch(f"{STEPS}{ASSERTED}GPUassert: out of memory toy.cu 77\nAborted (core dumped)\n")
    assert (done.verdict.error_type, done.decision.action) == ("oom", "stop")
    assert done.verdict.root_line == "GPUassert: out of memory toy.cu 77"


def test_a_driver_that_shuts_down_behind_an_illegal_access_is_not_the_cause(watch: Watch) -> None:
    illegal = "GPUassert: an illegal memory access was encountered toy.cu 83"
    assert watch(f"{STEPS}{illegal}\n{DRIVER}\n").verdict.root_line == illegal


def test_a_cloud_without_resources_is_no_worker_of_tensorflow(watch: Watch) -> None:
    done = watch("sky.exceptions.ResourcesUnavailableError: toy\n")
    assert done.verdict.error_type != "communication"
