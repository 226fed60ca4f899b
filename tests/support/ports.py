"""Ports of the tests' own servers, claimed until the test run ends: a server of another run never gets one of them."""

from __future__ import annotations

from ops.services.ports import PortChooser

_claims = PortChooser({})


def claimed_port(usual: int, service: str) -> int:
    """A free port from ``usual`` on that no other test run has, whether its server listens right now or not."""
    return _claims.choose("-", usual, service)
