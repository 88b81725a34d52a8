"""docker-compose.yml is valid, pinned, and starts commands that exist."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import json
import os
import re
import secrets
import shlex
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from jsonschema import Draft202012Validator

from house.compose import image_environment
from house.tree import ROOT
from midwatch.agents.local.embedded.stack import Endpoints
from midwatch.streams.settings.file import load_settings
from midwatch.streams.settings.reader import OTHER_VARIABLES, leaves, variable_name
from midwatch.streams.telemetry.start import scrape_address

PINNED = re.compile(r"[a-z0-9./-]+:v?[0-9]+\.[0-9]+\.[0-9]+(-[a-z0-9.-]+)?")

Document = dict[str, Any]


@pytest.fixture(scope="module")
def compose() -> Document:
    document = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def schema() -> Draft202012Validator:
    """The schema of the Compose specification, as check-jsonschema carries it.

    Only its data is read: its code needs a newer click than Faust allows.
    """
    carrier = importlib.metadata.distribution("check-jsonschema")
    path = Path(str(carrier.locate_file("check_jsonschema/builtin_schemas/vendor/compose-spec.json")))
    return Draft202012Validator(json.loads(path.read_text(encoding="utf-8")))


def test_it_is_valid_by_the_compose_specification(compose: Document) -> None:
    assert [f"{error.json_path}: {error.message}" for error in schema().iter_errors(compose)] == []


def test_the_schema_would_see_a_mistake(compose: Document) -> None:
    broken = compose | {"services": {"kafka": compose["services"]["kafka"] | {"imagee": "x"}}}
    assert not schema().is_valid(broken)


def test_it_has_the_whole_chain(compose: Document) -> None:
    assert compose["services"].keys() == {
        "kafka", "redis", "topics", "match", "detect", "decide", "executor", "messages", "job",
        "trace", "collector", "prometheus", "alertmanager", "loki", "tempo", "grafana",
    }  # fmt: skip


def test_every_image_is_pinned_by_its_version(compose: Document) -> None:
    images = {service["image"] for service in compose["services"].values()}
    bases = re.findall(r"^FROM (\S+:\S+)", (ROOT / "Dockerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert bases
    assert [image for image in (*images, *bases) if not PINNED.fullmatch(image)] == []


def test_kafka_is_the_version_that_the_embedded_stack_runs(compose: Document) -> None:
    locks = list((ROOT / "agents").rglob("*jars*.lock"))
    (lock,) = locks
    version = compose["services"]["kafka"]["image"].partition(":")[2]
    assert re.search(rf"\bkafka_2\.13\b.*\b{re.escape(version)}\b", lock.read_text(encoding="utf-8"))


def test_only_grafana_is_published_and_only_to_this_host_itself(compose: Document) -> None:
    ports = {name: service["ports"] for name, service in compose["services"].items() if "ports" in service}
    assert ports == {"grafana": ["127.0.0.1:3000:3000"]}


def test_grafana_and_its_like_start_by_the_profile_observe_alone(compose: Document) -> None:
    of_profile = {name for name, each in compose["services"].items() if each.get("profiles") == ["observe"]}
    assert of_profile == {
        "trace", "collector", "prometheus", "alertmanager", "loki", "tempo", "grafana",
    }  # fmt: skip


@pytest.mark.capability("C-9")
def test_every_file_of_the_profile_observe_is_mounted_where_it_is_looked_for(compose: Document) -> None:
    files = {name: each["file"] for name, each in compose["configs"].items()}
    assert all((ROOT / file).is_file() for file in files.values())
    mounted = {
        name: {each["target"]: files[each["source"]] for each in service.get("configs", ())}
        for name, service in compose["services"].items()
    }
    assert set(files.values()) == {file for targets in mounted.values() for file in targets.values()}
    for name, option in (
        ("collector", "--config="), ("prometheus", "--config.file="), ("alertmanager", "--config.file="),
        ("loki", "-config.file="), ("tempo", "-config.file="),
    ):  # fmt: skip
        (path,) = [
            word.removeprefix(option)
            for word in compose["services"][name]["command"]
            if word.startswith(option)
        ]
        assert path in mounted[name]
    provider = yaml.safe_load((ROOT / files["provider"]).read_text())["providers"][0]["options"]["path"]
    shown = {target.rpartition("/")[2] for target in mounted["grafana"] if target.startswith(f"{provider}/")}
    assert shown == {path.name for path in (ROOT / "observe" / "dashboards").iterdir()}
    assert "/etc/prometheus/alerts.yml" in mounted["prometheus"]


def test_prometheus_scrapes_each_process_at_the_port_that_it_listens_on(compose: Document) -> None:
    """The messages are another profile: without them their name means nothing, and no target is down."""
    scraped = yaml.safe_load((ROOT / "observe" / "prometheus" / "prometheus.yml").read_text())
    targets: dict[str, int] = {}
    for job in scraped["scrape_configs"]:
        for group in job.get("static_configs", ()):
            targets |= {name: int(port) for each in group["targets"] for name, port in (each.split(":"),)}
        for group in job.get("dns_sd_configs", ()):
            assert "profiles" in compose["services"][group["names"][0]]
            targets |= dict.fromkeys(group["names"], group["port"])
    assert list(targets) == ["match", "detect", "decide", "executor", "messages"]
    for name, port in targets.items():
        setting = compose["services"][name]["environment"]["MIDWATCH_TELEMETRY__PROMETHEUS"]
        settings = load_settings(None, environment={"MIDWATCH_TELEMETRY__PROMETHEUS": setting})
        assert scrape_address(settings, name) == (setting.partition(":")[0], port)


def test_every_target_is_a_stage_of_the_dockerfile(compose: Document) -> None:
    stages = set(re.findall(r"^FROM \S+ AS (\S+)", (ROOT / "Dockerfile").read_text(), re.MULTILINE))
    targets = {service["build"]["target"] for service in compose["services"].values() if "build" in service}
    assert targets <= stages


def test_every_volume_and_dependency_is_declared(compose: Document) -> None:
    for service in compose["services"].values():
        assert {volume.partition(":")[0] for volume in service.get("volumes", [])} <= compose[
            "volumes"
        ].keys()
        assert set(service.get("depends_on", [])) <= compose["services"].keys()


def test_every_variable_of_ours_is_a_setting(compose: Document) -> None:
    known = {variable_name(path) for path, _ in leaves()} | OTHER_VARIABLES
    ours = {
        name
        for service in compose["services"].values()
        for name in service.get("environment", {})
        if name.startswith("MIDWATCH_")
    }
    assert ours
    assert ours - known == set()


def commands() -> list[str]:
    """What the services that run `midwatch` pass to it, each as one line."""
    document = yaml.safe_load((ROOT / "docker-compose.yml").read_text(encoding="utf-8"))
    return [
        shlex.join(service["command"])
        for service in document["services"].values()
        if service["image"].startswith("midwatch") and "entrypoint" not in service
    ]


@pytest.mark.parametrize("command", commands())
def test_every_command_is_one_of_the_command_line(command: str) -> None:
    """Parses the whole line with the real command group, without running it."""
    group: click.Command = importlib.import_module("midwatch.agents.cli").midwatch
    arguments = shlex.split(command)
    context = click.Context(group, info_name="midwatch")
    while isinstance(group, click.Group):
        name, found, arguments = group.resolve_command(context, arguments)
        assert found is not None, f"{command}: no such command"
        group = found
        context = click.Context(group, info_name=name, parent=context)
    group.make_context(context.info_name, arguments, parent=context.parent)


def test_the_topics_are_made_before_anything_reads_them(compose: Document, stack: Endpoints) -> None:
    """What the service runs, on a real Kafka: a second run finds everything in order."""
    service = compose["services"]["topics"]
    prefix = f"compose-{secrets.token_hex(4)}"
    environment = {
        **os.environ,
        "MIDWATCH_KAFKA__BOOTSTRAP": stack.kafka,
        "MIDWATCH_KAFKA__USERNAME": stack.kafka_username,
        "MIDWATCH_KAFKA__PASSWORD": stack.kafka_password,
        "MIDWATCH_TOPICS__PREFIX": prefix,
    }
    command = [sys.executable, *service["entrypoint"][1:], *service["command"]]

    run = partial(subprocess.run, command, env=environment, capture_output=True, text=True, check=False)
    first, second = run(), run()

    assert first.returncode == 0, first.stderr
    assert f"{prefix}.logs {prefix}.events" in first.stdout
    assert (second.returncode, second.stdout) == (0, "made:\n")


def test_whatever_uses_kafka_waits_for_its_topics(compose: Document) -> None:
    """The job waits for workers, which wait for the topics."""
    users = {"match", "detect", "decide", "executor", "messages", "trace"}
    waits = {
        name for name, service in compose["services"].items() if "topics" in service.get("depends_on", {})
    }
    assert waits == users
    assert set(compose["services"]["job"]["depends_on"]) <= users


@pytest.mark.capability("X-14")
def test_every_server_process_has_a_health_check_of_its_own(compose: Document) -> None:
    for name in ("match", "detect", "decide", "messages", "executor", "trace"):
        assert compose["services"][name]["healthcheck"]["test"] == ["CMD", "midwatch", "health", name]


def test_the_toy_job_is_the_drill_and_its_shipper_is_process_1(compose: Document) -> None:
    """Its module is there, all its lines go to its output, and no other init stands before the shipper."""
    job = compose["services"]["job"]
    options, command = (
        job["command"][: job["command"].index("--")],
        job["command"][job["command"].index("--") :],
    )
    assert options == ["ship", "--job", "toy"]
    assert importlib.util.find_spec(command[3])
    assert command[command.index("--log-dir") + 1] == "-"
    assert not {"init", "entrypoint"} & job.keys()


def test_what_the_shipper_could_not_send_lies_in_a_volume(compose: Document) -> None:
    stage = image_environment("shipper")
    assert f"shipper:{stage['MIDWATCH_STATE_DIRECTORY']}" in compose["services"]["job"]["volumes"]
