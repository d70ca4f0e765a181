"""The setting of a node that says which file servers' shares it mounts. What it refuses needs no NFS here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.node.builders import settings
from tests.node.data.shares.test_shares import SHARE, mounting_order
from tests.node.hub import FakeHub
from tests.node.probing.results import Results
from tests.node.probing.test_probes import probe_order
from trainhub_launch.data.shares import InputMount, read_share
from trainhub_launch.states import ErrorKind
from trainhub_node.agent import Agent
from trainhub_node.data.shares import share_keeper
from trainhub_node.data.shares.allowed_servers import NAME, find_refusal, nfs_servers


class TestServers:
    @pytest.mark.parametrize(
        ("value", "host", "export", "is_allowed"),
        [
            ("", "files.example.org", "/srv", True),
            ("none", "files.example.org", "/srv", False),
            ("Files.example.org.", "files.example.org", "/srv", True),
            ("files.example.org", "files", "/srv", False),
            ("example.org", "files.example.org", "/srv", False),
            ("10.0.0.5", "10.0.0.5", "/srv", True),
            ("10.0.0.5", "10.0.0.50", "/srv", False),
            ("10.0.0.0/24, 10.2.0.0/16", "10.2.7.5", "/srv", True),
            ("10.0.0.0/24", "10.0.1.5", "/srv", False),
            # The name may have such an address, and another one a moment later.
            ("0.0.0.0/0, ::/0", "files.example.org", "/srv", False),
            ("0.0.0.0/0, ::/0", "0x0a000005", "/srv", False),
            ("10.0.0.0/8", "::ffff:a00:5", "/srv", False),
            ("fd00::/8", "fd00::5", "/srv", True),
            ("FD00:0::5", "fd00::5", "/srv", True),
            ("[fd00::5]", "fd00::5", "/srv", True),
            ("[fd00::5]:/srv", "fd00::5", "/srv", True),
            ("[fd00::/8]:/srv", "fd00::5", "/home", False),
            ("files:/srv/images/", "files", "/srv/images", True),
            ("files:/srv/images", "files", "/srv", False),
            ("files:/srv/images", "files", "/srv/images2", False),
            # A link there would lead elsewhere on the server.
            ("files:/srv/images", "files", "/srv/images/birds", False),
            ("files:/a:b", "files", "/a:b", True),
            ("10.0.0.0/24:/srv", "10.0.0.5", "/srv", True),
            ("10.0.0.0/24:/srv", "10.0.0.5", "/", False),
            ("10.0.0.9, files:/", "files", "/", True),
        ],
    )
    def test_are_those_that_the_node_names(
        self, value: str, host: str, export: str, is_allowed: bool
    ) -> None:
        entries = nfs_servers({NAME: value})
        assert (find_refusal(entries, read_share(host, export)) == "") is is_allowed

    @pytest.mark.parametrize(
        "value",
        [
            *(",", " ", "files,", "none,files", "files:2049", "files:srv", "files:/srv/../etc", "files:/a b"),
            *("files /srv", "*.example.org", "10.0.0.300", "10.0.0.5/24", "fd00::5:/srv", "[fd00::5]srv"),
        ],
    )
    def test_must_be_servers_networks_or_exports(self, value: str) -> None:
        with pytest.raises(ValueError, match=f"^{NAME}=.* must be none, or servers"):
            nfs_servers({NAME: value})

    def test_end_a_run_that_needs_another_before_it_is_mounted(
        self, hub: FakeHub, start_agent: Callable[..., Agent], tmp_path: Path
    ) -> None:
        agent = start_agent(settings(hub, tmp_path / "node", nfs_servers=("files.example.org:/home",)))
        fact = hub.wait_done(hub.give(mounting_order(hub)))
        assert fact.error_kind == ErrorKind.DATA
        assert fact.error == (
            f"Input birds: node here does not mount {SHARE}: its setting {NAME} does not allow that; "
            f"an operator of the node can add files.example.org, or only {SHARE}, there."
        )
        assert not Path(share_keeper.shares_folder(agent.settings)).exists()

    @pytest.mark.parametrize("work", ["test", "list"])
    def test_end_a_look_into_another(
        self, hub: FakeHub, start_agent: Callable[..., Agent], tmp_path: Path, work: str
    ) -> None:
        start_agent(settings(hub, tmp_path / "node", nfs_servers=("10.0.0.0/24",)))
        results = Results()
        probe = probe_order(results, work, mounts={"data": InputMount(SHARE, "birds")})
        fact = hub.wait_done(hub.give(probe))
        assert f"node here does not mount {SHARE}: its setting {NAME} does not allow" in fact.error
        results.close()
