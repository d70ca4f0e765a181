"""The processes that `up --demo` starts besides the hub: agents of machines with simulated GPUs, and a
visitor who trains on them."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import sys
import time
from pathlib import Path

import simulator
from simulator import NoCompiler
from simulator.demo.fleet import FLEET, Machine, Moment
from trainhub import installation
from trainhub.demo import files
from trainhub.demo.files import FACTS
from trainhub.files import secrets_keyring, write_secret
from trainhub.up.children import Child, python
from trainhub.up.console import Stop
from trainhub.up.stack import WORKING_STAGE

# The visitor leaves first: its runs are canceled while there are still agents to end them.
VISITOR_STAGE = WORKING_STAGE + 1
MACHINES = installation.DATA_DIR / "machines"
SCENARIOS = installation.DATA_DIR / "scenarios"
LIBRARY = installation.DATA_DIR / "simulator"
PASSWORD = installation.DATA_DIR / "demo-password"
# How long killed trainings may take to end, and how often this is looked at.
LEFTOVERS_END_S, LEFTOVERS_PAUSE_S = 20.0, 0.05
TRAINING = Path(simulator.__file__).parent / "demo" / "training"


def check() -> None:
    """Raises Stop if the data folder belongs to a real installation, or if the simulation cannot run here."""
    if installation.SECRET_KEY_FILE.exists() and not FACTS.exists():
        raise Stop(
            f"{installation.DATA_DIR} contains a TrainHub that is not a demo. Set DEMO_DIR to another folder."
        )
    if not sys.platform.startswith("linux"):
        raise Stop("The demo simulates GPUs of Linux machines, and runs on Linux only.")
    try:
        simulator.library(LIBRARY)
    except NoCompiler as error:
        raise Stop(str(error)) from error


def preparation() -> tuple[str, ...]:
    """Writes the facts of the demo and returns the options of `manage.py prepare`."""
    # Left by a demo that was killed before it could remove its folder.
    files.REMOVE.unlink(missing_ok=True)
    for folder in (MACHINES, SCENARIOS):
        folder.mkdir(exist_ok=True, mode=0o700)
    write_secret(
        FACTS, json.dumps({"nodes": [_facts(machine) for machine in FLEET], "training": str(TRAINING)})
    )
    return ("--demo", str(FACTS))


def demo_children(prepared: dict[str, str]) -> list[Child]:
    if prepared["password"]:
        write_secret(PASSWORD, prepared["password"])
    began = time.time()
    facts = {
        "url": installation.bind().local_url,
        "token": prepared["token"],
        "snapshot": prepared["snapshot"],
        "scenarios": str(SCENARIOS),
        "began": began,
    }
    write_secret(FACTS, json.dumps(facts))
    write_secret(files.SIGN_IN_LINK, secrets.token_urlsafe(24))
    for machine in FLEET:
        machine.scenario(Moment(began, began)).write(SCENARIOS / machine.name)
    visitor = Child(
        "visitor", "demo visitor", python("-m", "simulator.demo.visitor", str(FACTS)), VISITOR_STAGE
    )
    return [*(_agent(machine) for machine in FLEET), visitor]


def notice() -> str:
    gpus = [gpu for machine in FLEET for gpu in machine.scenario(Moment(0, 0)).gpus]
    # Runs get the MIG devices of a split GPU instead of the GPU itself.
    usable = sum(len(gpu.mig) or 1 for gpu in gpus)
    split = f" (pages count {usable}, because MIG splits one or more of them)" if usable > len(gpus) else ""
    return (
        f"This is a demo: its {len(FLEET)} machines and {len(gpus)} GPUs are simulated{split}, and small "
        "trainings start by themselves.\n"
        f"Open it, signed in (once): {_sign_in_link()}\n"
        f"Later, sign in as admin{_password()}\n"
        f"Its data is in a separate folder, {installation.DATA_DIR}; remove it to start over.\n"
        "Ctrl-C stops the demo and everything that it started."
    )


def end_leftovers() -> None:
    """Kills trainings of the demo, and waits for their end. Trainings outlive their agents, but must not
    outlive the demo: what they still wrote would keep its folder from being removed."""
    deadline = time.monotonic() + LEFTOVERS_END_S
    # A process may start another one between the look at all processes and its own end, so this looks again
    # until none is left.
    while leftovers := _trainings():
        if time.monotonic() > deadline:
            numbers = ", ".join(map(str, leftovers))
            raise Stop(f"Trainings of the demo do not end: processes {numbers}. Their files stay.")
        for process in leftovers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        time.sleep(LEFTOVERS_PAUSE_S)


def _trainings() -> list[int]:
    """Returns the processes whose working folder identifies them as trainings of the demo; they run in
    sessions of their own."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if (folder / "cwd").readlink().is_relative_to(MACHINES):
                processes.append(int(folder.name))
        except OSError:
            continue  # it has ended, or is somebody else's
    return processes


def remove_if_asked() -> bool:
    """Removes the folder of the demo if its owner has asked for that in the browser."""
    if not files.REMOVE.exists():
        return False
    shutil.rmtree(installation.DATA_DIR)
    # The keys of its secrets lie beside it, and are made with the first secret.
    shutil.rmtree(secrets_keyring(installation.DATA_DIR).parent, ignore_errors=True)
    return True


def _sign_in_link() -> str:
    secret = files.SIGN_IN_LINK.read_text()
    return f"{installation.public_url()}/demo/sign-in/{secret}/"


def _password() -> str:
    """Returns the stored password as the end of a sentence, or "" before the first start."""
    return f" with the password {PASSWORD.read_text().strip()}" if PASSWORD.exists() else ""


def _agent(machine: Machine) -> Child:
    settings = {
        **simulator.environment(SCENARIOS / machine.name, LIBRARY),
        "TRAINHUB_HUB_URL": installation.bind().local_url,
        "TRAINHUB_HUB_CA": "",
        "TRAINHUB_NODE_NAME": machine.name,
        "TRAINHUB_NODE_TOKEN_FILE": str(_token_file(machine)),
        "TRAINHUB_NODE_DIR": str(MACHINES / machine.name),
        "TRAINHUB_NODE_CACHE": str(MACHINES / "cache"),
        # The hub's own interpreter, for its numpy: nothing has to be installed for the demo's trainings.
        "TRAINHUB_NODE_PYTHON": sys.executable,
        "TRAINHUB_NODE_RUN_AS": "",
        # All of these machines are this one, whose owner runs nothing but the demo's own trainings.
        "TRAINHUB_NODE_NAMESPACES": "off",
        "TRAINHUB_NODE_CONTAINERS": "off",
    }
    name, argv = f"agent-{machine.name}", python("-m", "trainhub_node", "run")
    return Child(name, f"agent of {machine.name}", argv, WORKING_STAGE, env=settings)


def _facts(machine: Machine) -> dict[str, object]:
    """Returns what `manage.py prepare` needs to know of a machine. GPUs that MIG splits have no past."""
    gpus = machine.scenario(Moment(0, 0)).gpus
    return {
        "cluster": machine.cluster,
        "name": machine.name,
        "token_file": str(_token_file(machine)),
        "gpus": []
        if any(gpu.mig for gpu in gpus)
        else [
            {
                "uuid": gpu.uuid,
                "index": index,
                "name": gpu.name,
                "memory_bytes": gpu.values["memory_total_bytes"],
            }
            for index, gpu in enumerate(gpus)
        ],
    }


def _token_file(machine: Machine) -> Path:
    return MACHINES / f"{machine.name}.token"
