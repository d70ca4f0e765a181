"""The child's memory of the attempt that it supervises, and its state file."""

from __future__ import annotations

import os
import time

from trainhub_launch.json_types import JsonObject
from trainhub_launch.log_names import PREPARATION_LOG
from trainhub_node import records
from trainhub_node.rundir import RunDir

# Not typing.TYPE_CHECKING: this process lives as long as its ranks, and `typing` would stay in its memory.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Protocol

    from trainhub_node.isolation.cgroups import Group
    from trainhub_node.isolation.namespaces import Namespaces

STARTED_BY_MPI = "OMPI_COMM_WORLD_RANK"
IMAGE = "image"  # trainhub_launch.order.IMAGE; a test compares


if TYPE_CHECKING:

    class References(Protocol):
        """Addresses of data that are renewed while the ranks run (see trainhub_node.references). `values`:
        what the plan leaves open about them, by `launch:NAME`."""

        values: Mapping[str, str]

        def renew_if_due(self) -> None: ...

        def remove(self) -> None: ...


class PreparationFailed(Exception):
    """The attempt cannot be prepared or started. `kind`: see AttemptFact.error_kind; the message is a
    sentence."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(sentence)
        self.kind = kind
        self.sentence = sentence


class StopRequested(Exception):
    """A stop request came before the ranks were started."""


class Gang:
    """The ranks of one attempt on this node.

    `wrappers`: process id -> rank of wrappers that are our children. `state` is the content of
    `state.json`, which only this process writes and the agent reads. `python`: the environment's
    interpreter, once it is prepared; `activation`: the variables that a conda environment sets. `namespaces`:
    those of the run, if it has its own; `group`: its control groups. `image_variables`: what the image of a
    run in a container sets. `launcher`: mpirun, or on the run's other nodes its daemon."""

    def __init__(self, folder: RunDir, order: dict[str, Any], terms: dict[str, Any]) -> None:
        self.folder = folder
        self.order = order
        self.terms = terms
        # The values of secrets by name. They are in no file, and come through the child's standard input.
        self.secrets: dict[str, str] = {}
        self.python = ""
        self.activation: dict[str, str] = {}
        # The first order of a run on several nodes has no addresses and ports yet: they come with the final
        # order.
        self.is_multi_node = not order["go"]
        # Path of an input -> its path without links, and the device and inode of what was seen there.
        self.inputs: dict[str, tuple[str, int, int]] = {}
        # Path at which a share is mounted on this node -> its name, and whether nobody may write into it;
        # and the name of an input that lies in one -> its path.
        self.shares: dict[str, tuple[str, bool]] = {}
        self.share_paths: dict[str, str] = {}
        # Name of an input that was downloaded -> its path; and the folder of all of them, "" without any.
        self.downloads: dict[str, str] = {}
        self.data_tree = ""
        # Those by reference, which are renewed while the ranks run.
        self.references: References | None = None
        self.wrappers: dict[int, int] = {}
        self.launcher: int | None = None
        self.launcher_status: int | None = None
        self.locks: list[int] = []
        self.namespaces: Namespaces | None = None
        self.group: Group | None = None
        self.image_variables: dict[str, str] | None = None
        self.running_since: float | None = None
        self.state: dict[str, Any] = {
            "phase_at": {},
            "error": "",
            "error_kind": "",
            "stopping": "",
            "warnings": [],
            "versions": {},
            "changed_inputs": [],
            "ended": False,
        }
        self._has_failed = False

    @property
    def processes(self) -> list[dict[str, Any]]:
        return list(self.order["command"]["processes"])

    @property
    def input_paths(self) -> dict[str, str]:
        """The paths of the inputs that are read where they lie, by their names."""
        return {**self.order.get("inputs", {}), **self.share_paths}

    @property
    def grace_s(self) -> float:
        return float(self.order["grace_s"])

    @property
    def is_head(self) -> bool:
        return bool(self.order["head"])

    @property
    def uses_image(self) -> bool:
        """Whether the ranks run in a container."""
        return bool(self.order["environment"]["kind"] == IMAGE)

    @property
    def uses_mpi(self) -> bool:
        """Whether mpirun starts the ranks, here or from the head."""
        return bool(self.order["command"]["launcher"]) or any(
            STARTED_BY_MPI in process["provided"] for process in self.processes
        )

    def run_step(self, step: Callable[[Gang], None]) -> None:
        """Runs one step of the start. A failure is stored in the state and not raised, and all later steps
        are skipped."""
        if self._has_failed:
            return
        try:
            step(self)
        except PreparationFailed as error:
            self._has_failed = True
            self.fail(error)
        except StopRequested:
            self._has_failed = True
            self.log("Stopped before the processes were started.")
            self.save()

    def enter(self, phase: str) -> None:
        self.state["phase_at"].setdefault(phase, time.time())
        self.save()

    def fail(self, error: PreparationFailed) -> None:
        self.state["error"] = self._with_share_names(error.sentence)
        self.state["error_kind"] = error.kind
        self.log(f"Failed: {error.sentence}")
        self.save()

    def warn(self, sentence: str) -> None:
        if sentence not in self.state["warnings"]:
            self.state["warnings"].append(sentence)
            self.save()

    def note_changed_input(self, name: str) -> None:
        """To be called for an input whose files are not exactly those of its version."""
        self.state["changed_inputs"].append(name)
        self.save()

    def end(self) -> None:
        """To be called when no process of the attempt lives any more."""
        if self.references is not None:
            self.references.remove()
        self.state["ended"] = True
        self.state["ended_at"] = time.time()
        self.save()

    def save(self) -> None:
        records.write(self.folder.state, self.state)

    def stop_request(self) -> dict[str, Any] | None:
        try:
            request: JsonObject | None = records.read(self.folder.stop)
        except records.UnreadableRecord:
            # The agent writes the request in one rename, so a record that cannot be read was damaged from
            # outside. Nobody would ever stop such an attempt, so it ends now.
            return {"why": "orphan", "grace_s": self.grace_s}
        return request

    def check_stop(self) -> None:
        """Raises StopRequested after a stop request."""
        request = self.stop_request()
        if request is not None:
            self.state["stopping"] = request["why"]
            raise StopRequested

    def log(self, sentence: str) -> None:
        """Writes a line to the preparation log, which the user reads."""
        text = f"{time.strftime('%H:%M:%S', time.gmtime())} {self._with_share_names(sentence)}\n"
        append_to_file(self.folder.log(PREPARATION_LOG), text.encode(errors="backslashreplace"))

    def _with_share_names(self, sentence: str) -> str:
        """People know a share by its server, and not by where this node has mounted it."""
        for path, (name, _) in self.shares.items():
            sentence = sentence.replace(path, name)
        return sentence


def append_to_file(path: str, data: bytes) -> None:
    # O_NOFOLLOW: the folder may be the run's, and a link there must not lead this process, which may be root,
    # to another file.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.write(fd, data)
    except OSError as error:
        # A full disk must not end the supervision of ranks that still train. The line is lost.
        if error.errno not in records.DISK_FULL:
            raise
    finally:
        os.close(fd)
