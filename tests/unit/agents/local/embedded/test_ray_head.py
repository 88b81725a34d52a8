"""A head counts as up once its node has joined. One that dies before is started anew, one later is missed.

The program `ray` is a stand-in here: Ray's own start gives up after 30 s, which only a busy machine shows.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from midwatch.agents.local.demo import scenario
from midwatch.agents.local.demo.scenario import Options
from midwatch.agents.local.demo.script import RUN, Stage
from midwatch.agents.local.embedded.errors import ServerFailed
from midwatch.agents.local.embedded.ray_head import EmbeddedRay
from midwatch.streams.errors import MidwatchError
from midwatch.streams.records.identity import job_name
from midwatch.streams.services.ray_jobs import call
from midwatch.streams.settings.schema import Settings
from processes import wait_for

# As Ray does it: the dashboard lists jobs before the node has joined, and `ray start` ends if it never joins.
HEAD = """#!{python}
import http.server, json, os, sys, threading, time
from pathlib import Path

here = Path({here!r})
with (here / "starts").open("a") as notes:
    notes.write(json.dumps([os.environ.get("RAY_worker_niceness"), *sys.argv[1:]]) + "\\n")
start = len((here / "starts").read_text().splitlines())
joins = start > {deaths}
asked = threading.Event()

class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        nodes = [{{"state": "ALIVE", "is_head_node": True}}] if joins else []
        listed = {{"result": True, "data": {{"result": {{"result": nodes}}}}}}
        body = json.dumps(listed if "/nodes" in self.path else []).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        asked.set()

    def log_message(self, *words):
        pass

port = next(int(word.partition("=")[2]) for word in sys.argv if word.startswith("--dashboard-port="))
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Answers)
threading.Thread(target=server.serve_forever, daemon=True).start()
if not joins:
    asked.wait()
    print("The current node timed out during startup.", flush=True)
    os._exit(1)
while not (here / "die").exists():
    time.sleep(0.05)  # between two looks at the file
"""

Program = Callable[[int], None]


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Puts a `ray` on PATH whose first starts, as many as it is given, die before their node has joined."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def put(deaths: int) -> None:
        file = folder / "ray"
        file.write_text(HEAD.format(python=sys.executable, here=str(tmp_path), deaths=deaths))
        file.chmod(0o755)

    return put


@pytest.fixture
def head(program: Program, tmp_path: Path) -> Iterator[EmbeddedRay]:
    program(1)
    made = EmbeddedRay(tmp_path / "ray.log")
    yield made
    made.stop()


def starts(directory: Path) -> list[list[str]]:
    return [json.loads(line) for line in (directory / "starts").read_text().splitlines()]


def test_a_head_whose_node_never_joined_is_started_anew_though_its_dashboard_answered(
    head: EmbeddedRay, tmp_path: Path
) -> None:
    assert len(starts(tmp_path)) == 2
    head.check()
    assert call(head.head, "GET", "/api/jobs/", timeout=5).status == 200


@pytest.mark.usefixtures("head")
def test_what_runs_on_it_has_the_same_priority_as_the_watch_beside_it(tmp_path: Path) -> None:
    """By default Ray gives its workers the niceness 15: on a busy machine they would hardly run."""
    assert {niceness for niceness, *_ in starts(tmp_path)} == {"0"}


def test_a_head_that_died_later_is_named_with_its_log(head: EmbeddedRay, tmp_path: Path) -> None:
    (tmp_path / "die").touch()
    wait_for(lambda: call(head.head, "GET", "/", timeout=5).status == 0, "it has ended")

    wait_for(lambda: _refuses(head.check), "its end is seen")
    with pytest.raises(ServerFailed, match=r"ray\.log: the Ray head ended"):
        head.check()


def test_the_demo_names_the_end_of_its_head_and_not_what_came_of_it(program: Program, tmp_path: Path) -> None:
    program(0)
    with pytest.raises(ServerFailed, match="the Ray head ended"):
        _demo_whose_head_dies(tmp_path)


def _demo_whose_head_dies(directory: Path) -> None:
    stage = Stage(directory, job_name(RUN, cluster="ray", user="ann"))
    options = Options(directory, cluster="ray")
    with scenario._cluster(stage, Settings(), options, lambda _: None) as (placed, check):
        assert any(each.startswith("--set=ray.address=http://127.0.0.1:") for each in placed.settings)
        check()
        (directory / "die").touch()
        wait_for(lambda: _refuses(check), "its end is seen")
        raise MidwatchError("ray does not show the job within 60 s")


def _refuses(check: Callable[[], None]) -> bool:
    try:
        check()
    except ServerFailed:
        return True
    return False


def test_a_head_that_never_comes_up_is_no_endless_wait(program: Program, tmp_path: Path) -> None:
    program(99)
    with pytest.raises(ServerFailed, match="did not come up"):
        EmbeddedRay(tmp_path / "ray.log")
    assert len(starts(tmp_path)) == 3
