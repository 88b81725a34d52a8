"""The files of what runs beside the watch: of Prometheus, Loki, Tempo, Grafana and others. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import yaml

from midwatch.agents.grafana.alerts import ALERTS, DEAD_MAN, PROCESSES, Alert
from midwatch.streams.settings.schema import TopicSettings
from midwatch.streams.telemetry.start import PROCESSES as IN_ORDER_OF_PORTS

Document = dict[str, Any]

FIRST_PORT: Final = 9464
NAMESPACE: Final = TopicSettings().prefix
SINK: Final = "http://alerts.example/midwatch"
DEAD_MAN_SINK: Final = "http://dead-man.example/midwatch"
"""Who is told. Put your own addresses there."""


def text(document: Document, head: str = "") -> str:
    """A document as YAML. `head`: what its first comment says."""
    comment = "".join(f"# {line}\n" for line in head.splitlines())
    return comment + yaml.safe_dump(document, sort_keys=False, width=10_000, allow_unicode=True)


def scrapes(
    targets: Mapping[str, str],
    rules: str,
    alertmanager: str,
    every: str = "5s",
    optional: Mapping[str, str] | None = None,
) -> Document:
    """Prometheus's own file. `targets`: the address of each kind of process.

    `optional` are those that a site may leave out: while their names mean nothing, nobody misses them.
    """
    return {
        "global": {"scrape_interval": every, "evaluation_interval": every},
        "rule_files": [rules],
        "alerting": {"alertmanagers": [{"static_configs": [{"targets": [alertmanager]}]}]},
        "scrape_configs": [
            {
                # As Prometheus names it by itself where the metrics come by OTLP.
                "job_name": f"{NAMESPACE}/midwatch-{process}",
                "static_configs": [{"targets": [address]}],
            }
            for process, address in targets.items()
        ]
        + [
            {
                "job_name": f"{NAMESPACE}/midwatch-{process}",
                "dns_sd_configs": [{"names": [name], "type": "A", "port": int(port)}],
            }
            for process, (name, _, port) in ((p, a.partition(":")) for p, a in (optional or {}).items())
        ],
    }


def targets_in_compose(processes: Sequence[str] = PROCESSES) -> dict[str, str]:
    """The address of each process by its service's name."""
    return {name: f"{name}:{FIRST_PORT + IN_ORDER_OF_PORTS.index(name)}" for name in processes}


def alert_rules(alerts: tuple[Alert, ...] = ALERTS) -> Document:
    """The rules of all alerts."""
    return {"groups": [{"name": "midwatch", "rules": [_rule(alert) for alert in alerts]}]}


def _rule(alert: Alert) -> Document:
    return {
        "alert": alert.name,
        "expr": alert.expression,
        "for": alert.hold,
        "labels": {"severity": alert.severity, **dict(alert.labels)},
        "annotations": {"summary": alert.summary, "runbook": alert.remedy},
    }


def alertmanager(
    sink: str = SINK, dead_man_sink: str = DEAD_MAN_SINK, *, wait: str = "10s", between: str = "1m"
) -> Document:
    """Routes by severity. The dead-man alert is sent every minute, so that its end is noticed elsewhere."""
    quick = {"group_wait": "0s", "group_interval": "1m", "repeat_interval": "1m"}
    return {
        "route": {
            "receiver": "people",
            "group_by": ["alertname", "run"],
            "group_wait": wait,
            "group_interval": between,
            "repeat_interval": "4h",
            "routes": [{"matchers": [f'alertname="{DEAD_MAN}"'], "receiver": "dead-man", **quick}],
        },
        # While a process sees nothing, what it says of jobs is worth nothing: one alarm is enough.
        "inhibit_rules": [
            {
                "source_matchers": ['alertname="MidwatchProcessMissing"', 'process="detect"'],
                "target_matchers": ['alertname=~"MidwatchJob.*|MidwatchNoProgress|MidwatchNodesMissing"'],
            }
        ],
        "receivers": [
            {"name": "people", "webhook_configs": [{"url": sink, "send_resolved": True}]},
            {"name": "dead-man", "webhook_configs": [{"url": dead_man_sink, "send_resolved": False}]},
        ],
    }


def datasources() -> Document:
    """Grafana's data sources. A log record leads to its trace."""
    return {
        "apiVersion": 1,
        "datasources": [
            {
                "name": "Prometheus",
                "uid": "midwatch-prometheus",
                "type": "prometheus",
                "access": "proxy",
                "url": "http://prometheus:9090",
                "isDefault": True,
                "jsonData": {"timeInterval": "5s", "httpMethod": "POST"},
            },
            {
                "name": "Loki",
                "uid": "midwatch-loki",
                "type": "loki",
                "access": "proxy",
                "url": "http://loki:3100",
                "jsonData": {
                    "derivedFields": [
                        {
                            "name": "trace",
                            "matcherType": "label",
                            "matcherRegex": "trace_id",
                            # A single $ would name a variable of Grafana's environment.
                            "url": "$${__value.raw}",
                            "datasourceUid": "midwatch-tempo",
                        }
                    ]
                },
            },
            {
                "name": "Tempo",
                "uid": "midwatch-tempo",
                "type": "tempo",
                "access": "proxy",
                "url": "http://tempo:3200",
            },
        ],
    }


def dashboard_provider(folder: str = "/var/lib/grafana/dashboards") -> Document:
    """Where Grafana finds the dashboards."""
    return {
        "apiVersion": 1,
        "providers": [
            {"name": "midwatch", "folder": "midwatch", "type": "file", "options": {"path": folder}},
        ],
    }


def collector(
    receive: str = "0.0.0.0:4318",  # in a container, on a network of its own
    prometheus: str = "http://prometheus:9090",
    loki: str = "http://loki:3100",
    tempo: str = "http://tempo:4318",
) -> Document:
    """An OpenTelemetry collector that hands metrics, log records and traces on."""
    batch: Document = {"timeout": "1s"}
    return {
        "receivers": {"otlp": {"protocols": {"http": {"endpoint": receive}}}},
        "processors": {"batch": batch},
        "exporters": {
            "otlp_http/prometheus": {"metrics_endpoint": f"{prometheus}/api/v1/otlp/v1/metrics"},
            "otlp_http/loki": {"logs_endpoint": f"{loki}/otlp/v1/logs"},
            "otlp_http/tempo": {"traces_endpoint": f"{tempo}/v1/traces"},
        },
        "service": {
            "pipelines": {
                kind: {"receivers": ["otlp"], "processors": ["batch"], "exporters": [f"otlp_http/{to}"]}
                for kind, to in (("metrics", "prometheus"), ("logs", "loki"), ("traces", "tempo"))
            }
        },
    }


def loki(folder: str = "/loki", port: int = 3100, address: str = "0.0.0.0") -> Document:  # noqa: S104  # as above
    """One Loki on local disk, without authentication."""
    return {
        "auth_enabled": False,
        "server": {"http_listen_address": address, "http_listen_port": port, "grpc_listen_port": 0},
        "common": {
            "path_prefix": folder,
            "replication_factor": 1,
            "instance_addr": "127.0.0.1",
            "ring": {"kvstore": {"store": "inmemory"}},
            "storage": {
                "filesystem": {"chunks_directory": f"{folder}/chunks", "rules_directory": f"{folder}/rules"}
            },
        },
        "schema_config": {
            "configs": [
                {
                    "from": "2024-01-01",
                    "store": "tsdb",
                    "object_store": "filesystem",
                    "schema": "v13",
                    "index": {"prefix": "index_", "period": "24h"},
                }
            ]
        },
        "limits_config": {"allow_structured_metadata": True},
        "analytics": {"reporting_enabled": False},
    }


def tempo(folder: str = "/var/tempo") -> Document:
    """One Tempo on local disk."""
    return {
        "server": {"http_listen_port": 3200},
        "distributor": {"receivers": {"otlp": {"protocols": {"http": {"endpoint": "0.0.0.0:4318"}}}}},
        "storage": {
            "trace": {
                "backend": "local",
                "local": {"path": f"{folder}/blocks"},
                "wal": {"path": f"{folder}/wal"},
            }
        },
        "usage_report": {"reporting_enabled": False},
    }
