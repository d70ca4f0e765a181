"""Engines and images: what a trial says, and pulls that do not succeed."""

from __future__ import annotations

import socket
from dataclasses import replace
from pathlib import Path

import pytest

from tests.node.builders import script, settings
from tests.node.containers import images
from tests.node.hub import FakeHub
from tests.node.processes import remaining_processes
from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_launch.machine import IMAGE_BUILDS
from trainhub_launch.order import EnvironmentSpec
from trainhub_launch.report import StopOrder
from trainhub_node.agent import Agent
from trainhub_node.containers.engine import DOCKER, PODMAN
from trainhub_node.containers.engine import NAMES as ENGINES
from trainhub_node.containers.gpus import docker_has_cdi, gpu_options
from trainhub_node.environments.images import pull_failure
from trainhub_node.launch import engine_trial
from trainhub_node.launch.engine_trial import NOT_TRIED, engine_capabilities, try_engine

TROUBLES = {PODMAN: "not a directory", DOCKER: "start its service, docker"}


class TestPull:
    @pytest.mark.parametrize("in_container", ENGINES, indirect=True)
    def test_from_a_registry_that_hangs_ends_with_a_cancel(
        self, hub: FakeHub, in_container: images.PrivateEngine, agent: Agent
    ) -> None:
        with socket.create_server(("127.0.0.1", 0)) as registry:
            image = {"reference": "slow:1", "digest": f"sha256:{'0' * 64}"}
            image["pull"] = f"127.0.0.1:{registry.getsockname()[1]}/slow@{image['digest']}"
            spec = EnvironmentSpec("own", "1", "image", image=image)
            key = hub.give(script(hub, "print(1)", environment=spec))
            hub.wait_log(key, f"/{in_container.name} pull".encode(), ENVIRONMENT_LOG)

            hub.stops[key] = StopOrder(*key, grace_s=2, why="canceled")

            fact = hub.wait_done(key)
        assert (fact.stopping, fact.error) == ("canceled", "")
        assert remaining_processes(key) == set()

    @pytest.mark.parametrize("in_container", ENGINES, indirect=True)
    def test_an_image_that_cannot_be_pulled_ends_the_attempt_with_its_reason_and_log(
        self, hub: FakeHub, in_container: images.PrivateEngine, agent: Agent
    ) -> None:
        image = {"reference": "no/such:1", "digest": f"sha256:{'0' * 64}"}
        image["pull"] = f"127.0.0.1:1/no/such@{image['digest']}"
        spec = EnvironmentSpec("own", "1", "image", image=image)

        key = hub.give(script(hub, "print(1)", environment=spec))

        fact = hub.wait_done(key)
        assert fact.error_kind == "environment"
        assert fact.error.startswith(
            "The image no/such:1 could not be pulled: this node does not reach its registry"
        )
        call = f"/{in_container.name} pull 127.0.0.1:1/no/such"
        assert call.encode() in hub.log(key, ENVIRONMENT_LOG)


class TestTrial:
    @pytest.mark.parametrize("in_container", ENGINES, indirect=True)
    def test_says_which_engine_works_and_why_one_does_not(
        self,
        hub: FakeHub,
        in_container: images.PrivateEngine,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        options = settings(hub, tmp_path)

        working = try_engine(options, NOT_TRIED)
        (tmp_path / "file").touch()
        (tmp_path / "storage.conf").write_text(images.STORAGE.format(folder=tmp_path / "file"))
        monkeypatch.setenv("CONTAINERS_STORAGE_CONF", str(tmp_path / "storage.conf"))
        monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
        broken = try_engine(options, NOT_TRIED)
        off = try_engine(replace(options, engine="off"), NOT_TRIED)

        assert working.works, working
        assert str(working).startswith(f"{in_container.name} ")
        assert (IMAGE_BUILDS in engine_capabilities(working)) == (in_container.name == PODMAN)
        (tmp_path / "none").write_text("0\n")
        monkeypatch.setattr(engine_trial, "USER_NAMESPACES", tmp_path / "none")
        assert IMAGE_BUILDS not in engine_capabilities(working)
        assert not broken.works
        assert "--help" not in broken.trouble
        assert TROUBLES[in_container.name] in broken.trouble
        assert str(off) == "None: TRAINHUB_NODE_CONTAINERS=off"


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        (
            ["Trying to pull…", "Error: writing blob: no space left on device"],
            "the disk of this node is full",
        ),
        (["Error: initializing source: unauthorized: login"], "its registry refuses the login, or wants one"),
        (["Error: reading manifest: manifest unknown"], "its registry does not have it (any more)"),
        (["Error: no image found in image index for architecture"], "its registry has none for the CPU"),
        (
            ["Error: reading blob sha256:0f: invalid status code from registry 502 (Bad Gateway)"],
            "the hub could not get it from its registry",
        ),
        (["Error response from daemon: something new"], "Error response from daemon: something new"),
    ],
)
def test_an_engines_error_becomes_a_reason_with_a_remedy(lines: list[str], reason: str) -> None:
    assert pull_failure(lines).startswith(reason)


class TestGpuOptions:
    GPUS = ("GPU-1", "GPU-2")

    def test_name_exactly_the_gpus_of_the_run(self) -> None:
        void = "--env=NVIDIA_VISIBLE_DEVICES=void"
        assert gpu_options(self.GPUS, by_cdi=False) == ['--gpus="device=GPU-1,GPU-2"']
        assert gpu_options(self.GPUS, by_cdi=True) == [
            void,
            "--device=nvidia.com/gpu=GPU-1",
            "--device=nvidia.com/gpu=GPU-2",
        ]
        assert gpu_options((), by_cdi=False) == gpu_options((), by_cdi=True) == [void]

    def test_are_by_cdi_where_docker_has_the_devices(self, tmp_path: Path) -> None:
        listed = {
            "DiscoveredDevices": [{"Source": "cdi", "ID": f"nvidia.com/gpu={gpu}"} for gpu in self.GPUS]
        }
        folders = {"CDISpecDirs": [str(tmp_path / "absent"), str(tmp_path)]}
        assert not docker_has_cdi({"CDISpecDirs": None}, self.GPUS)
        assert not docker_has_cdi(folders, self.GPUS)
        (tmp_path / "nvidia.yaml").write_text(
            "kind: nvidia.com/gpu\ndevices:\n- name: GPU-1\n- name: GPU-2\n"
        )
        assert docker_has_cdi(folders, self.GPUS)
        assert docker_has_cdi(folders | listed, self.GPUS)
        assert not docker_has_cdi(folders | listed, ("GPU-3",))
