"""Errors in the middle of a log that end nothing: a library, a mirror or git says so and the program goes on.

A log that is read while its job runs ends anywhere. So these must raise no alarm right behind their line.
"""

from __future__ import annotations

import pytest

from unit.agents.conftest import Watch

BEGUN = "the toy of 8 parts is built\nreads the shards of the toy corpus\n"
UCX = (
    "[1772445160.118] [n4:4188:f]        vfs_fuse.c:77   UCX  ERROR inotify_add_watch(/tmp) failed:"
    " No space left on device\n"
)
GRPC = "E0302 11:52:40.861840739   12456 ev_epoll1_linux.c:77]     grpc epoll fd: 3\n"
NUMBA = (
    "/toy/geometry.py:76: NumbaWarning: \x1b[1m\n"
    'Compilation is falling back to object mode WITH looplifting enabled because Function "toy" failed\n'
    "There are 2 candidate implementations:\n"
    "      TypingError: Failed in nopython mode pipeline (step: nopython frontend)\n"
)
REFUSED = (
    "<urlopen error [SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: certificate has expired>\n"
)
MIRROR = "Failed to download (trying next):\n" + REFUSED
THC = "THCudaCheck FAIL file=/toy/aten/src/THC/THCGeneral.cpp line=77 error=11 : invalid argument\n"
GIT = "fatal: not a git repository (or any of the parent directories): .git\n"
OWNER = "fatal: detected dubious ownership in repository at '/toy'\n"
CODEC = (
    "Could not load libtorchcodec. Likely causes:\n"
    "[start of libtorchcodec loading traceback]\n"
    "FFmpeg version 7: libavutil.so.59: cannot open shared object file: No such file or directory\n"
    "FFmpeg version 4: /toy/torchcodec/libtorchcodec_core4.so: undefined symbol: _ZNK3toy5wheelEv\n"
    "[end of libtorchcodec loading traceback].\n"
)
READER = "toy reader torchcodec failed, takes torchvision, msg: " + CODEC
BUILT = "7 of 8: {'toy': 7, 'error': 'toys/7.cu(41): error: identifier \"toy\" is undefined'}\n"
SCALED = "".join(
    f"{rank}: Gradient norm: inf\n{rank}: Skipped batch, new scale: 2048.0\n" for rank in range(8)
)


@pytest.mark.parametrize("words", [UCX, GRPC, NUMBA, MIRROR, THC, GIT, OWNER, SCALED, READER, BUILT])
def test_what_its_writer_gets_over_is_no_failure(watch: Watch, words: str) -> None:
    assert watch(BEGUN + words + "the toy is ready\n").verdict.state != "failed"


@pytest.mark.parametrize(
    ("words", "error_type"),
    [
        (UCX.replace("inotify_add_watch(/tmp)", "mmap(/toy)").replace("vfs_fuse.c", "sys.c"), "storage"),
        ("numba.core.errors.TypingError: Failed in nopython mode pipeline\n", "exception"),
        (REFUSED, "communication"),
        (f"RuntimeError: {CODEC}", "import_error"),
        (BUILT.partition("'error': '")[2].removesuffix("'}\n") + "\n", "import_error"),
        (THC.replace("THCGeneral", "THCBlas"), "torch"),
        (
            "fatal: unable to access 'https://toy.org/toy.git/': Could not resolve host: toy.org\n",
            "communication",
        ),
        ("".join(f"step {step} grad norm: inf\n" for step in range(8)), "numerical_instability"),
    ],
)
def test_what_nobody_gets_over_is_one(watch: Watch, words: str, error_type: str) -> None:
    assert watch(BEGUN + words).verdict.error_type == error_type
