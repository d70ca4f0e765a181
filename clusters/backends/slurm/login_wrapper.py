"""trainhub-login: lets a hub run a few of Slurm's commands on a login node, as members of one Unix group.

An operator copies this file to the login node, as root's and writable by root alone; it needs Python 3.6. It
runs as root, and becomes the person before it starts anything. Either as the forced command of the hub's key
in root's authorized_keys (with `PermitRootLogin forced-commands-only`):

    restrict,command="/usr/bin/python3 -I /usr/local/sbin/trainhub-login GROUP" ssh-ed25519 AAAA... hub

or with the same line for a plain account, `sudo -n` before it, and in sudoers:

    Defaults!/usr/bin/python3 env_keep += "SSH_ORIGINAL_COMMAND"
    hub ALL=(root) NOPASSWD: /usr/bin/python3 -I /usr/local/sbin/trainhub-login GROUP
"""

import grp
import os
import pwd
import re
import shlex
import sys
from typing import List, NoReturn

# Where Slurm's commands are on this login node.
SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin:/opt/slurm/bin"
MIN_PERSON_UID = 1000
REFUSED = 77
ACCOUNT = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")
# Numbers and names of Slurm's things, lists of them, and formats.
VALUE = re.compile(r"[A-Za-z0-9_%|][A-Za-z0-9_.,:|%+-]*")
# What may come before a value; all of it only reads.
OPTIONS = {
    "squeue": re.compile(r"-h|-r|-t|-O|-o|-j|-p|--(name|states)=[A-Za-z0-9_.,+-]+"),
    "sacct": re.compile(r"-n|-P|-X|-j|-o|--delimiter=\|"),
    "sinfo": re.compile(r"--version"),
    "scontrol": re.compile(r"-d|-o"),
}


def refuse(sentence: str) -> NoReturn:
    sys.stderr.write(f"trainhub-login: {sentence}\n")
    sys.exit(REFUSED)


def is_allowed(argv: List[str]) -> bool:
    """Whether this is one of the calls that a hub makes."""
    program, arguments = argv[0], argv[1:]
    if program == "sbatch":
        # The script comes from standard input, and runs as the person.
        return arguments in (["--parsable"], ["--test-only"])
    if program == "scancel":
        return bool(arguments) and all(re.fullmatch(r"[0-9]+", number) for number in arguments)
    if program not in OPTIONS:
        return False
    if program == "scontrol" and (
        arguments[:1] != ["show"] or arguments[1:2] not in (["node"], ["partition"], ["config"])
    ):
        return False
    return all(OPTIONS[program].fullmatch(word) or VALUE.fullmatch(word) for word in arguments)


def find_person(name: str, group: str) -> pwd.struct_passwd:
    """Returns the account, if it is a person's and in the group."""
    if not ACCOUNT.fullmatch(name):
        refuse("this is no name of an account")
    try:
        person, members = pwd.getpwnam(name), grp.getgrnam(group)
    except KeyError:
        refuse(f"there is no account {name} or no group {group}")
    if person.pw_uid < MIN_PERSON_UID:
        refuse(f"{name} is an account of the system")
    if name not in members.gr_mem and person.pw_gid != members.gr_gid:
        refuse(f"{name} is not in the group {group}")
    return person


def become(person: pwd.struct_passwd) -> None:
    os.initgroups(person.pw_name, person.pw_gid)
    os.setgid(person.pw_gid)
    os.setuid(person.pw_uid)
    os.chdir("/")


def main() -> None:
    if len(sys.argv) != 2 or os.geteuid() != 0:
        refuse("it must run as root, with the name of a group")
    try:
        words = shlex.split(os.environ.get("SSH_ORIGINAL_COMMAND", ""))
    except ValueError:
        words = []
    if len(words) < 2 or not is_allowed(words[1:]):
        refuse("only TrainHub's calls of Slurm are accepted")
    person = find_person(words[0], sys.argv[1])
    environment = {
        "PATH": SEARCH_PATH,
        "HOME": person.pw_dir,
        "USER": person.pw_name,
        "LOGNAME": person.pw_name,
        "SHELL": person.pw_shell,
        "SLURM_TIME_FORMAT": "%s",
    }
    if "SLURM_CONF" in os.environ:
        environment["SLURM_CONF"] = os.environ["SLURM_CONF"]
    become(person)
    os.environ["PATH"] = SEARCH_PATH
    try:
        os.execvpe(words[1], words[1:], environment)  # noqa: S606 - to become Slurm's command is its purpose
    except FileNotFoundError:
        sys.exit(127)


if __name__ == "__main__":
    main()
