"""Gives uv the indexes that pip is configured to use on the hub, because uv reads no settings of pip."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Mapping

from environments.indexes.index_address import IndexCredentials
from environments.requirement_list import RequirementList

TIMEOUT_S = 60
REQUEST_TIMEOUT_S = "20"
# Where pip's settings of one name are looked up, the strongest first.
_PREFIXES = (":env:.", "download.", "install.", "global.")
# Between the items of a variable of uv, where that is no blank.
SEPARATORS = {"UV_FIND_LINKS": ","}
_PASSED_ON = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")


def index_variables(
    requirements: RequirementList, credentials: Mapping[str, IndexCredentials]
) -> dict[str, str]:
    """Returns the variables that name uv's indexes, proxies and certificates. Variables and not arguments:
    every account of the machine can read those, and the hub's addresses may hold a password. `credentials`:
    those of the indexes that the requirements name, by address, with the values of the secrets."""
    pip = read_hub_pip_settings()
    environ = network_variables()
    main = requirements.index_url or pip.get("index-url", "")
    others = [*requirements.extra_index_urls, *pip.get("extra-index-url", "").split()]
    folders = pip.get("find-links", "").split()
    certificates = pip.get("cert", "")
    names = {url: f"secret{number}" for number, url in enumerate(credentials)}
    variables = {
        "UV_DEFAULT_INDEX": _named(main, names),
        "UV_INDEX": " ".join(_named(url, names) for url in others),
        "UV_FIND_LINKS": ",".join(folders),
        "UV_CONSTRAINT": pip.get("constraint", ""),
        "UV_INSECURE_HOST": pip.get("trusted-host", ""),
        "UV_NO_INDEX": "1" if pip.get("no-index", "").lower() in ("1", "true", "yes", "on") else "",
        "SSL_CERT_FILE": certificates,
    }
    for url, name in names.items():
        variables[f"UV_INDEX_{name.upper()}_USERNAME"] = credentials[url].username
        variables[f"UV_INDEX_{name.upper()}_PASSWORD"] = credentials[url].password
    return environ | {name: value for name, value in variables.items() if value}


def _named(url: str, names: Mapping[str, str]) -> str:
    """Returns the address with its name before it, to which the variables of its credentials refer."""
    return f"{names[url]}={url}" if url in names else url


def merge_variables(variables: Mapping[str, str], more: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables with the folders and constraints of `more` beside their own."""
    merged = dict(variables)
    for name, value in more.items():
        separator = SEPARATORS.get(name, " ")
        merged[name] = separator.join(filter(None, (merged.get(name, ""), value)))
    return merged


def network_variables() -> dict[str, str]:
    """Returns the variables that name the hub's proxies and certificates."""
    return {name: value for name, value in os.environ.items() if name.upper() in _PASSED_ON and value}


def read_hub_pip_settings() -> dict[str, str]:
    """Returns the settings that pip merges from its files and variables, by name ("index-url")."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=TIMEOUT_S)
    return read_pip_settings(done.stdout)


def read_pip_settings(text: str) -> dict[str, str]:
    """Returns the settings in the output of `pip config list`, whose lines are like
    `global.index-url='https://…'`."""
    listed: dict[str, str] = {}
    for line in text.splitlines():
        name, separator, value = line.partition("=")
        if separator and value.startswith(("'", '"')):
            # pip prints a value as Python's repr does.
            listed[name.strip()] = " ".join(str(ast.literal_eval(value)).split())
    return _strongest(listed)


def _strongest(listed: Mapping[str, str]) -> dict[str, str]:
    merged: dict[str, str] = {}
    for prefix in reversed(_PREFIXES):
        # As in pip, an empty value, such as that of an empty variable, does not hide another one.
        merged |= {
            name.removeprefix(prefix): value
            for name, value in listed.items()
            if name.startswith(prefix) and value
        }
    return merged
