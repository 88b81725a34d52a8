"""A server ends with the process that started it, however that ends, and says what became of it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from midwatch.agents.local.embedded.errors import ServerFailed
from midwatch.agents.local.embedded.process import supervisor
from midwatch.agents.local.embedded.process.child import Child, clean_environment
from processes import alive, wait_for

SLEEP = ["/bin/sh", "-c", "echo hello; exec sleep 600"]
DEAF = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(15, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)",
]

# A process that starts a server, tells both pids and waits; the last argument says what else it does.
OWNER = """
import os, sys
from pathlib import Path
from midwatch.agents.local.embedded.process.child import Child
child = Child("toy", ["/bin/sleep", "600"], directory=Path(sys.argv[1]), log=Path(sys.argv[1], "log"))
fork = os.fork() if sys.argv[2] == "fork" else 0
if sys.argv[2] == "fork" and not fork:
    sys.stdin.read()
    os._exit(0)
print(child.pid, child._supervisor.pid, fork, flush=True)
if sys.argv[2] == "end":
    sys.exit()
sys.stdin.read()
"""

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def toy(tmp_path: Path, command: list[str] = SLEEP) -> Child:
    return Child("toy", command, directory=tmp_path, log=tmp_path / "log")


def owner(tmp_path: Path, deed: str) -> tuple[subprocess.Popen[bytes], int, int, int]:
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path), deed], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    server, above, fork = map(int, process.stdout.readline().split())
    return process, server, above, fork


def finish(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.communicate()


def test_stop_ends_the_server_and_its_supervisor(tmp_path: Path) -> None:
    child = toy(tmp_path)
    assert alive(child.pid)
    assert child.exit_status is None
    child.stop()
    assert not alive(child.pid)
    assert child.exit_status == 128 + signal.SIGTERM
    child.stop()


def test_kill_is_a_crash_of_the_server_itself(tmp_path: Path) -> None:
    child = toy(tmp_path)
    child.kill()
    assert not alive(child.pid)
    assert child.exit_status == 128 + signal.SIGKILL


def test_a_stopped_server_is_woken_to_end(tmp_path: Path) -> None:
    child = toy(tmp_path)
    os.kill(child.pid, signal.SIGSTOP)
    child.stop()
    assert child.exit_status == 128 + signal.SIGTERM


def test_kill_dash_nine_of_the_owner_ends_the_server(tmp_path: Path) -> None:
    process, server, above, _ = owner(tmp_path, "wait")
    assert alive(server)
    finish(process)
    wait_for(lambda: not alive(server) and not alive(above), "server and supervisor gone")


def test_the_end_of_the_owner_waits_for_the_end_of_the_server(tmp_path: Path) -> None:
    process, server, above, _ = owner(tmp_path, "end")
    process.wait(30)
    assert not alive(server)
    assert not alive(above)
    process.communicate()


def test_kill_dash_nine_of_the_supervisor_ends_the_server(tmp_path: Path) -> None:
    process, server, above, _ = owner(tmp_path, "wait")
    os.kill(above, signal.SIGKILL)
    wait_for(lambda: not alive(server), "server gone")
    finish(process)


def test_kill_dash_nine_of_owner_and_supervisor_at_once_ends_the_server(tmp_path: Path) -> None:
    process, server, above, _ = owner(tmp_path, "wait")
    os.kill(above, signal.SIGKILL)
    finish(process)
    wait_for(lambda: not alive(server), "server gone")


def test_a_server_that_died_with_its_supervisor_is_not_sought_by_a_pid_that_another_process_has_by_now(
    tmp_path: Path,
) -> None:
    child = toy(tmp_path)
    os.kill(child._supervisor.pid, signal.SIGKILL)
    wait_for(lambda: not alive(child.pid), "server gone")
    # Starts are known to a hundredth of a second. No pid comes round within one.
    ticks = os.sysconf("SC_CLK_TCK")
    wait_for(
        lambda: time.clock_gettime(time.CLOCK_BOOTTIME) * ticks >= (child._begun or 0) + 1, "a later start"
    )
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as bystander:
        child.pid = bystander.pid
        child.stop()
        assert bystander.communicate(b"it lives")[0] == b"it lives"


def test_a_fork_of_the_owner_does_not_keep_the_server_alive(tmp_path: Path) -> None:
    process, server, above, fork = owner(tmp_path, "fork")
    process.kill()
    process.wait()
    wait_for(lambda: not alive(server) and not alive(above), "server and supervisor gone")
    assert alive(fork)
    process.communicate()
    wait_for(lambda: not alive(fork), "fork gone")


def test_the_end_of_the_thread_that_started_it_does_not_end_the_server(tmp_path: Path) -> None:
    made: list[Child] = []
    thread = threading.Thread(target=lambda: made.append(toy(tmp_path)))
    thread.start()
    thread.join()
    [child] = made
    other = subprocess.run(["/bin/true"], check=False)
    assert other.returncode == 0
    assert alive(child.pid)
    assert child.exit_status is None
    child.stop()


def test_ctrl_c_does_not_reach_the_server(tmp_path: Path) -> None:
    child = toy(tmp_path)
    assert os.getsid(child.pid) != os.getsid(0)
    child.stop()


def test_a_descriptor_to_keep_open_is_open_until_the_server_is_gone(tmp_path: Path) -> None:
    read, write = os.pipe()
    os.set_blocking(read, False)
    child = Child("toy", SLEEP, directory=tmp_path, log=tmp_path / "log", keep_open=(write,))
    os.close(write)
    with pytest.raises(BlockingIOError):
        os.read(read, 1)
    child.stop()
    assert os.read(read, 1) == b""
    os.close(read)


def test_a_program_that_is_not_there_is_an_error_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(ServerFailed, match="/nowhere/server"):
        toy(tmp_path, ["/nowhere/server"])
    assert "No such file" in (tmp_path / "log").read_text()


def test_what_the_server_says_is_in_the_log_below_the_start(tmp_path: Path) -> None:
    child = toy(tmp_path, ["/bin/sh", "-c", "echo out; echo err >&2; exit 3"])
    wait_for(lambda: child.exit_status is not None, "the toy has ended")
    assert child.exit_status == 3
    first, *rest = (tmp_path / "log").read_text().splitlines()
    assert first.startswith("=== start ")
    assert sorted(rest) == ["err", "out"]
    child.stop()


def test_options_that_change_every_java_do_not_reach_ours() -> None:
    given = {"JAVA_TOOL_OPTIONS": "-Xmx9g", "CLASSPATH": "x", "PATH": "/bin", "LC_ALL": "C"}
    assert clean_environment(given) == {"PATH": "/bin", "LC_ALL": "C.UTF-8"}


def supervise(tmp_path: Path, limit: int, grace: float, command: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-I", "-S", supervisor.__file__, tmp_path / "log", str(limit), str(grace), *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )


def test_a_server_that_does_not_listen_is_killed_after_the_grace(tmp_path: Path) -> None:
    process = supervise(tmp_path, 1 << 20, 0.2, DEAF)
    log = tmp_path / "log"
    wait_for(lambda: log.exists() and "deaf" in log.read_text(), "it ignores SIGTERM")
    process.communicate(timeout=30)
    assert process.returncode == 128 + signal.SIGKILL


def test_a_log_that_is_full_is_moved_aside_while_the_server_runs(tmp_path: Path) -> None:
    talk = "i=0; while [ $i -lt 30000 ]; do echo line $i; i=$((i+1)); done; echo last"
    process = supervise(tmp_path, 4096, 1, ["/bin/sh", "-c", talk])
    process.wait(60)
    process.communicate()
    assert (tmp_path / "log").read_text().endswith("last\n")
    assert (tmp_path / "log.1").exists()
    assert not (tmp_path / "log.1.1").exists()
    assert (tmp_path / "log").stat().st_size < 4096 + 65536


def test_a_log_that_cannot_be_written_does_not_stop_the_server(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    process = supervise(tmp_path, 4096, 1, ["/bin/sh", "-c", "echo lost; exit 7"])
    assert process.wait(30) == 7
    process.communicate()
