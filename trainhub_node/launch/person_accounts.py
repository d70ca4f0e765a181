"""The Unix accounts of people, for a node where each run has the account of the person who submitted it.

They are looked up for each attempt, so that a change of the operator's file or of the machine's accounts
applies to the next one."""

from __future__ import annotations

import os
import pwd
import stat
from pathlib import Path

from trainhub_node.run_account import NOBODY, Account
from trainhub_node.settings import NodeSettings
from trainhub_node.untrusted import ancestors

# Below are the accounts of the system and its services.
LOWEST_UID = 1000
COMMENT = "#"


class NoAccount(Exception):
    """A run cannot have the account of its person here; the message is a sentence with the remedy."""


def person_account(settings: NodeSettings, person: str | None) -> Account:
    """Returns the account of `person`, a name for signing in. None: the hub did not name anybody; "": it has
    nobody to name. Raises NoAccount."""
    node = settings.name
    if person is None:
        raise NoAccount(
            f"Node {node} runs programs under the account of the person who submitted them, which this hub "
            "does not name; upgrade the hub."
        )
    if not person:
        raise NoAccount(
            f"Node {node} runs programs under the account of the person who submitted them, and this run "
            "has no such person any more; submit it again as yourself."
        )
    name, origin = person, "submit to another node, or ask the operator of this one for an account"
    people = _people(settings)
    if settings.people is not None:
        name = people.get(person, person)
        origin = f"the operator of the node can name another account for {person} in {settings.people}"
    try:
        entry = pwd.getpwnam(name)
    except (KeyError, ValueError) as error:
        raise NoAccount(
            f"Node {node} has no account {name!r} for {person}, who submitted this run; {origin}."
        ) from error
    why = _refusal(settings, entry)
    if why:
        raise NoAccount(f"Node {node} does not run programs of {person} under the account {name}: {why}.")
    return Account(
        entry.pw_name,
        entry.pw_uid,
        entry.pw_gid,
        entry.pw_dir,
        groups=tuple(os.getgrouplist(entry.pw_name, entry.pw_gid)),
    )


def _refusal(settings: NodeSettings, entry: pwd.struct_passwd) -> str:
    """Returns why no run may have this account, with the remedy; "" if it may."""
    choose = "the operator has to give this person an account of a person"
    if entry.pw_uid == os.geteuid():
        return f"it is the agent's own; {choose}"
    if entry.pw_uid < LOWEST_UID or entry.pw_uid == NOBODY:
        return f"it is one of the system (number {entry.pw_uid}, people begin at {LOWEST_UID}); {choose}"
    if entry.pw_uid in _refused_uids(settings):
        return (
            "the operator keeps it from runs (TRAINHUB_NODE_REFUSED_ACCOUNTS), or it is the hub's; " + choose
        )
    account = Account(entry.pw_name, entry.pw_uid, entry.pw_gid, entry.pw_dir)
    for folder in (settings.folder, settings.cache):
        unsafe = ancestors.controlled_by(account, folder)
        if unsafe is not None:
            return (
                f"it can change what is in {unsafe}, where the agent's folder {folder} is; the operator has "
                "to put that where only root may write, like /var/lib"
            )
    return ""


def _refused_uids(settings: NodeSettings) -> set[int]:
    # Compared by number: an account may have several names.
    uids = set()
    for name in settings.refused_accounts:
        try:
            uids.add(pwd.getpwnam(name).pw_uid)
        except KeyError:
            continue  # an account that does not exist needs no protection
    return uids


def _people(settings: NodeSettings) -> dict[str, str]:
    if settings.people is None:
        return {}
    try:
        return read_people(settings.people)
    except ValueError as error:
        raise NoAccount(
            f"Node {settings.name} cannot tell the account of this run's person: {error}."
        ) from error


def read_people(file: Path) -> dict[str, str]:
    """Returns person -> account, from lines "person account". Raises ValueError with the line and the
    remedy."""
    try:
        facts = file.stat()
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise ValueError(f"{file} cannot be read: {reason}; the operator has to correct that") from error
    if facts.st_uid != os.geteuid() or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ValueError(
            f"{file} can be changed by others than the agent's account; `chown root {file}` and `chmod 644 "
            f"{file}` correct that"
        )
    people: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition(COMMENT)[0].split()
        if not words:
            continue
        if len(words) != 2 or words[0] in people:
            raise ValueError(
                f"line {number} of {file} must be a person and an account, like `ada.lovelace ada`, once for "
                "each person"
            )
        people[words[0]] = words[1]
    return people
