"""The container engine of a node, and the commands that it is called with.

Nothing secret is in them: other accounts can see arguments, and `inspect` shows them for as long as the
container exists."""

from __future__ import annotations

import os

from trainhub_node.containers.gpus import gpu_options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

PODMAN, DOCKER = NAMES = ("podman", "docker")
OFF = "off"
# Starts a program in namespaces that end with it; of util-linux, which every Linux has.
UNSHARE = "/usr/bin/unshare"
# Where the program that keeps a container alive stands in it.
HOLDER_PLACE = "/run/trainhub-holder"
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy")
AGENT_LABEL, RUN_LABEL, ATTEMPT_LABEL = "trainhub.agent", "trainhub.run", "trainhub.attempt"
PREFIX = "trainhub"
# Stands for the run in the name of a container that only tries the engine.
TRIAL = "trial"
# An account without rights, for the process that keeps the container of a root agent alive.
NOBODY = "65534:65534"
UNABLE_TO_EXPRESS = ',"\n'

# What docker writes below an error, by its versions.
HINTS = ("Run 'docker ", "See 'docker ")


class EngineError(Exception):
    """The engine could not do what was asked; the message says why, as a part of a sentence."""


def error_lines(text: str) -> list[str]:
    """Returns the lines of what an engine has written to its error output, without empty ones and hints at
    its manual."""
    lines = [line.strip() for line in text.splitlines()]
    return [line for line in lines if line and not line.startswith(HINTS)]


class Mount:
    """A file or folder of the machine that stands in a container, at the same path unless `target` names
    another."""

    def __init__(self, source: str, target: str = "", *, is_read_only: bool = False) -> None:
        self.source = source
        self.target = target or source
        self.is_read_only = is_read_only

    def argument(self) -> str:
        """Returns the value of `--mount`. Raises EngineError for a path that it cannot express."""
        for path in (self.source, self.target):
            if set(path) & set(UNABLE_TO_EXPRESS):
                raise EngineError(f"the path {path} has a comma, a quotation mark or a line break")
        text = f"type=bind,source={self.source},destination={self.target}"
        return f"{text},readonly" if self.is_read_only else text


class Engine:
    """`program`: its path; `holder`: that of the program which keeps a container alive. `variables`: the
    environment of calls. `agent`: the mark of this node's containers."""

    def __init__(
        self, name: str, program: str, holder: str, variables: Mapping[str, str], agent: str
    ) -> None:
        self.name = name
        self.program = program
        self.holder = holder
        self.variables = dict(variables)
        self.agent = agent

    def to_terms(self) -> dict[str, object]:
        return {
            "name": self.name,
            "program": self.program,
            "holder": self.holder,
            "variables": self.variables,
            "agent": self.agent,
        }

    @classmethod
    def from_terms(cls, terms: Mapping[str, Any]) -> Engine:
        names = ("name", "program", "holder", "variables", "agent")
        return cls(*(terms[name] for name in names))

    @property
    def start_variables(self) -> dict[str, str]:
        """The environment of a call that starts a container: podman would pass the proxies on to it, where
        `inspect` shows them with their passwords."""
        return {name: value for name, value in self.variables.items() if name not in PROXIES}

    def container_name(self, run: str, attempt: int) -> str:
        return f"{PREFIX}-{run}-{attempt}-{self.agent}"

    def start_command(
        self,
        image: str,
        run: str,
        attempt: int,
        mounts: Iterable[Mount],
        *,
        devices: Iterable[str] = (),
        gpus: Sequence[str] = (),
        gpus_by_cdi: bool = True,
        pid_file: str,
    ) -> list[str]:
        """Returns the command that starts a container in which nothing happens. `gpus_by_cdi`: see
        `gpu_options`. Raises EngineError."""
        is_root = os.geteuid() == 0
        labels = {AGENT_LABEL: self.agent, RUN_LABEL: run, ATTEMPT_LABEL: str(attempt)}
        holder = Mount(self.holder, HOLDER_PLACE, is_read_only=True)
        command = [self.program, "run", "--detach", "--pull=never"]
        command += [f"--name={self.container_name(run, attempt)}"]
        command += [f"--label={key}={value}" for key, value in labels.items()]
        # Ranks stay in the network that they have without a container. The image's own user, folder and
        # health check concern programs that the engine starts.
        command += ["--network=host", "--cap-drop=all", "--no-healthcheck", "--log-driver=none"]
        command += ["--security-opt=no-new-privileges", "--security-opt=label=disable", "--workdir=/"]
        command += [f"--user={NOBODY if is_root else f'{os.geteuid()}:{os.getegid()}'}"]
        command += [f"--mount={mount.argument()}" for mount in (holder, *mounts)]
        command += [f"--device={device}" for device in devices]
        command += gpu_options(gpus, by_cdi=gpus_by_cdi)
        if self.name == PODMAN:
            command += [f"--pidfile={pid_file}", "--systemd=false", "--image-volume=ignore"]
            # The kernel lets an account that is not root mount /proc only where no part of it is covered.
            command += [] if is_root else ["--userns=keep-id", "--security-opt=unmask=ALL"]
            return [*command, f'--entrypoint=["{HOLDER_PLACE}","-P"]', image]
        return [*command, f"--entrypoint={HOLDER_PLACE}", image, "-P"]

    def info_command(self) -> list[str]:
        """Returns the command that prints what the engine knows about itself, as JSON."""
        return [self.program, "info", "--format={{json .}}"]

    def pid_command(self, run: str, attempt: int) -> list[str]:
        return [self.program, "inspect", "--format={{.State.Pid}}", self.container_name(run, attempt)]

    def image_command(self, image: str) -> list[str]:
        return [
            self.program,
            "image",
            "inspect",
            "--format={{json .Architecture}} {{json .Config.Env}}",
            image,
        ]

    def import_command(self, image: str) -> list[str]:
        return [self.program, "import", "-", image]

    def remove_command(self, *containers: str) -> list[str]:
        at_once = ("--time=0",) if self.name == PODMAN else ()
        return [self.program, "rm", "--force", "--volumes", *at_once, *containers]

    def list_command(self) -> list[str]:
        """Returns the command that lists the names of this node's containers, one on a line."""
        label = f"{AGENT_LABEL}={self.agent}"
        return [self.program, "ps", "--all", f"--filter=label={label}", "--format={{.Names}}"]

    def key_of(self, container: str) -> tuple[str, int] | None:
        """Returns run and attempt of a container of this node; None for other names, and for a trial."""
        parts = container.split("-")
        if len(parts) != 4 or (parts[0], parts[3]) != (PREFIX, self.agent) or not parts[2].isdecimal():
            return None
        return (parts[1], int(parts[2])) if parts[1] != TRIAL else None
