"""Makes sure that an image is on this node before the ranks start, and reads which variables it sets."""

from __future__ import annotations

import os

from trainhub_launch.log_names import ENVIRONMENT_LOG
from trainhub_node import records
from trainhub_node.containers.engine import Engine
from trainhub_node.environments import engine_call, process_wait, registry_login
from trainhub_node.supervisor.gang import Gang, PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INSPECT_TIMEOUT_S = 60.0
# Large images come over slow lines; the run can be cancelled at any time before.
PULL_TIMEOUT_S = 3 * 3600.0
RECORD = ".image.json"
# In the record of an image that the agent itself has pulled: by which engine, under which name.
PULLED = "pulled"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64", "ppc64le": "ppc64le", "s390x": "s390x"}
LOGIN_REFUSED = "its registry refuses the login, or wants one. Check the registry's user and password"
# What engines and registries say -> what is wrong and what to do. The first that occurs counts.
CAUSES = (
    (("no space left on device",), "the disk of this node is full. Free space where its engine keeps images"),
    (
        ("no image found in", "no matching manifest", "exec format error"),
        "its registry has none for the CPU of this node ({architecture}). Name an image that is built for it",
    ),
    (
        ("unauthorized", "authentication required", "access to the resource is denied", "403 (forbidden)"),
        LOGIN_REFUSED,
    ),
    (
        ("manifest unknown", "name unknown", "not found", "repository does not exist", "404"),
        "its registry does not have it (any more). Check the reference, and make a new version of the "
        "environment",
    ),
    (
        ("502 (bad gateway)", "502 bad gateway"),
        "the hub could not get it from its registry, which does not answer or no longer has it. Try again "
        "once the registry answers",
    ),
    (
        ("no such host", "connection refused", "no route to host", "i/o timeout", "network is unreachable"),
        "this node does not reach its registry ({error})",
    ),
)


def image_variables(gang: Gang, engine: Engine) -> dict[str, str]:
    """Returns the variables that the image of the run sets, and pulls the image if this node has never used
    it. Raises PreparationFailed, and StopRequested."""
    path = _record_path(gang)
    variables: dict[str, str] | None = (records.read(path) or {}).get("variables")
    if variables is None:
        return fetch_image(gang, engine)
    # The time of the last use, by which the agent removes images.
    os.utime(path)
    return variables


def fetch_image(gang: Gang, engine: Engine) -> dict[str, str]:
    """Returns the same after asking the engine, which pulls the image if it has not got it."""
    image = gang.order["environment"]["image"]
    name = registry_login.image_name(gang.order)
    inspected = _inspect(gang, engine, name)
    mark = [engine.name, name]
    is_ours = inspected is None or (records.read(_record_path(gang)) or {}).get(PULLED) == mark
    if inspected is None:
        _pull(gang, engine, image)
        inspected = _inspect(gang, engine, name)
    if inspected is None:
        raise PreparationFailed(
            "environment", f"{engine.name} has pulled {image['reference']}, but does not know it."
        )
    architecture, variables = inspected
    own = _architecture()
    if architecture and architecture != own:
        raise PreparationFailed(
            "environment",
            f"The image {image['reference']} is built for the CPU {architecture}, and this node has {own}. "
            "Name an image that is built for it.",
        )
    records.write(_record_path(gang), {"variables": variables} | ({PULLED: mark} if is_ours else {}))
    return variables


def _record_path(gang: Gang) -> str:
    return f"{gang.terms['environments']}/{gang.terms['digest']}{RECORD}"


def _architecture() -> str:
    machine = os.uname().machine
    return ARCHITECTURES.get(machine, machine)


def _inspect(gang: Gang, engine: Engine, image: str) -> tuple[str, dict[str, str]] | None:
    """Returns the CPU and the variables of the image; None if the engine has not got it."""
    try:
        result = engine_call.call_engine(
            gang, engine.image_command(image), engine.variables, timeout_s=INSPECT_TIMEOUT_S
        )
    except engine_call.EngineTimeout as error:
        raise _failure(gang, engine, "it did not answer within a minute") from error
    if result.code != 0:
        if any("no such image" in line.lower() or "not known" in line for line in result.errors):
            return None
        raise _failure(gang, engine, result.last_error)
    architecture, _, entries = result.output.partition(" ")
    loaded: Any = records.loads_text(entries)
    pairs = (str(entry).partition("=") for entry in loaded or ())
    return str(records.loads_text(architecture)), {name: value for name, _, value in pairs}


def _failure(gang: Gang, engine: Engine, reason: str) -> PreparationFailed:
    return PreparationFailed(
        "environment", f"{engine.name} does not work on node {gang.terms['node']}: {reason}."
    )


def _pull(gang: Gang, engine: Engine, image: dict[str, Any]) -> None:
    gang.log(f"Pulling the image {image['reference']}; see {ENVIRONMENT_LOG}.")
    try:
        with registry_login.RegistryLogin(gang, engine) as login:
            code = engine_call.call_with_log(gang, login.command, engine.variables, timeout_s=PULL_TIMEOUT_S)
    except engine_call.EngineTimeout as error:
        raise PreparationFailed(
            "environment",
            f"The image {image['reference']} could not be pulled within {PULL_TIMEOUT_S / 3600:.0f} hours.",
        ) from error
    if code == 0:
        gang.log("The image was pulled.")
        return
    lines = process_wait.log_tail(gang)
    reason = pull_failure(lines)
    raise PreparationFailed("environment", f"The image {image['reference']} could not be pulled: {reason}.")


def pull_failure(lines: list[str]) -> str:
    """Returns why an engine that wrote these lines could not pull an image, as a part of a sentence."""
    errors = [line for line in lines if line.lower().startswith(("error", "fatal")) or "level=error" in line]
    text = " ".join(errors or lines[-1:]).lower()
    error = (errors or lines or ["it wrote no message"])[-1].removeprefix("Error: ").rstrip(".")
    for signs, cause in CAUSES:
        if any(sign in text for sign in signs):
            return cause.format(architecture=_architecture(), error=error)
    return error
