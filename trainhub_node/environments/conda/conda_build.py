"""Makes a conda environment of exactly the packages of its lock, and installs with pip what the lock has on
top.

The hub has the packages, and channels are asked for what it lacks. rattler links them in a process of its
own; no script of a package runs. Then the environment is activated once, as a shell would do it, and what
that changes is kept for the runs."""

from __future__ import annotations

import os
import shutil

from trainhub_node import records
from trainhub_node.environments import hub_index, interpreter, pip
from trainhub_node.environments.conda import conda_activation
from trainhub_node.environments.conda.conda_progress import CondaProgress
from trainhub_node.environments.hub_connection import hub_proxies
from trainhub_node.supervisor.gang import PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

INSTALLER = "conda_installer.py"
REQUEST = "conda.json"
RATTLER = "rattler"
SCRIPT, ACTIVATED = "activate.sh", "activated"
SHELLS = ("/bin/bash", "/usr/bin/bash", "/bin/sh")
# The variable with the hub's address and ticket: other accounts see arguments, and could read a file.
HUB = "TRAINHUB_PACKAGES"
# Of pip's variables, what concerns every program that connects.
NETWORK = ("PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")


class CondaBuild(pip.VenvBuild):
    """Builds one conda environment in `folder`, as `VenvBuild` builds a virtual one."""

    def run(self, spec: Mapping[str, Any], python: str) -> None:  # noqa: ARG002 - it has its own
        """Makes the environment. Raises PreparationFailed with the reason, or StopRequested."""
        with open(os.path.join(os.path.dirname(__file__), INSTALLER)) as file:
            self.write_file(INSTALLER, file.read())
        if self.owner != os.geteuid():
            # The builder may not be able to read the agent's installation.
            _copy_package(self._rattler(), f"{self.scratch}/{RATTLER}")
        self.write_file(REQUEST, records.dumps(dict(spec["conda"])).decode())
        if spec.get("lock"):
            self.write_locks(spec)
        self._install_packages(spec)
        if not os.path.exists(f"{self.folder}/bin/python"):
            raise PreparationFailed("environment", f"The packages of {spec['name']} contain no Python.")
        # Before pip, which compiles what it installs, and starts sooner then.
        self._compile()
        if spec.get("lock"):
            self.install_lock(spec)
        self._activate(spec)

    def _install_packages(self, spec: Mapping[str, Any]) -> None:
        network = {
            name: value for name, value in self.gang.terms["pip"].items() if name.upper().endswith(NETWORK)
        }
        hub, hub_failure = self._hub_packages()
        # With rattler of the agent's own installation, or its copy. -I: no variable adds to the path.
        argv = [self.gang.terms["wrapper"][0], "-I", f"{self.scratch}/{INSTALLER}", self.folder, self.scratch]
        code = self.call(argv, network | hub, CondaProgress())
        if code != 0:
            lines = self.tail()
            reasons = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
            reason = (reasons or [f"the installer ended with code {code}"])[-1]
            more = f". {hub_failure}" if hub_failure else ""
            raise PreparationFailed(
                "environment", f"The conda packages of {spec['name']} could not be installed: {reason}{more}"
            )

    def _hub_packages(self) -> tuple[dict[str, str], str]:
        """Returns the variable by which the installer gets packages from the hub, and what the hub lacks, as
        a sentence or ""."""
        if not self.gang.order.get("package_index"):
            return {}, ""
        failure = ""
        try:
            hub_index.wait_for_files(self.gang, self.write)
        except PreparationFailed as error:
            failure = str(error)
            self.write(f"{failure} The channels are asked for what it lacks.")
        hub = {
            "files": f"{self.gang.order['package_index']}/files",
            "ticket": self.gang.order["package_ticket"],
            "certificates": self.gang.terms["ca"],
            "proxies": hub_proxies(self.gang, self.gang.order["package_index"]),
        }
        return {HUB: records.dumps(hub).decode()}, failure

    def _compile(self) -> None:
        """Compiles the modules of packages that come without: runs cannot write into the environment."""
        libraries = f"{self.folder}/lib"
        places = [
            f"{libraries}/{name}/site-packages" for name in os.listdir(libraries) if name.startswith("python")
        ]
        # The code only says that some files could not be compiled, such as templates for other Pythons.
        self.call([f"{self.folder}/bin/python", "-m", "compileall", "-q", *filter(os.path.isdir, places)], {})

    def _activate(self, spec: Mapping[str, Any]) -> None:
        """Runs the scripts of packages that set variables, as the builder, and keeps what they set."""
        result = f"{self.scratch}/{ACTIVATED}"
        shell = next((path for path in SHELLS if os.access(path, os.X_OK)), SHELLS[-1])
        code = self.call([shell, f"{self.scratch}/{SCRIPT}"], conda_activation.BASE)
        try:
            if code != 0:
                raise ValueError(f"its scripts ended with code {code}")
            changes = conda_activation.read_changes(result, self.folder, self.owner)
        except (OSError, ValueError) as error:
            raise PreparationFailed(
                "environment", f"The environment {spec['name']} could not be activated: {error}."
            ) from error
        self._activation = changes

    def _rattler(self) -> str:
        # Not in the terms of an agent that could not give such an order.
        folder = str(self.gang.terms.get(RATTLER, ""))
        if not folder:
            raise PreparationFailed("environment", "This node has no py-rattler; install it for its agent.")
        return folder

    def finish(self, folder: str) -> None:
        """Writes what activating the environment sets, for the runs."""
        records.write(f"{folder}/{interpreter.ACTIVATION}", self._activation)


def _copy_package(source: str, target: str) -> None:
    """Copies a package of Python to where every account can read it."""
    for root, folders, names in os.walk(source):
        folders[:] = [name for name in folders if name != "__pycache__"]
        place = f"{target}{root.removeprefix(source)}"
        os.mkdir(place)
        os.chmod(place, 0o755)  # noqa: S103
        for name in names:
            shutil.copyfile(f"{root}/{name}", f"{place}/{name}")
            os.chmod(f"{place}/{name}", 0o644)
