"""`manage.py up` as root without RUN_AS=root: root runs this machine's agent and starts the hub under an
account of its own."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from trainhub import installation
from trainhub.files import write_secret
from trainhub.up import preflight, stack
from trainhub.up.children import end_with_parent, ending, python
from trainhub.up.console import Stop, say
from trainhub.up.separation import accounts, ownership
from trainhub.up.separation.accounts import Account
from trainhub.up.supervisor import GRACE_S, Supervisor

# The argument with which root starts the hub: the number of a descriptor follows, for what the agent has to
# know.
HUB_ONLY = "--hub-only"
MAX_FACTS_BYTES = 65536
NODE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,252}")
TOKEN = re.compile(r"[\x21-\x7e]{1,500}")
# The number of stages in which the hub itself stops its processes, each of which may take GRACE_S.
STAGES = 4


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What this machine's agent must know of the hub. It comes from the hub's account, which root does not
    trust, so each part is checked."""

    node: str
    token: str
    authority: str
    """The certificate that the agent has to trust, in PEM; empty where the hub has none of its own."""

    @classmethod
    def parse(cls, text: str) -> AgentFacts:
        try:
            fields = json.loads(text)
            facts = cls(fields["node"], fields["token"], fields["authority"])
            is_good = (
                NODE_NAME.fullmatch(facts.node)
                and TOKEN.fullmatch(facts.token)
                and isinstance(facts.authority, str)
            )
        except (ValueError, KeyError, TypeError) as error:
            raise Stop(
                "The hub did not say which node this machine is. Start TrainHub again; see the hub's logs."
            ) from error
        if not is_good:
            raise Stop(
                "The hub named an impossible node or token for this machine. Start TrainHub again; see the "
                "hub's logs."
            )
        return facts


def run() -> int:
    """Runs agent and hub until a signal or the hub's end. Returns the exit code."""
    account = accounts.hub_account()
    # Before the files of an earlier hub change their owner, and again with the folders that exist only then.
    accounts.check_passable(account)
    ownership.prepare(account)
    ownership.give_keyring(account)
    accounts.check_passable(account)
    notice = preflight.account_notice()
    preflight.lock()
    of_agent = ", and this machine's agent as root" if preflight.has_local_node() else ""
    say(f"{notice} The hub runs as {account.pw_name}{of_agent}.")
    supervisor = Supervisor()
    reading, writing = os.pipe()
    hub = _start_hub(account, writing)
    os.close(writing)
    try:
        facts = _await_facts(supervisor, hub, reading)
        if facts is not None:
            supervisor.start(
                stack.agent(
                    facts.node,
                    _write_authority(facts.authority),
                    _write_token(facts.token),
                    hub_account=account.pw_name,
                )
            )
        while not supervisor.stop_requests and hub.poll() is None:
            supervisor.tend()
            supervisor.sleep(supervisor.seconds_until_due())
    finally:
        is_stopping = bool(supervisor.stop_requests)
        supervisor.stop()
        code = _stop_hub(hub)
    if code < 0 and not is_stopping:
        raise Stop(f"The hub {ending(code)}. Start TrainHub again.")
    return code


def _start_hub(account: Account, facts: int) -> subprocess.Popen[bytes]:
    environment = accounts.environment(account.pw_name, installation.DATA_DIR) | ownership.copy_certificate(
        account
    )
    return subprocess.Popen(
        python(str(installation.BASE_DIR / "manage.py"), "up", HUB_ONLY, str(facts)),
        stdin=subprocess.DEVNULL,
        cwd=installation.BASE_DIR,
        env=environment,
        # A session of its own: Ctrl-C reaches root alone, which stops in order, and the terminal cannot be
        # typed into.
        start_new_session=True,
        pass_fds=(facts,),
        user=account.pw_uid,
        group=account.pw_gid,
        extra_groups=os.getgrouplist(account.pw_name, account.pw_gid),
        umask=0o077,
        # Runs after the change of account, which would take back what it arranges.
        preexec_fn=end_with_parent(no_new_privileges=True),  # noqa: PLW1509 - `up` has one thread
    )


def _await_facts(supervisor: Supervisor, hub: subprocess.Popen[bytes], reading: int) -> AgentFacts | None:
    """Waits for the hub's message to the agent. Returns None if the hub ends, or a signal comes, before
    it, and if this machine takes no runs."""
    received = b""
    while not supervisor.stop_requests and hub.poll() is None:
        ready, _, _ = select.select([reading], [], [], 0)
        chunk = os.read(reading, MAX_FACTS_BYTES) if ready else None
        if chunk:
            received += chunk
        if chunk == b"" or b"\n" in received or len(received) > MAX_FACTS_BYTES:
            os.close(reading)
            is_needed = received or preflight.has_local_node()
            return AgentFacts.parse(received.decode(errors="replace")) if is_needed else None
        supervisor.sleep(0.1)
    os.close(reading)
    return None


def _write_token(token: str) -> Path:
    write_secret(installation.NODE_TOKEN_FILE, token)
    return installation.NODE_TOKEN_FILE


def _write_authority(pem: str) -> Path | None:
    path = installation.DATA_DIR / "hub-ca.pem"
    if not pem:
        path.unlink(missing_ok=True)
        return None
    write_secret(path, pem)
    return path


def _stop_hub(hub: subprocess.Popen[bytes]) -> int:
    if hub.poll() is None:
        hub.send_signal(signal.SIGTERM)
    try:
        return hub.wait(GRACE_S * STAGES)
    except subprocess.TimeoutExpired:
        hub.kill()
        return hub.wait()


def tell_agent(descriptor: int, node: str) -> None:
    """Called in the hub's process: writes what root's agent must know to the pipe `descriptor`. `node`: "" if
    this machine takes no runs."""
    if not node:
        os.close(descriptor)
        return
    certificate = installation.certificate()
    authority = certificate.ca.read_text() if certificate is not None and certificate.ca is not None else ""
    facts = {"node": node, "token": installation.NODE_TOKEN_FILE.read_text().strip(), "authority": authority}
    with os.fdopen(descriptor, "w") as pipe:
        pipe.write(json.dumps(facts) + "\n")


def descriptor_of(arguments: list[str]) -> int | None:
    """Returns the descriptor in the arguments with which root starts the hub only; None for all other
    arguments."""
    if len(arguments) == 2 and arguments[0] == HUB_ONLY and arguments[1].isdecimal():
        return int(arguments[1])
    return None
