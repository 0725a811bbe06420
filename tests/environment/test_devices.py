"""Ports and probes of the computer at hand."""

from __future__ import annotations

from harness.environment.devices import port_parts, probe_parts
from harness.environment.part import Kind, Status


def test_what_is_really_plugged_in_can_be_listed() -> None:
    """No board is needed: whatever is here, each entry is whole."""
    assert all(part.kind is Kind.PORT and part.name for part in port_parts())
    assert all(part.kind is Kind.PROBE and part.status in {Status.OK, Status.WRONG} for part in probe_parts())
