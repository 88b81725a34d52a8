"""Dashboards of Grafana and alerts of Prometheus as code; `write` writes them as files."""
