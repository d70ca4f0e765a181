"""Podman with a store of its own, and a base image made of Debian's packages: no registry is needed."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from tests.caching import CACHE, alone
from tests.hub import PROJECT

SUITE = "bookworm"
BASE = f"localhost/trainhub-base:{SUITE}"
PACKAGES = "python3,python3-venv,ca-certificates"
CONTAINERS = """\
[containers]
default_ulimits = ["nofile=4096:20000", "nproc=4096:4096"]
log_driver = "k8s-file"
netns = "{netns}"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
helper_binaries_dir = ["/usr/lib/podman", "/usr/libexec/podman"]
[network]
network_backend = "netavark"
network_config_dir = "{folder}/networks"
"""
STORAGE = """\
[storage]
driver = "overlay"
graphroot = "{folder}/store"
runroot = "{folder}/run"
"""


@dataclass(frozen=True)
class Podman:
    """`folder`: its store and settings, kept between sessions because of the layers. `settings`: the name of
    its file of settings there."""

    folder: Path
    settings: str = "containers.conf"

    @property
    def variables(self) -> dict[str, str]:
        return {
            "CONTAINERS_CONF": str(self.folder / self.settings),
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
        }

    def with_bridges(self) -> Podman:
        """The same, with networks of containers instead of that of this machine."""
        return replace(self, settings="bridges.conf")

    def __call__(
        self, *words: str, check: bool = True, timeout: float = 900
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            ["podman", *words],
            env={**os.environ, **self.variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        assert not check or done.returncode == 0, done.stderr + done.stdout
        return done

    def build(self, tag: str, containerfile: Path, context: Path, *options: str, **arguments: str) -> None:
        given = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
        command = ("build", "--format", "docker", "--pull=never", "--network", "host", *given)
        self(*command, *options, "--tag", tag, "--file", str(containerfile), str(context), timeout=1800)


def prepared() -> Podman:
    """With the base image, which takes a minute to make once."""
    folder = CACHE / "podman"
    podman = Podman(folder)
    with alone("podman"):
        folder.mkdir(exist_ok=True)
        for settings, netns in (("containers.conf", "host"), ("bridges.conf", "bridge")):
            (folder / settings).write_text(CONTAINERS.format(folder=folder, netns=netns))
        (folder / "storage.conf").write_text(STORAGE.format(folder=folder))
        if podman("image", "exists", BASE, check=False).returncode:
            root = folder / "root"
            bootstrap = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root)]
            subprocess.run(bootstrap, check=True, capture_output=True, timeout=900)
            tar = folder / "base.tar"
            subprocess.run(["tar", "-C", root, "-cf", tar, "."], check=True)
            podman("import", str(tar), BASE)
            tar.unlink()
            subprocess.run(["rm", "-rf", "--one-file-system", root], check=True)
    return podman


def hub_image(podman: Podman, release: Path, tag: str) -> str:
    """The image of this checkout. `release`: a folder with the wheel and the lock."""
    # What this machine trusts, such as a mirror of packages with an authority of its own.
    trusted = ("--volume", "/etc/ssl/certs:/etc/ssl/certs:ro")
    podman.build(tag, PROJECT / "packaging" / "container" / "Containerfile", release, *trusted, BASE=BASE)
    return tag
