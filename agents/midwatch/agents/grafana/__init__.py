"""Dashboards of Grafana and alerts of Prometheus as code. `python -m midwatch.agents.grafana.write` writes them."""
