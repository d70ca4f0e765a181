"""Runs git on the hub for one repository: apart from all settings and helpers of the machine, over HTTP or
SSH alone, with limits of time, memory and output. Nothing of a repository is run."""

from __future__ import annotations

import base64
import shutil
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from django.conf import settings

from environments.indexes import index_policy
from environments.indexes.index_address import IndexCredentials
from environments.indexes.index_policy import HostRefused, permitted_addresses
from environments.indexes.index_settings import network_variables, read_hub_pip_settings
from environments.repositories import ssh_access
from environments.resolving.limited_process import ProcessLimits, read_start, run_limited

PORTS = {**index_policy.PORTS, "ssh": ssh_access.PORT}
# Of one repository, whatever it does.
MAX_S = 90
MAX_CPU_S = 60
MAX_MEMORY_BYTES = 4 * 2**30
# Of the objects of one commit, and of its files.
MAX_FILE_BYTES = 512 * 2**20
MAX_MESSAGE_BYTES = 16 * 1024
# A server that sends less than 1 KB a second for this long has failed.
SILENCE_S = 20
PATH = "/usr/local/bin:/usr/bin:/bin"
# Whose commit the files are: without it git asks the machine for a name.
IDENTITY = {
    f"GIT_{role}_{key}": value
    for role in ("AUTHOR", "COMMITTER")
    for key, value in (
        ("NAME", "TrainHub"),
        ("EMAIL", "trainhub@localhost"),
        # The files of an archive have this time, so that the same commit is always the same archive.
        ("DATE", "2000-01-01T00:00:00+0000"),
    )
}


class RepositoryFailed(Exception):
    """A repository could not be fetched; the message is a sentence that says why and what to do. `part`: what
    of its address is wrong: "url", "ref" or "path"."""

    def __init__(self, message: str, part: str = "url") -> None:
        super().__init__(message)
        self.part = part


class GitFailed(Exception):
    """A command of git has failed; the message is what git wrote. `is_timeout`: it was ended."""

    def __init__(self, message: str, *, is_timeout: bool = False) -> None:
        super().__init__(message)
        self.is_timeout = is_timeout


class GitFolder:
    """A repository of its own in `folder`, which is empty, for what is fetched from `url`. `seconds`: for all
    its commands together. Raises RepositoryFailed if the hub may not connect to that, or has no git."""

    def __init__(
        self, folder: Path, url: str, login: IndexCredentials | None, *, seconds: float = MAX_S
    ) -> None:
        program = shutil.which("git", path=PATH)
        if program is None:
            raise RepositoryFailed(
                "The hub's machine has no git, with which it fetches repositories. An operator installs it "
                "there (Debian: apt-get install git); then try again."
            )
        self._program = program
        self._folder = folder
        self._deadline = time.monotonic() + seconds
        parts = urlsplit(url)
        addresses = _addresses(parts)
        self._environ = {**_environ(folder), **_access(folder, parts, addresses, login)}
        lines = _configuration(parts, addresses, login)
        self.run("init", "--quiet", "--bare", "--template=", str(folder / "git"))
        with (folder / "git/config").open("a") as file:
            file.write("\n".join((*lines, "")))
        information = folder / "git/info"
        information.mkdir(exist_ok=True)
        # A repository's own attributes could leave files out, or ask for a program that changes them.
        (information / "attributes").write_text("* -export-ignore -export-subst -filter -ident\n")

    def run(self, *arguments: str, most_bytes: int = MAX_MESSAGE_BYTES) -> str:
        """Returns the first `most_bytes` of what the command writes. Raises GitFailed."""
        log = self._folder / "git.log"
        seconds = max(self._deadline - time.monotonic(), 0.0)
        limits = ProcessLimits(seconds, MAX_CPU_S, MAX_MEMORY_BYTES, MAX_FILE_BYTES)
        code = run_limited([self._program, *arguments], self._environ, log, limits)
        text = read_start(log, most_bytes)
        if code != 0:
            raise GitFailed(text, is_timeout=code is None)
        return text.strip()


def _environ(folder: Path) -> dict[str, str]:
    certificates = read_hub_pip_settings().get("cert", "") or network_variables().get("SSL_CERT_FILE", "")
    return {
        **network_variables(),
        **IDENTITY,
        **({"GIT_SSL_CAINFO": certificates} if certificates else {}),
        "PATH": PATH,
        "HOME": str(folder),
        "TMPDIR": str(folder),
        "LC_ALL": "C.UTF-8",
        "GIT_DIR": str(folder / "git"),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_LFS_SKIP_SMUDGE": "1",
    }


def _access(
    folder: Path, parts: SplitResult, addresses: list[str], login: IndexCredentials | None
) -> Mapping[str, str]:
    """Returns the variables with which git reaches the server."""
    if parts.scheme != "ssh":
        return {"GIT_ALLOW_PROTOCOL": "http:https"}
    if login is None:
        raise ValueError("a repository is read over SSH by a key alone")
    try:
        variables = ssh_access.variables(folder, parts, addresses, login, PATH)
    except ssh_access.KeyRefused as error:
        raise RepositoryFailed(
            f"The deploy key for {parts.hostname} {error}. Store the right one at /settings/secrets/, and "
            "try again."
        ) from error
    except ssh_access.SshMissing as error:
        raise RepositoryFailed(
            "The hub's machine has no ssh, with which it fetches ssh:// repositories. An operator installs "
            "it there (Debian: apt-get install openssh-client); then try again."
        ) from error
    return {**variables, "GIT_ALLOW_PROTOCOL": "ssh"}


def _configuration(parts: SplitResult, addresses: list[str], login: IndexCredentials | None) -> list[str]:
    """Returns the lines of git's configuration: a file and not arguments, which every account can read."""
    core = {"hooksPath": "/dev/null", "askPass": "", "attributesFile": "/dev/null"}
    # One file, whose size is limited, and not one for each object.
    transfer = {"unpackLimit": "1"}
    lines = [*_section("core", core), *_section("transfer", transfer)]
    if parts.scheme == "ssh":
        return lines
    values = {
        # Each address is checked; where a redirect leads is not.
        "followRedirects": "false",
        "lowSpeedLimit": "1000",
        "lowSpeedTime": str(SILENCE_S),
    }
    host = parts.hostname or ""
    # Asked once: the name may mean another address the next time.
    if host not in addresses:
        forms = dict.fromkeys(f"[{address}]" if ":" in address else address for address in addresses)
        values["curloptResolve"] = f"{host}:{parts.port or PORTS[parts.scheme]}:{','.join(forms)}"
    if login is not None:
        pair = base64.b64encode(f"{login.username}:{login.password}".encode()).decode()
        values["extraHeader"] = f"Authorization: Basic {pair}"
    return [*_section("http", values), *lines]


def _section(name: str, values: Mapping[str, str]) -> Iterable[str]:
    return [f"[{name}]", *(f'\t{key} = "{value}"' for key, value in values.items())]


def _addresses(parts: SplitResult) -> list[str]:
    """Returns the IP addresses of the server, to all of which the hub may connect."""
    host, listed = parts.hostname or "", settings.PACKAGE_INDEX_HOSTS
    if listed and host not in listed:
        raise RepositoryFailed(
            f"{host} is not one of the hosts from which this installation takes packages and code; choose "
            f"one of {', '.join(listed)}, or ask an operator to add it (PACKAGE_INDEX_HOSTS)."
        )
    try:
        return permitted_addresses(host, parts.port or PORTS[parts.scheme], listed)
    except HostRefused as error:
        if error.is_unknown:
            raise RepositoryFailed(
                f"The name {host} of the repository is not known; check its spelling."
            ) from error
        raise RepositoryFailed(
            f"The repository at {host} is at an address that the hub does not connect to; an operator can "
            "add a host of this machine with PACKAGE_INDEX_HOSTS."
        ) from error
