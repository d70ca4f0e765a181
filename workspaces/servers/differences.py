"""What living servers of one hub have that they should not: other settings, another Valkey, a wrong clock."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from workspaces.servers import server_registry, shared_settings
from workspaces.servers.meetings import strange_places
from workspaces.servers.membership import clock_phrase, is_punctual
from workspaces.servers.models import ServerProcess

_PLACES = {
    "REDIS_URL": "the same Valkey or Redis, with the same database number",
    "BROKER_URL": "the same broker, with the same virtual host or database number",
    "DATA_DIR": "the same folder on a file system that both machines mount, not to a copy of it",
}
_LOSSES = {
    "REDIS_URL": "open pages do not hear what happens at the other",
    "BROKER_URL": "tasks of the one are not done by the workers of the other",
    "DATA_DIR": "each lacks the files that the other has stored",
}


@dataclass(frozen=True)
class ServerWarning:
    """`setting`: the one to be changed; "" for a clock. `text` and `remedy`: sentences."""

    setting: str
    server: str
    text: str
    remedy: str


def server_warnings() -> list[ServerWarning]:
    """Returns what an operator should mend. Nothing on a database that one server alone can use."""
    if not server_registry.is_shareable():
        return []
    return warnings_of(list(server_registry.compared_processes()))


def warnings_of(living: list[ServerProcess]) -> list[ServerWarning]:
    """Returns the same for these rows, one for each setting of a server: web server and worker of one name
    have the same environment."""
    rows = sorted(living, key=lambda row: (row.started_at, row.pk))
    warnings = {(warning.setting, warning.server): warning for warning in (*_unequal(rows), *_strange(rows))}
    return [*warnings.values(), *_wrong_clocks(rows)]


def start_refusal() -> str:
    """Returns why this server must not join those that live, as sentences; "" if it may."""
    living = server_registry.compared_processes()
    rows = [row for row in living if row.settings is not None and not server_registry.is_own(row)]
    own = shared_settings.own_codes()
    for row in rows:
        grave = shared_settings.GRAVE.intersection(shared_settings.unequal(own, row.settings or {}))
        if grave:
            # One may follow from another: API_URL from PUBLIC_URL.
            names = " and ".join(sorted(grave))
            return (
                f"{names} of this server and of server {row.name}, which lives, differ. "
                f"{_remedy(names)} To change what all have, stop all servers first."
            )
    for setting, row in strange_places(rows).items():
        return (
            f"{setting} leads elsewhere than that of server {row.name}, which lives: {_LOSSES[setting]}. Let "
            f"it lead to {_PLACES[setting]}. To change it for all, stop all servers first."
        )
    return ""


def _unequal(rows: list[ServerProcess]) -> Iterator[ServerWarning]:
    """Compares each server with the one that has run for longest."""
    rows = [row for row in rows if row.settings is not None]
    for row in rows[1:]:
        names = shared_settings.unequal(rows[0].settings or {}, row.settings or {})
        if row.version != rows[0].version:
            # Another version may have other defaults: that ends with the upgrade.
            names = [name for name in names if name in shared_settings.GRAVE]
        for setting in names:
            text = f"{setting} of server {row.name} is another one than that of server {rows[0].name}."
            yield ServerWarning(setting, row.name, text, _remedy(setting))


def _strange(rows: list[ServerProcess]) -> Iterator[ServerWarning]:
    names = {row.pk: row.name for row in rows}
    for row in rows:
        for setting, servers in (row.strangers or {}).items():
            for other in (names[server] for server in servers if server in names):
                first, second = sorted((row.name, other))
                text = (
                    f"{setting} of server {second} leads elsewhere than that of server {first}: "
                    f"{_LOSSES[setting]}."
                )
                remedy = f"Let it lead to {_PLACES[setting]} on both, and start the wrong one again."
                yield ServerWarning(setting, second, text, remedy)


def _wrong_clocks(rows: list[ServerProcess]) -> Iterator[ServerWarning]:
    for row in rows:
        if not is_punctual(row.clock_offset_s):
            text = f"The clock of server {row.name} ({row.role}) is {clock_phrase(row.clock_offset_s)}."
            remedy = (
                "Have it set by NTP: install chrony, or run `timedatectl set-ntp true`. Until then it "
                "answers for no node while another server can, and starts no periodic task."
            )
            yield ServerWarning("", row.name, text, remedy)


def _remedy(setting: str) -> str:
    if setting == shared_settings.KEYRING:
        return "Let it name the same file on all servers, or copy the file of the one with the right keys."
    if setting == "SIGN_IN":
        return "Give all servers the same settings of signing in (OIDC_…, REMOTE_USER_…, SIGN_IN_…)."
    return f"Give all servers the same {setting}, and start those again that had another one."
