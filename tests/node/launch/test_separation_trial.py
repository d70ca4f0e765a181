"""An agent that is not root says why runs have no namespaces, and what helps, on kernels that refuse them."""

from __future__ import annotations

import sys

import pytest

from tests.attacks.server.separated import needs_root
from tests.node.test_rootless import Node, node

__all__ = ["node"]
pytestmark = needs_root
DESCRIBE = (
    "from trainhub_node.launch import separation_trial as trial; from trainhub_node import settings; "
    "print(trial.description(trial.with_separation(settings.read())))"
)
REFUSED = "All runs have the agent's own account: each can read and end the others. No namespaces here: "
# Executes its arguments in a user namespace that has all accounts of this one.
WITH_ALL_ACCOUNTS = """
import os, sys
from trainhub_node.isolation import syscalls
made, mapped = os.pipe(), os.pipe()
pid = os.fork()
if pid == 0:
    syscalls.unshare(syscalls.CLONE_NEWUSER)
    os.write(made[1], b'.')
    os.read(mapped[0], 1)
    os.execvp(sys.argv[1], sys.argv[1:])
os.read(made[0], 1)
for kind in ('uid', 'gid'):
    with open(f'/proc/{pid}/{kind}_map', 'w') as file:
        file.write('0 0 65536')
os.write(mapped[1], b'.')
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""
OWN_USERS = (sys.executable, "-c", WITH_ALL_ACCOUNTS)
LIMIT = "/proc/sys/user/max_user_namespaces"


def arranged(*command: str, line: str) -> list[str]:
    """The beginning of a command in namespaces, which `command` makes, and for which root has executed
    `line`."""
    return [*command, "sh", "-c", f'{line} && exec "$@"', "sh"]


def description(node: Node, before: list[str]) -> str:
    output, _ = node.command("-c", DESCRIBE, before=before).communicate(timeout=60)
    return output


@pytest.mark.parametrize(
    ("before", "sentence"),
    [
        (
            arranged(*OWN_USERS, line=f"echo 0 > {LIMIT}"),
            "unshare: No space left on device; let accounts make user namespaces (sysctl "
            "user.max_user_namespaces above 0,",
        ),
        (
            arranged("unshare", "--mount", line="mount --bind /dev/null /proc/version"),
            "mount /proc: Operation not permitted; let the container see the whole /proc",
        ),
    ],
    ids=["no user namespaces", "a masked /proc"],
)
def test_a_refusal_is_told_with_its_remedy(node: Node, before: list[str], sentence: str) -> None:
    text = description(node, before)
    assert text.startswith(REFUSED + sentence), text
    assert "or run the agent as root." in text


def test_the_remedy_helps(node: Node) -> None:
    text = description(node, arranged(*OWN_USERS, line=f"echo 0 > {LIMIT} && echo 15000 > {LIMIT}"))
    assert text.startswith("All runs have the agent's own account, but see no files and processes of others.")


def test_whoever_limits_the_agent_makes_the_control_groups_alone(node: Node) -> None:
    code = (
        "from trainhub_node.launch import separation_trial as trial; from trainhub_node import settings; "
        "print(trial.with_separation(settings.read()).cgroup)"
    )
    before = ["env", "TRAINHUB_NODE_LIMITS=outer"]
    assert node.command("-c", code, before=before).communicate(timeout=60)[0] == "None\n"
