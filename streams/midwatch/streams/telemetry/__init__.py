"""Telemetry: the names, the ids of traces, and the one module that imports the OpenTelemetry SDK."""
