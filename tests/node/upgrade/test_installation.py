"""What brings new versions to an agent, by the way in which it was installed."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from clusters.agent_upgrades.program_orders import OLDEST_PYTHON
from tests.hub import PROJECT
from trainhub_node.upgrade import installation
from trainhub_node.upgrade.installation import DEBIAN, upgrade_capability, upgrade_way
from trainhub_node.upgrade.program_record import ProgramRecord, forget_hub, read_record, write_record


@pytest.mark.parametrize(
    ("value", "package", "way", "capability"),
    [
        ("", "/opt/venv/lib/python3.11/site-packages/trainhub_node", "self", "self_upgrade"),
        ("self", "/opt/venv/lib/python3.11/site-packages/trainhub_node", "self", "self_upgrade"),
        ("off", "/opt/venv/lib/python3.11/site-packages/trainhub_node", "hand", "upgrade-by:hand"),
        ("", str(DEBIAN / "trainhub_node"), "apt", "upgrade-by:apt"),
        ("hub", "/srv/trainhub/trainhub_node", "hub", "upgrade-by:hub"),
        ("slurm", "/scratch/node/trainhub_node", "slurm", "upgrade-by:slurm"),
    ],
)
def test_the_way_of_installation_decides(
    monkeypatch: pytest.MonkeyPatch, value: str, package: str, way: str, capability: str
) -> None:
    monkeypatch.setattr(installation, "PACKAGE", Path(package))
    assert upgrade_way({"TRAINHUB_NODE_UPGRADES": value}) == way
    assert upgrade_capability(way) == capability


def test_a_wrong_setting_is_named() -> None:
    with pytest.raises(ValueError, match="TRAINHUB_NODE_UPGRADES=yes must be self or off"):
        upgrade_way({"TRAINHUB_NODE_UPGRADES": "yes"})


def test_what_the_packages_say_is_what_is_compared() -> None:
    built = (PROJECT / "packaging/build_deb.py").read_text()
    assert 'NAME = "trainhub-node"' in built
    assert 'LIBRARY = Path("usr/lib", NAME)' in built
    assert Path("/usr/lib/trainhub-node") == DEBIAN
    wheel = tomllib.loads((PROJECT / "packaging/node/pyproject.toml").read_text())
    assert wheel["project"]["requires-python"] == f">={OLDEST_PYTHON}"


def test_a_node_that_joins_another_hub_takes_its_key(tmp_path: Path) -> None:
    forget_hub(tmp_path)
    folder = tmp_path / "programs"
    assert not folder.exists()
    folder.mkdir(mode=0o755)
    write_record(folder, ProgramRecord(current="1.0-abc", key="00", order=4, outcome="done"))
    forget_hub(tmp_path)
    assert read_record(folder) == ProgramRecord(current="1.0-abc")
