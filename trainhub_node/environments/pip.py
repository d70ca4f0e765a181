"""Makes a virtual environment with `venv` and pip.

Packages are first downloaded, only as wheels, which runs none of their code. They are then installed
without an index, and without the variables that lead to one (`PIP_*` and proxies, which may hold
passwords). Only if something has no wheel does pip build it, and the code that this runs sees pip's
variables. A locked environment is never built from source: each file must have a hash of the lock."""

from __future__ import annotations

import os
import sys

from trainhub_node.environments import hub_index
from trainhub_node.environments.build_process import BuildProcess
from trainhub_node.supervisor.gang import Gang, PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from trainhub_node.isolation.namespaces import Namespaces

PIP_OPTIONS = ("--no-input", "--progress-bar", "off", "--disable-pip-version-check")
WHEEL = ".whl"
# The lock as it is, and without the indexes that it names.
LOCK, HUB_LOCK = "requirements.lock", "packages.lock"
MISMATCH = "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES"
# Requirements whose sources pip builds without an error, but into something that cannot train.
ONLY_WHEELS = {
    "horovod==0.28.1": (
        "horovod 0.28.1 has no wheel for this environment on an index, and pip would build it without "
        "PyTorch and TensorFlow. Make an environment of your own from these requirements, for which a node "
        "builds the wheel once, or start this node's agent with PIP_FIND_LINKS set to the folder of a wheel "
        "that you have built"
    ),
}


class VenvBuild:
    """Builds one virtual environment in `folder`; for the other arguments see BuildProcess."""

    def __init__(
        self,
        gang: Gang,
        folder: str,
        scratch: str,
        *,
        builder: int | None,
        namespaces: Namespaces | None = None,
    ) -> None:
        self._process = BuildProcess(gang, folder, scratch, builder=builder, namespaces=namespaces)
        self._builder = builder
        self.gang = gang
        self.folder = folder
        self.scratch = scratch
        self.write = self._process.write
        self.write_file = self._process.write_file
        self.call = self._process.call
        self.tail = self._process.tail

    @property
    def owner(self) -> int:
        """The user id that builds."""
        return os.geteuid() if self._builder is None else self._builder

    def run(self, spec: Mapping[str, Any], python: str) -> None:
        """Makes the environment. Raises PreparationFailed with pip's last error, or StopRequested."""
        if spec.get("lock"):
            self.write_locks(spec)
            self._make_venv(python)
            self.install_lock(spec)
            return
        self._make_venv(python)
        requirements = list(spec["requirements"])
        if not requirements:
            return
        index = _index_variables(self.gang.terms["pip"], spec["index_urls"])
        wheels = f"{self.scratch}/wheels"
        download = [
            *self._pip(),
            "download",
            *PIP_OPTIONS,
            "--only-binary",
            ":all:",
            "--dest",
            wheels,
            "--",
            *requirements,
        ]
        pins = _pins(wheels) if self.call(download, index) == 0 else None
        if pins:
            install = [
                *self._pip(),
                "install",
                *PIP_OPTIONS,
                "--no-index",
                "--no-deps",
                "--find-links",
                wheels,
                "--",
                *pins,
            ]
            code = self.call(install, {})
        else:
            for requirement in requirements:
                if requirement in ONLY_WHEELS:
                    raise PreparationFailed("environment", f"{ONLY_WHEELS[requirement]}.")
            self.write("Not every package has a wheel; the others are built here.")
            code = self.call([*self._pip(), "install", *PIP_OPTIONS, "--", *requirements], index)
        if code != 0:
            raise PreparationFailed(
                "environment",
                f"pip could not install {', '.join(requirements)}: {self._process.last_error()}",
            )

    def finish(self, folder: str) -> None:
        """Writes what the finished environment in `folder` needs besides its packages."""

    def write_locks(self, spec: Mapping[str, Any]) -> None:
        """Writes the lock for `install_lock`. Before any process of the builder runs."""
        self.write_file(LOCK, spec["lock"])
        self.write_file(HUB_LOCK, hub_index.without_indexes(spec["lock"]))

    def install_lock(self, spec: Mapping[str, Any]) -> None:
        """Installs what the lock names. Nothing is resolved: the lock is complete."""
        sources = hub_index.package_sources(self.gang, self._process.write)
        code = 1
        for source in sources:
            lock = f"{self.scratch}/{HUB_LOCK if source.replaces_indexes else LOCK}"
            code = self._install_from(source.pip, lock)
            if code == 0:
                return
        reason = hash_mismatch(self._process.tail()) or self._process.last_error()
        raise PreparationFailed(
            "environment", f"The locked packages of {spec['name']} could not be installed: {reason}"
        )

    def _install_from(self, variables: Mapping[str, str], lock: str) -> int:
        locked = ["--require-hashes", "--no-deps", "--only-binary", ":all:"]
        wheels = f"{self.scratch}/wheels"
        download = [*self._pip(), "download", *PIP_OPTIONS, *locked, "--dest", wheels, "--requirement", lock]
        offline = ["--no-index", "--find-links", wheels]
        install = [*self._pip(), "install", *PIP_OPTIONS, *locked, *offline, "--requirement", lock]
        return self.call(download, variables) or self.call(install, {})

    def _make_venv(self, python: str) -> None:
        if self.call([python, "-m", "venv", self.folder], {}) == 0:
            return
        # Debian's Python comes without ensurepip; then this agent's own pip installs into the environment.
        if self.call([python, "-m", "venv", "--clear", "--without-pip", self.folder], {}) != 0:
            raise PreparationFailed(
                "environment", f"{python} could not make a virtual environment: {self._process.last_error()}"
            )

    def _pip(self) -> list[str]:
        if os.path.lexists(f"{self.folder}/bin/pip"):
            return [f"{self.folder}/bin/python", "-m", "pip"]
        return [sys.executable, "-m", "pip", "--python", f"{self.folder}/bin/python"]


def _index_variables(agent_variables: Mapping[str, str], index_urls: list[str]) -> dict[str, str]:
    """Returns the variables that name pip's indexes. Not arguments: every account of the machine can see
    those."""
    variables = dict(agent_variables)
    if index_urls:
        variables["PIP_INDEX_URL"] = index_urls[0]
        extra = [*agent_variables.get("PIP_EXTRA_INDEX_URL", "").split(), *index_urls[1:]]
        if extra:
            variables["PIP_EXTRA_INDEX_URL"] = " ".join(extra)
    return variables


def _pins(folder: str) -> list[str] | None:
    """Returns a requirement for each wheel in `folder`, whose name begins with package and version.

    Returns None if there are other files: despite `--only-binary`, pip downloads sources of requirements
    that are URLs."""
    names = sorted(os.listdir(folder))
    if not all(name.endswith(WHEEL) for name in names):
        return None
    return ["==".join(name.split("-")[:2]) for name in names]


def hash_mismatch(lines: list[str]) -> str:
    """Returns which package of pip's output does not match its hash, as a sentence, or ""."""
    at = next((number for number, line in enumerate(lines) if line.startswith(MISMATCH)), None)
    if at is None:
        return ""
    # pip writes the package in the line after its own advice.
    package = next((line.split()[0] for line in lines[at + 1 :] if " from " in line), "a package")
    return (
        f"the file of {package} on the index is not the one that was locked: its hash differs. Make a new "
        "version of the environment if the file was replaced on purpose."
    )
