"""Keeps the ranks of an attempt from abstract sockets of others, and from signalling them, by Landlock.

Abstract Unix sockets have names without a file, so no mount hides them. A process that enters a domain
reaches only those that were made in the same domain or in one below it. All that it starts is in the domain,
too, so NCCL and Open MPI go on between the ranks of an attempt. Processes outside of it may still signal
those in it."""

from __future__ import annotations

import errno
import os
from _struct import pack

from trainhub_node.isolation import syscalls

# The same numbers on all architectures.
SYS_CREATE_RULESET, SYS_RESTRICT_SELF = 444, 446
# From <linux/landlock.h>.
CREATE_RULESET_VERSION = 1
SCOPE_ABSTRACT_UNIX_SOCKET, SCOPE_SIGNAL = 1, 2
# The version of Landlock's interface that has these scopes, of Linux 6.12.
SCOPES_SINCE = 6
# The kernel was built without Landlock, or started without it; a container forbids calls that it does not
# know.
UNAVAILABLE = (errno.ENOSYS, errno.EOPNOTSUPP, errno.EPERM)


def has_scopes() -> bool:
    """Returns whether this kernel can keep abstract sockets of attempts apart."""
    try:
        version = syscalls.system_call(
            "landlock_create_ruleset", SYS_CREATE_RULESET, None, 0, CREATE_RULESET_VERSION
        )
    except OSError as error:
        if error.errno in UNAVAILABLE:
            return False
        raise
    return version >= SCOPES_SINCE


def enter_domain() -> None:
    """Moves this process, and all that it starts from now on, into a domain of its own. Needs root, or a
    process that cannot gain privileges. Raises OSError."""
    # struct landlock_ruleset_attr: handled rights of files, of the network, and scopes. Without the first two
    # the domain restricts neither files nor mounts.
    attributes = pack("QQQ", 0, 0, SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL)
    ruleset = syscalls.system_call(
        "landlock_create_ruleset", SYS_CREATE_RULESET, attributes, len(attributes), 0
    )
    try:
        syscalls.system_call("landlock_restrict_self", SYS_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)
