"""Builds an image from a Dockerfile with podman, and uploads it part by part.

Foreign code runs in it as root of a container, and podman itself in the user namespace of that container,
where root is no account of the machine; see `build_namespaces`. Everything is in a store of this build's own,
which is removed at its end: no build sees an image of another one. All of it runs in namespaces of mounts and
processes that end with it: whoever is killed, no container, mount or process of the build is left."""

from __future__ import annotations

import os
import re
import stat
import sys
import time

import trainhub_node
from trainhub_node import records
from trainhub_node.containers.engine import PODMAN, PROXIES, UNSHARE, Engine
from trainhub_node.environments import engine_call, process_wait
from trainhub_node.environments.images import LOGIN_REFUSED, pull_failure
from trainhub_node.environments.making import build_namespaces
from trainhub_node.environments.making.base_login import NO_LOGIN, login_of_build
from trainhub_node.environments.making.build_folders import podman_folder
from trainhub_node.environments.making.build_progress import StepProgress
from trainhub_node.environments.making.hub_upload import HubUpload
from trainhub_node.environments.making.registry_probe import SILENCE_S, is_silent_registry
from trainhub_node.supervisor.gang import Gang, PreparationFailed
from trainhub_node.untrusted import removal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TAG = "localhost/trainhub-build:1"
NAMESPACES = ("--pid", "--fork", "--kill-child=KILL", "--mount", "--mount-proc", "--propagation=private")
# As this process was started.
PYTHON = (sys.executable, "-I", "-S", "-X", "utf8")
BOOTSTRAP = f"{os.path.dirname(trainhub_node.__file__)}/bootstrap.py"
# What podman writes of a RUN line that fails, and its own lines in the log.
EXIT_STATUS = re.compile(r"building at STEP .*(exit status [0-9]+)\Z")
# podman only warns of an image that is alone in its registry, for another CPU.
OTHER_PLATFORM = re.compile(r"image platform \(\{(\w+) .*\) does not match the expected platform")
OWN_LINE = re.compile(r"(\[[0-9]+/[0-9]+\] )?STEP |Error: |error building at STEP |time=\"|\+ ")
# Where podman looks for its policy.
POLICIES = ("{home}/.config/containers/policy.json", "/etc/containers/policy.json")
# The sizes of layers: more free space than this must stay on the disk.
MIN_FREE_BYTES = 512 * 2**20
OVERLAY_KERNEL = (5, 11)
# Lines of the build's log.
BUILDING, WRITING = "Building the image.", "Writing the layers of the image."


def make(gang: Gang) -> None:
    """Builds and uploads the image. Raises PreparationFailed, and StopRequested."""
    terms = gang.terms.get("engine")
    if terms is None or terms["name"] != PODMAN:
        raise PreparationFailed(
            "environment", f"Node {gang.terms['node']} has no podman, which builds images."
        )
    folder = f"{gang.terms['image_builds']}/{gang.folder.run}"
    os.makedirs(gang.terms["image_builds"], 0o700, exist_ok=True)
    removal.remove_tree(folder)
    for name in ("context", "temporary", "home"):
        os.makedirs(f"{folder}/{build_namespaces.OWN}/{name}", 0o700)
    os.mkdir(f"{folder}/{build_namespaces.HOLDER}", 0o700)
    run = podman_folder(gang.folder.run)
    os.mkdir(run, 0o700)
    try:
        _Build(gang, Engine.from_terms(terms), folder, run).run()
    except OSError as error:
        raise PreparationFailed(
            "environment", f"The image could not be built on this node: {error.strerror or error}."
        ) from error
    finally:
        removal.remove_tree(folder)
        removal.remove_tree(run)


class _Build:
    """`folder`: everything of the build; `run`: podman's folder for what lives only as long as it. In the
    namespaces of the build only a part of `folder` can be reached, as `self._place`."""

    def __init__(self, gang: Gang, engine: Engine, folder: str, run: str) -> None:
        self._gang = gang
        self._make: dict[str, Any] = gang.order["make"]
        self._engine = engine
        self._folder = folder
        self._run_folder = run
        self._own = f"{folder}/{build_namespaces.OWN}"
        self._place = f"{run}/{build_namespaces.OWN}"
        self._limit_s = float(self._make["timeout_s"])
        self._deadline = time.monotonic() + self._limit_s
        self._is_full = False
        self._login = NO_LOGIN

    def run(self) -> None:
        with open(f"{self._own}/Dockerfile", "w", encoding="utf-8") as file:
            file.write(str(self._make["dockerfile"]))
        self._check_registries()
        self._gang.log("Building the image with podman.")
        with login_of_build(self._gang, self._run_folder) as self._login:
            push = ["push", "--quiet", TAG, f"oci:{self._place}/image"]
            self._call((BUILDING, self._build_command()), (WRITING, push))
        self._check_layout()
        self._upload()

    def _check_registries(self) -> None:
        """Raises PreparationFailed for one that is silent. Behind a proxy only podman reaches them."""
        if any(self._engine.variables.get(name) for name in PROXIES if name.upper() != "NO_PROXY"):
            return
        for registry in self._make.get("registries", ()):
            self._gang.check_stop()
            if is_silent_registry(str(registry)):
                raise PreparationFailed(
                    "environment",
                    f"The registry {registry} takes connections, but sent nothing within {SILENCE_S:.0f} s. "
                    "Check its name and port, or try again later.",
                )

    def _build_command(self) -> list[str]:
        # Its passwords would be in the variables of every RUN line.
        has_password = any("@" in self._engine.variables.get(name, "") for name in PROXIES)
        return [
            "build",
            "--no-cache",
            "--layers=false",
            "--force-rm",
            "--format=oci",
            f"--signature-policy={self._policy()}",
            *self._login.options,
            f"--http-proxy={'false' if has_password else 'true'}",
            f"--tag={TAG}",
            f"--network={build_namespaces.NETWORK}",
            f"--file={self._place}/Dockerfile",
            f"{self._place}/context",
        ]

    def _policy(self) -> str:
        """Writes the policy of this build: images come from registries only, as the node's own policy permits
        them, and from no file or store of the node. Returns its path."""
        own: dict[str, Any] = {}
        for place in POLICIES:
            path = place.format(home=self._engine.variables.get("HOME", ""))
            if os.path.exists(path):
                own = records.read(path) or {}
                break
        registries = dict(own.get("transports", {}).get("docker", {}))
        registries.setdefault("", own.get("default") or [{"type": "insecureAcceptAnything"}])
        records.write(
            f"{self._own}/policy.json",
            {"default": [{"type": "reject"}], "transports": {"docker": registries}},
        )
        return f"{self._place}/policy.json"

    def _call(self, *commands: tuple[str, list[str]]) -> None:
        """Calls podman in the namespaces of the build, with one command after the other."""
        options = [
            f"--root={self._place}/store",
            f"--runroot={self._run_folder}/{build_namespaces.RUNTIME}",
            f"--tmpdir={self._run_folder}/{build_namespaces.RUNTIME}/libpod",
            f"--storage-driver={'overlay' if _has_overlay() else 'vfs'}",
        ]
        request = {
            "engine": self._engine.to_terms(),
            "commands": [[title, [self._engine.program, *options, *words]] for title, words in commands],
            "folder": self._folder,
            "run_folder": self._run_folder,
            "variables": {"TMPDIR": f"{self._place}/temporary"},
        }
        records.write(f"{self._folder}/{build_namespaces.REQUEST}", request)
        command = [UNSHARE, *NAMESPACES, *PYTHON, BOOTSTRAP, "image-build", self._folder]
        variables = self._engine.variables
        progress = StepProgress(self._gang)

        def on_poll() -> None:
            progress.read()
            disk = os.statvfs(self._folder)
            if disk.f_bavail * disk.f_frsize < MIN_FREE_BYTES:
                self._is_full = True
                raise engine_call.EngineTimeout

        try:
            code = engine_call.call_with_log(
                self._gang,
                command,
                variables,
                timeout_s=self._deadline - time.monotonic(),
                on_poll=on_poll,
                ends_with_parent=True,
            )
        except engine_call.EngineTimeout as error:
            raise PreparationFailed("environment", self._end_sentence()) from error
        progress.read()
        if code:
            raise PreparationFailed("environment", self._failure(progress, code))

    def _end_sentence(self) -> str:
        if self._is_full:
            node = self._gang.terms["node"]
            return f"The disk of node {node} became full. Make the image smaller, or free space there."
        return (
            f"Building took longer than {self._limit_s:.0f} s, the limit of this installation "
            "(ENVIRONMENT_BUILD_TIMEOUT). Do less in the Dockerfile, or ask an operator to raise it."
        )

    def _failure(self, progress: StepProgress, code: int) -> str:
        lines = process_wait.log_tail(self._gang)
        is_building = WRITING not in lines
        if progress.instruction.startswith("FROM "):
            image = progress.instruction.split()[1]
            reason = pull_failure(lines)
            reason = self._login.refusal if reason == LOGIN_REFUSED else reason
            return f"The base image {image} could not be pulled: {reason}."
        platform = next((match[1] for line in lines if (match := OTHER_PLATFORM.search(line))), "")
        if platform:
            return (
                f"A base image is for {platform}, and the nodes need amd64: what is in it does not run here. "
                f"Step {progress.step} failed: {progress.instruction[:300]}. Name an image for linux/amd64."
            )
        status = next((match[1] for line in reversed(lines) if (match := EXIT_STATUS.search(line))), "")
        if is_building and status:
            last_line = next((line for line in reversed(lines) if not OWN_LINE.match(line)), "")
            last = f" Its last line: {last_line[:300]}" if last_line else ""
            return f"Step {progress.step} ended with {status}: {progress.instruction[:300]}.{last}"
        errors = [line for line in lines if line.lower().startswith("error")]
        reason = (
            (errors or lines or [f"podman ended with code {code}"])[-1].removeprefix("Error: ").rstrip(".")
        )
        if is_building and progress.instruction:
            return f"Step {progress.step} failed: {progress.instruction[:300]}: {reason}."
        return f"podman failed while {'building' if is_building else 'writing'} the image: {reason}."

    def _check_layout(self) -> None:
        """Raises PreparationFailed for an image with links or devices among its files: they belong to an
        account that is not to be trusted, and are read as root. No process of it is left."""
        for parent, folders, files in os.walk(f"{self._own}/image"):
            for name in (*folders, *files):
                mode = os.lstat(f"{parent}/{name}").st_mode
                if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                    raise PreparationFailed(
                        "environment", f"The build made {name}, which is no part of an image."
                    )

    def _upload(self) -> None:
        layout = f"{self._own}/image"
        index = records.read(f"{layout}/index.json") or {}
        digest = str(index["manifests"][0]["digest"])
        manifest = records.read(_blob(layout, digest)) or {}
        parts = [str(part["digest"]) for part in (*manifest["layers"], manifest["config"])] + [digest]
        size = sum(os.stat(_blob(layout, part)).st_size for part in dict.fromkeys(parts))
        if size > int(self._make["max_bytes"]):
            raise PreparationFailed(
                "environment",
                f"The image has {size:,} bytes, and at most {self._make['max_bytes']:,} are kept "
                "(MAX_ENVIRONMENT_BUILD_BYTES). Make it smaller, or ask an operator to raise that.",
            )
        upload = HubUpload(self._gang)
        for number, part in enumerate(dict.fromkeys(parts), 1):
            sha256 = part.removeprefix("sha256:")
            is_sent = upload.put(_blob(layout, part), sha256)
            sentence = "was uploaded" if is_sent else "is on the hub already"
            self._gang.log(f"Part {number} of {len(set(parts))} {sentence}.")
        upload.finish({"digest": digest})
        self._gang.log("The hub has the image.")


def _has_overlay() -> bool:
    """Returns whether the kernel mounts overlays in user namespaces: since Linux 5.11."""
    release = re.match(r"(\d+)\.(\d+)", os.uname().release)
    return release is not None and (int(release[1]), int(release[2])) >= OVERLAY_KERNEL


def _blob(layout: str, digest: str) -> str:
    return f"{layout}/blobs/{digest.replace(':', '/')}"
