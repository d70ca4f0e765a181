"""trainhub-login: lets a hub run a few of Slurm's commands on a login node, and nothing else.

It is the forced command of the hub's key, and needs Python 3.6. There are two ways; the page of the cluster
has the exact lines for both.

With a group, jobs belong to people: the hub logs in as an account of its own, and this file, which only root
may write, runs as root by sudo. It becomes the person before it starts anything, and serves members of the
group alone. Without a group, it runs as the account that logs in, serves that account alone, and may lie in
its home folder."""

import grp
import os
import pwd
import re
import shlex
import socket
import sys
import time
from typing import List, NoReturn

# Of what a hub and this file say to each other.
VERSION = 1
# Where Slurm's commands are on this login node, and its slurm.conf if that is at no usual place.
SEARCH_PATH = "/usr/local/bin:/usr/bin:/bin:/opt/slurm/bin"
SLURM_CONF = ""

NAME = "trainhub-login"
MIN_PERSON_UID = 1000
# The exit codes: for an account or a call that is not served, and for a relay that nodes do not reach.
ACCOUNT_REFUSED, CALL_REFUSED, RELAY_FAILED, NO_COMMAND = 77, 78, 79, 127
RELAY_STANDS = "the relay stands"
# sshd listens before it starts the command.
RELAY_TRIES, RELAY_PAUSE_S, RELAY_CONNECT_S = 5, 0.5, 5.0
ACCOUNT = re.compile(r"[a-z_][a-z0-9_.-]{0,31}")
# Numbers and names of Slurm's things, lists of them, and formats.
VALUE = re.compile(r"[A-Za-z0-9_%|][A-Za-z0-9_.,:|%+-]*")
# What may come before a value; all of it only reads.
OPTIONS = {
    "squeue": re.compile(r"-h|-r|-t|-O|-o|-j|-p|--(name|states)=[A-Za-z0-9_.,+-]+"),
    "sacct": re.compile(r"-n|-P|-X|-j|-o|--delimiter=\|"),
    "sinfo": re.compile(r"-h|-o|--version"),
    "scontrol": re.compile(r"-d|-o"),
}


def refuse(sentence: str, code: int = ACCOUNT_REFUSED) -> NoReturn:
    sys.stderr.write(f"{NAME}: {sentence}\n")
    sys.exit(code)


def is_reading(argv: List[str]) -> bool:
    """Whether this is one of the calls by which a hub looks."""
    program, arguments = argv[0], argv[1:]
    if program not in OPTIONS:
        return False
    if program == "scontrol" and (
        arguments[:1] != ["show"] or arguments[1:2] not in (["node"], ["partition"], ["config"])
    ):
        return False
    return all(OPTIONS[program].fullmatch(word) or VALUE.fullmatch(word) for word in arguments)


def is_allowed(argv: List[str]) -> bool:
    """Whether this is one of the calls that a hub makes."""
    program, arguments = argv[0], argv[1:]
    if program == "sbatch":
        # The script comes from standard input, and runs as the person.
        return arguments in (["--parsable"], ["--test-only"])
    if program == "scancel":
        return bool(arguments) and all(re.fullmatch(r"[0-9]+", number) for number in arguments)
    return is_reading(argv)


def problem_with(name: str, group: str) -> str:
    """Returns why jobs cannot belong to this account, "" if they can."""
    if not ACCOUNT.fullmatch(name):
        return f"{name!r} is no name of an account"
    if not group:
        own = own_account()
        return "" if name == own else f"without a group only {own} can have jobs, not {name}"
    try:
        person = pwd.getpwnam(name)
    except KeyError:
        return f"there is no account {name} here"
    try:
        team = grp.getgrnam(group)
    except KeyError:
        return f"there is no group {group} here"
    if person.pw_uid < MIN_PERSON_UID:
        return f"{name} is an account of the system"
    if team.gr_gid not in os.getgrouplist(name, person.pw_gid):
        return f"{name} is not in the group {group}"
    return ""


def own_account() -> str:
    """Returns the account that has logged in."""
    if os.geteuid() == 0:
        return os.environ.get("SUDO_USER", "")
    return pwd.getpwuid(os.geteuid()).pw_name


def check_members(names: List[str], group: str) -> None:
    """Writes the version, and a line for each account: its name, and why it can have no jobs."""
    sys.stdout.write(f"{NAME} {VERSION}\n")
    for name in names:
        sys.stdout.write(f"{name}\t{problem_with(name, group)}\n")


def relay(host: str, port: str) -> None:
    """Says that sshd listens at this address of this machine, and stays until its input ends: sshd forwards
    as long as this connection is there."""
    if not re.fullmatch(r"[A-Za-z0-9.:-]{1,255}", host) or not re.fullmatch(r"[0-9]{4,5}", port):
        refuse("this is no address of a relay", CALL_REFUSED)
    problem = relay_problem(host, int(port))
    if problem:
        sys.stderr.write(f"{NAME}: {problem}\n")
        sys.exit(RELAY_FAILED)
    sys.stdout.write(f"{RELAY_STANDS}\n")
    sys.stdout.flush()
    while os.read(0, 1024):
        pass


def relay_problem(host: str, port: int) -> str:
    """Returns why nodes do not reach the port, "" if they do as far as this machine can tell."""
    try:
        info = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        # What can be bound is an address of this machine. Nothing else is connected to.
        with socket.socket(info[0], info[1]) as probe:
            probe.bind((info[4][0], 0))
    except OSError as error:
        return f"{host} is no address of this machine ({error.strerror or error})"
    for _ in range(RELAY_TRIES):
        try:
            socket.create_connection((host, port), RELAY_CONNECT_S).close()
        except OSError as error:
            problem = str(error.strerror or error)
            time.sleep(RELAY_PAUSE_S)
        else:
            return ""
    return f"sshd, which needs GatewayPorts clientspecified, does not listen at {host}:{port} ({problem})"


def become(person: pwd.struct_passwd) -> None:
    if os.geteuid() == 0:
        os.initgroups(person.pw_name, person.pw_gid)
        os.setgid(person.pw_gid)
        os.setuid(person.pw_uid)
    os.chdir("/")


def find_person(name: str, argv: List[str], group: str) -> pwd.struct_passwd:
    """Returns the account as which this call runs."""
    # To look needs nobody's rights.
    looks_itself = bool(name) and name == own_account() and is_reading(argv)
    problem = "" if looks_itself else problem_with(name, group)
    if problem:
        refuse(problem)
    person = pwd.getpwnam(name)
    if person.pw_uid == 0:
        refuse("nothing runs as root")
    return person


def main() -> None:
    group = sys.argv[1] if len(sys.argv) == 2 else ""
    if bool(group) != (os.geteuid() == 0):
        refuse("it runs either as root with the name of a group, or as a plain account without one")
    try:
        words = shlex.split(os.environ.get("SSH_ORIGINAL_COMMAND", ""))
    except ValueError:
        words = []
    if len(words) < 3 or words[0] != NAME:
        refuse("only TrainHub's calls of Slurm are accepted", CALL_REFUSED)
    name, argv = words[1], words[2:]
    if argv[0] == "check":
        check_members(argv[1:], group)
        return
    if argv[0] == "relay" and len(argv) == 3 and name == own_account():
        become(pwd.getpwnam(name))
        relay(argv[1], argv[2])
        return
    if not is_allowed(argv):
        refuse("only TrainHub's calls of Slurm are accepted", CALL_REFUSED)
    person = find_person(name, argv, group)
    environment = {
        "PATH": SEARCH_PATH,
        "HOME": person.pw_dir,
        "USER": person.pw_name,
        "LOGNAME": person.pw_name,
        "SHELL": person.pw_shell,
        "SLURM_TIME_FORMAT": "%s",
    }
    conf = SLURM_CONF or os.environ.get("SLURM_CONF", "")
    if conf:
        environment["SLURM_CONF"] = conf
    become(person)
    os.environ["PATH"] = SEARCH_PATH
    try:
        os.execvpe(argv[0], argv, environment)  # noqa: S606 - to become Slurm's command is its purpose
    except FileNotFoundError:
        sys.exit(NO_COMMAND)


if __name__ == "__main__":
    main()
