"""What the login node of a cluster needs: the line for the hub's key, the wrapper, and the rules of sudo."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.db import transaction

from clusters.allocations import login_keys, partitions, relays
from clusters.backends.slurm import login_wrapper
from clusters.backends.slurm.settings import CommandHost, fingerprint
from clusters.models import Cluster, SlurmPartition
from workspaces import audit
from workspaces.models import User

PYTHON = "/usr/bin/python3"
# Of root, where it runs by sudo; otherwise it lies in the home folder of the account.
WRAPPER = f"/usr/local/sbin/{login_wrapper.NAME}"


@dataclass(frozen=True)
class LoginNode:
    """`host` is where the hub logs in, with the key of which `public_key` is the public half. `group`: whose
    members can have jobs, "" = only the account that logs in. `relay`: where it listens for the hub, None =
    nowhere."""

    cluster: str
    host: CommandHost
    public_key: str
    host_key: str
    group: str
    relay: tuple[str, int] | None = None

    @property
    def command(self) -> str:
        """Returns the forced command of the key."""
        if self.group:
            return f"sudo -n {self._wrapper_line}"
        return f"{PYTHON} -I {login_wrapper.NAME}"

    @property
    def authorized_key(self) -> str:
        return f'{self._restrictions},command="{self.command}" {self.public_key} {self.label}'

    @property
    def _restrictions(self) -> str:
        if self.relay is None:
            return "restrict"
        host, port = self.relay
        # Without permitopen the key could also reach other machines from there; nothing listens at port 1.
        return f'restrict,port-forwarding,permitlisten="{host}:{port}",permitopen="localhost:1"'

    @property
    def sshd(self) -> str:
        """Returns what sshd's configuration needs for the relay, "" without one."""
        if self.relay is None:
            return ""
        return (
            f"Match User {self.host.user}\n"
            "    AllowTcpForwarding remote\n"
            "    GatewayPorts clientspecified\n"
            "    ClientAliveInterval 15\n"
            "    ClientAliveCountMax 2\n"
        )

    @property
    def sudoers(self) -> str:
        """Returns the content of a file in /etc/sudoers.d, "" if no sudo is needed."""
        if not self.group:
            return ""
        user = self.host.user
        return (
            f'Defaults:{user} env_keep += "SSH_ORIGINAL_COMMAND SLURM_CONF"\n'
            f"{user} ALL=(root) NOPASSWD: {self._wrapper_line}\n"
        )

    @property
    def wrapper(self) -> str:
        return wrapper_text()

    @property
    def label(self) -> str:
        """Returns the comment by which the line of this cluster is found again."""
        return f"trainhub-{self.cluster}"

    @property
    def setup(self) -> str:
        """Returns the shell commands that set it up, in the folder with the wrapper: as root if there is a
        group, otherwise as the account that logs in. They may be run again, and replace an earlier key."""
        home = f"~{self.host.user}" if self.group else "~"
        keys = f"{home}/.ssh/authorized_keys"
        if self.group:
            lines = [
                *self._root_lines(),
                f"install -d -o {self.host.user} -m 700 {home}/.ssh",
                f"touch {keys} && chown {self.host.user} {keys} && chmod 600 {keys}",
            ]
        else:
            lines = [
                f"install -m 755 {login_wrapper.NAME} ~/{login_wrapper.NAME}",
                f"mkdir -p -m 700 {home}/.ssh && touch {keys} && chmod 600 {keys}",
            ]
        lines += [f"sed -i '/ {self.label}$/d' {keys}", f"cat >> {keys} <<'END'", self.authorized_key, "END"]
        return "\n".join(lines) + "\n"

    def _root_lines(self) -> list[str]:
        user, rules = self.host.user, f"/etc/sudoers.d/{self.label}"
        return [
            # Without a password, and not locked, which some servers of ssh would refuse.
            f"id -u {user} >/dev/null 2>&1 || useradd -r -m -s /bin/sh -p '*' {user}",
            f"getent group {self.group} >/dev/null || groupadd {self.group}",
            f"install -o root -g root -m 755 {login_wrapper.NAME} {WRAPPER}",
            f"cat > {rules} <<'END'",
            self.sudoers.rstrip("\n"),
            "END",
            f"chmod 440 {rules}",
        ]

    @property
    def fingerprint(self) -> str:
        """Returns that of the hub's key."""
        return fingerprint(self.public_key)

    @property
    def host_fingerprints(self) -> list[str]:
        return [fingerprint(line) for line in self.host_key.splitlines()]

    @property
    def _wrapper_line(self) -> str:
        return f"{PYTHON} -I {WRAPPER} {self.group}"


def login_node_of(cluster: Cluster) -> LoginNode | None:
    """Returns None if the hub's machine has Slurm's commands."""
    row = partitions.partition_of(cluster)
    host = partitions.login_host(row)
    if host is None:
        return None
    relay = relays.relay_address(row)
    return LoginNode(cluster.name, host, row.public_key, row.host_key, row.login_group, relay)


def no_login_node_sentence(cluster: Cluster) -> str:
    return f"{cluster.name} has no login node: Slurm's commands are on the hub's machine."


def wrapper_text() -> str:
    return Path(login_wrapper.__file__).read_text()


@transaction.atomic
def rotate_key(cluster: Cluster, who: User) -> None:
    """Makes another key. Slurm does not answer until the login node has its line. Raises KeyUnavailable."""
    Cluster.objects.select_for_update().get(pk=cluster.pk)
    if login_node_of(cluster) is None:
        raise login_keys.KeyUnavailable(no_login_node_sentence(cluster))
    public_key = login_keys.make_key(cluster.pk)
    SlurmPartition.objects.filter(cluster=cluster).update(public_key=public_key)
    audit.record(who, "cluster.login-key", cluster.name, fingerprint=fingerprint(public_key))
