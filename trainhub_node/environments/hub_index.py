"""From where a node gets locked packages: from the indexes that its operator has set for the agent, and from
the hub, which keeps the files of each lock and serves them to the nodes of its orders."""

from __future__ import annotations

import json
import os
import time
from urllib import request
from urllib.parse import urlsplit

from trainhub_launch.addresses import is_loopback
from trainhub_node.environments.hub_connection import error_reason, hub_opener, is_refusal, proxy_variables
from trainhub_node.supervisor.gang import Gang, PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

# Variables by which an operator names an index for this node.
OWN_INDEX = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX")
INDEX_OPTIONS = ("--index-url", "--extra-index-url", "--find-links")
USER = "trainhub"
POLL_S = 0.5
LOG_INTERVAL_S = 5.0
# The hub may restart meanwhile.
MAX_OUTAGE_S = 120.0
TIMEOUT_S = 30.0
MAX_ANSWER_BYTES = 2**20
SHOWN_FAILURES = 3


class PackageSource:
    """`pip`, `uv`: the variables that name an index to these programs, in which a password is seen by nobody
    else. `replaces_indexes`: those that the lock names are not asked. `is_hub`: it is the hub's own index."""

    def __init__(
        self, pip: Mapping[str, str], uv: Mapping[str, str], *, replaces_indexes: bool, is_hub: bool = False
    ) -> None:
        self.pip = pip
        self.uv = uv
        self.replaces_indexes = replaces_indexes
        self.is_hub = is_hub


def package_sources(gang: Gang, write: Callable[[str], None]) -> list[PackageSource]:
    """Returns the sources in the order in which they are tried.

    Without an index of the hub, they are what the lock names and pip is set to. Otherwise indexes that the
    operator has set for the agent come first, and the hub's last: it has what they lack."""
    settings = gang.terms["pip"]
    if not gang.order.get("package_index"):
        return [PackageSource(settings, {}, replaces_indexes=False)]
    hub = _hub_source(gang)
    if not any(settings.get(name) for name in OWN_INDEX):
        return [hub]
    write("The settings of this node's agent name a package index: it is asked first, and then the hub.")
    return [PackageSource(settings, _own_variables(settings), replaces_indexes=True), hub]


def without_indexes(lock: str) -> str:
    """Returns the lock without the lines that name indexes."""
    return "".join(
        line for line in lock.splitlines(keepends=True) if not line.lstrip().startswith(INDEX_OPTIONS)
    )


def wait_for_files(gang: Gang, write: Callable[[str], None]) -> None:
    """Lets the hub fetch what it lacks of the lock. Raises PreparationFailed with the file that it cannot get
    and the reason, and StopRequested."""
    next_line_at, outage_since, last = time.monotonic() + LOG_INTERVAL_S, 0.0, ""
    while True:
        now = time.monotonic()
        try:
            answer, outage_since = _ask(gang), 0.0
        except OSError as error:  # of the connection, or of the HTTP client
            outage_since = outage_since or now
            if now - outage_since > MAX_OUTAGE_S or is_refusal(error):
                raise PreparationFailed(
                    "environment", f"The hub's package index does not serve this node: {error_reason(error)}."
                ) from error
            answer = {"files": 1, "ready": 0, "failures": [], "is_outage": True}
        if answer["failures"]:
            raise PreparationFailed("environment", _failure_text(answer["failures"]))
        if answer["ready"] >= answer["files"]:
            return
        sentence = f"The hub fetches the packages: {answer['ready']} of {answer['files']} are there."
        if now > next_line_at and sentence != last and not answer.get("is_outage"):
            write(f"== {sentence}")
            gang.log(sentence)
            next_line_at, last = now + LOG_INTERVAL_S, sentence
        gang.check_stop()
        time.sleep(POLL_S)


def _hub_source(gang: Gang) -> PackageSource:
    index, ticket = f"{gang.order['package_index']}/simple/", gang.order["package_ticket"]
    settings, certificates = gang.terms["pip"], gang.terms["ca"]
    scheme, _, rest = index.partition("://")
    proxies = {} if is_loopback(_host(index)) else proxy_variables(settings)
    folders = settings.get("PIP_FIND_LINKS", "")
    pip = {
        # A file of pip's settings may name indexes that this node cannot reach.
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_INDEX_URL": f"{scheme}://{USER}:{ticket}@{rest}",
        **({"PIP_FIND_LINKS": folders} if folders else {}),
        **({"PIP_CERT": certificates} if certificates else {}),
        **proxies,
    }
    uv = {
        "UV_DEFAULT_INDEX": f"hub={index}",
        "UV_INDEX_HUB_USERNAME": USER,
        "UV_INDEX_HUB_PASSWORD": ticket,
        **_uv_folders(folders),
        **({"SSL_CERT_FILE": certificates} if certificates else {}),
        **proxies,
    }
    return PackageSource(pip, uv, replaces_indexes=True, is_hub=True)


def _own_variables(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns what the operator's variables of pip mean to uv."""
    certificates = settings.get("PIP_CERT", "") or settings.get("SSL_CERT_FILE", "")
    names = {
        "UV_DEFAULT_INDEX": settings.get("PIP_INDEX_URL", ""),
        "UV_INDEX": settings.get("PIP_EXTRA_INDEX_URL", ""),
        "UV_INSECURE_HOST": settings.get("PIP_TRUSTED_HOST", ""),
        "SSL_CERT_FILE": certificates,
        "UV_NO_INDEX": "1" if settings.get("PIP_NO_INDEX", "").lower() in ("1", "true", "yes", "on") else "",
        # The hub has what does not come from there.
        "UV_HTTP_RETRIES": "1",
    }
    variables = {name: value for name, value in names.items() if value}
    return variables | _uv_folders(settings.get("PIP_FIND_LINKS", "")) | proxy_variables(settings)


def _uv_folders(folders: str) -> dict[str, str]:
    # uv ends with an error at a folder that is not there; pip goes on.
    usable = [item for item in folders.split() if "://" in item or os.path.isdir(item)]
    return {"UV_FIND_LINKS": ",".join(usable)} if usable else {}


def _host(url: str) -> str:
    return urlsplit(url).hostname or ""


def _ask(gang: Gang) -> dict[str, Any]:
    url = f"{gang.order['package_index']}/"
    opener = hub_opener(gang, url)
    headers = {"Authorization": f"Bearer {gang.order['package_ticket']}", "Accept": "application/json"}
    with opener.open(request.Request(url, b"", headers), timeout=TIMEOUT_S) as answer:  # noqa: S310
        try:
            data: dict[str, Any] = json.loads(answer.read(MAX_ANSWER_BYTES))
            return {"files": int(data["files"]), "ready": int(data["ready"]), "failures": data["failures"]}
        except (ValueError, KeyError, TypeError) as error:
            raise OSError("its answer is invalid") from error


def _failure_text(failures: list[dict[str, str]]) -> str:
    shown = [f"{item['file']} ({item['reason']})" for item in failures[:SHOWN_FAILURES]]
    further = len(failures) - len(shown)
    more = f" and {further} more" if further else ""
    return (
        f"The hub could not get {', '.join(shown)}{more}, and this node has not installed it from elsewhere."
    )
