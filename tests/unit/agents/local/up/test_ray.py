"""`midwatch up` ships the driver logs of the head that the settings name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from midwatch.agents.local.up.processes import processes
from midwatch.streams.settings.schema import RaySettings, Settings


def test_a_head_in_the_settings_gets_a_shipper(tmp_path: Path) -> None:
    without = replace(Settings(), state_directory=tmp_path)
    with_head = replace(without, ray=RaySettings(address="http://head:8265"))
    names = [[each.name for each in processes(made, (), 0)] for made in (without, with_head)]
    assert set(names[1]) - set(names[0]) == {"ship-ray"}
    (shipper,) = [each for each in processes(with_head, ("--set=a=b",), 0) if each.name == "ship-ray"]
    assert [*shipper.command][-3:] == ["ship", "--ray=http://head:8265", "--set=a=b"]
