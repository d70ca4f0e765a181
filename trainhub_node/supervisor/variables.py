"""The environment of a rank: the plan's variables over an allow-list of the agent's, and nothing else of
the agent."""

from __future__ import annotations

import os

from trainhub_launch.json_types import JsonValue
from trainhub_node.supervisor import stop_notices
from trainhub_node.supervisor.gang import Gang, PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# What the interpreter of the agent itself may need.
LIBRARIES = ("LD_LIBRARY_PATH",)
BASE = (
    "PATH",
    "HOME",
    "LANG",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "USER",
)  # trainhub_launch.plan.BASE_ENVIRONMENT; a test compares
# Below the cache folder of an account. The defaults of the first two name the account as the machine's files
# do, or lie in /tmp.
CACHES = {
    "TORCHINDUCTOR_CACHE_DIR": "torchinductor",
    "TRITON_CACHE_DIR": "triton",
    "MPLCONFIGDIR": "matplotlib",
    "XDG_CACHE_HOME": "",
}
HUB_TRACKING_URI = {
    "kind": "launch",
    "name": "url",
}  # what the plan says where the tracking server is the hub
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def base_environment(account: Mapping[str, Any] | None) -> dict[str, str]:
    # Not the agent's whole environment: it may hold the node's token, proxies with passwords, or paths of the
    # agent's own installation.
    env = {name: os.environ[name] for name in BASE if name in os.environ}
    env.setdefault("PATH", DEFAULT_PATH)
    if "HOME" not in env:
        # A service manager may give none, and Open MPI 5 does not start without.
        env["HOME"] = os.path.expanduser("~")
    if account is not None:
        env |= {"HOME": account["home"], "USER": account["name"]}
    return env


def _cache_variables(home: str) -> dict[str, str]:
    """Returns the variables for programs that ask for the account by its number, or write next to their own
    files."""
    return {name: f"{home}/.cache/{folder}".rstrip("/") for name, folder in CACHES.items()}


def _image_environment(gang: Gang, image: Mapping[str, str]) -> dict[str, str]:
    """Returns what a run in a container has before the plan's variables: those of its image, and nothing of
    the node's but a home."""
    account, home = gang.terms["account"], gang.folder.home
    name = account["name"] if account is not None else os.environ.get("USER", "")
    env = {"PATH": DEFAULT_PATH, **image, "HOME": home, **_cache_variables(home)}
    return env | ({"USER": name, "LOGNAME": name} if name else {})


def _home_variables(home: str, original: str) -> dict[str, str]:
    """Returns the variables of a run that has the agent's account and a home of its own, because it may not
    write into the account's (`original`). Packages that the account has installed for itself stay there."""
    return {"HOME": home, "PYTHONUSERBASE": f"{original}/.local", **_cache_variables(home)}


def process_environment(gang: Gang, planned: Mapping[str, Any], python: str) -> dict[str, str]:
    """Returns the whole environment of one process. Raises PreparationFailed for an unknown reference."""
    # The order's values are secrets such as the run's token: they are in no plan, because plans are stored
    # and shown.
    sites = gang.terms["sites"]
    values = {
        **gang.order["values"],
        **{f"secret:{name}": value for name, value in gang.secrets.items()},
        "launch:work_dir": gang.folder.work,
        "launch:node_dir": sites,
    }
    # An order that says nothing of checkpoints still has a plan with the folder of them.
    place = (gang.order.get("checkpoint") or {"folder": "checkpoints"})["folder"]
    values["launch:checkpoint_dir"] = f"{gang.folder.work}/{place}"
    inputs = {**gang.input_paths, **gang.downloads}
    values |= {f"launch:input_{name}": path for name, path in inputs.items()}
    if gang.references is not None:
        values |= gang.references.values
    account, isolation = gang.terms["account"], gang.terms.get("isolation")
    image = gang.image_variables
    env = base_environment(account) if image is None else _image_environment(gang, image)
    if isolation and image is None:
        if isolation["namespaces"]:
            # The agent's may name a folder that the run does not see; it has its own /tmp.
            env.pop("TMPDIR", None)
        if isolation.get("agent_account"):
            env |= _home_variables(gang.folder.home, env["HOME"])
        elif isolation["own_account"]:
            env |= {"LOGNAME": account["name"], **_cache_variables(account["home"])}
    search_path = gang.activation.get("PATH", "")
    env |= {name: value for name, value in gang.activation.items() if name != "PATH"}
    for name, value in planned.items():
        env[name] = value if isinstance(value, str) else _resolve(name, value, values)
    env |= _ca_variables(gang.terms.get("ca", ""), planned)
    env[stop_notices.STOP_VARIABLE] = gang.folder.stop_notice
    env[stop_notices.PREEMPTION_VARIABLE] = gang.folder.preemption
    python_path = planned.get("PYTHONPATH")
    if isinstance(python_path, str):
        env["PYTHONPATH"] = f"{sites}:{python_path}" if python_path else sites
    if image is not None:
        if env.get("PYTHONPATH") == sites and image.get("PYTHONPATH"):
            env["PYTHONPATH"] = f"{sites}:{image['PYTHONPATH']}"
        return env
    folder = os.path.dirname(python)
    # First on the PATH: `python` and `pip` in a script are those of the run's environment.
    env["PATH"] = ":".join(filter(None, (folder, search_path, env["PATH"])))
    environment = os.path.dirname(folder)
    if os.path.exists(f"{environment}/pyvenv.cfg"):
        env["VIRTUAL_ENV"] = environment
    return env


def _ca_variables(ca: str, planned: Mapping[str, JsonValue]) -> dict[str, str]:
    """Returns the variables that make clients of the hub trust its own authority (the file `ca`).

    A variable that all of requests or OpenSSL obeys would make every other host untrusted."""
    if not ca:
        return {}
    variables = {"TRAINHUB_CA_FILE": ca}
    is_unset = not planned.keys() & {"MLFLOW_TRACKING_SERVER_CERT_PATH", "MLFLOW_TRACKING_INSECURE_TLS"}
    if is_unset and planned.get("MLFLOW_TRACKING_URI") == HUB_TRACKING_URI:
        variables["MLFLOW_TRACKING_SERVER_CERT_PATH"] = ca
    return variables


def _resolve(name: str, reference: Mapping[str, str], values: Mapping[str, str]) -> str:
    key = f"{reference['kind']}:{reference['name']}"
    if key not in values:
        raise PreparationFailed("launch", f"The plan sets {name} to {key}, which the hub did not give.")
    return values[key]


def find_program(program: str, path: str) -> str | None:
    """Returns the path of `program` on the search path, or None."""
    for folder in path.split(":"):
        candidate = f"{folder}/{program}"
        if os.path.isfile(candidate) and os.access(candidate, os.X_OK):
            return candidate
    return None
