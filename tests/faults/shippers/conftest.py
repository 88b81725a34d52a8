"""The same parts as in the integration tests; here they are broken."""

from __future__ import annotations

from integration.shippers.conftest import shipper, topic

__all__ = ["shipper", "topic"]
