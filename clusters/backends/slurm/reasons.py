"""Why a job waits or ended, as Slurm says it, and what its owner can do about it."""

from __future__ import annotations

import re

from clusters.backends.slurm.errors import one_line

SENTENCES = {
    "None": "",
    "Resources": "Waits until enough nodes, GPUs, processors or memory are free.",
    "Priority": "Waits behind jobs of higher priority in this partition.",
    "Dependency": "Waits for another job that it depends on.",
    "DependencyNeverSatisfied": "Can never start: the job it depends on did not end as required. Cancel it.",
    "BeginTime": "Waits for its earliest start. After a return to the queue that is in two minutes.",
    "Licenses": "Waits until a licence is free.",
    "JobHeldUser": "Is held. Its owner or an operator can release it: scontrol release.",
    "JobHeldAdmin": "Is held by an administrator of Slurm, who alone can release it.",
    "JobArrayTaskLimit": "Waits because its array runs as many tasks at once as it may.",
    "PartitionTimeLimit": "Can never start as it is: its time limit is longer than the partition allows. "
    "Submit it with a shorter one.",
    "PartitionNodeLimit": "Can never start as it is: it wants more or fewer nodes than the partition allows.",
    "PartitionConfig": "Its nodes or its time limit do not fit the partition. Submit it with fewer nodes or "
    "a shorter time limit.",
    "PartitionDown": "The partition is down, so nothing starts there. Choose another, or ask Slurm's "
    "administrator.",
    "PartitionInactive": "The partition is inactive. Choose another, or ask Slurm's administrator.",
    "ReqNodeNotAvail": "The nodes it needs are not available: down, drained or reserved.",
    "Reservation": "Waits for its reservation to begin.",
    "ReservationDeleted": "Its reservation was deleted. Submit it again without.",
    "BadConstraints": "Can never start: no node has what it asks for. Ask for less, or for other features.",
    "InvalidAccount": "Its account in Slurm is not valid any more. Submit it with another.",
    "InvalidQOS": "Its QOS is not valid any more. Submit it with another.",
    "AccountNotAllowed": "The partition does not take jobs of this account.",
    "QOSNotAllowed": "The account or the partition does not take this QOS.",
    "NodeDown": "A node that it needs is down.",
    "Cleaning": "Waits until its last attempt is cleaned up.",
    "Prolog": "Waits for the site's prolog on its nodes.",
    "BurstBufferResources": "Waits for room in the burst buffer.",
    "BurstBufferStageIn": "Waits until its files are in the burst buffer.",
    "FrontEndDown": "No front-end node of Slurm is available.",
    "SchedDefer": "Slurm starts nothing at once; it is looked at in the next round.",
    "SystemFailure": "Slurm itself failed. Ask its administrator.",
    "JobLaunchFailure": "Could not be started on its nodes, or was ended there by a signal.",
    "NonZeroExitCode": "Ended with another exit code than 0.",
    "TimeLimit": "Reached its time limit.",
    "InactiveLimit": "Was inactive for longer than the site allows.",
    "OutOfMemory": "Used more memory than it had asked for.",
    "DeadLine": "Could not end before its deadline.",
    "launch failed requeued held": "Could not be started on its nodes, so Slurm put it back and holds it. "
    "Look at the nodes, then release it: scontrol release.",
    "job requeued in held state": "Was put back into the queue and is held. Release it: scontrol release.",
    "user env retrieval failed requeued held": "Slurm could not read its owner's environment, and holds it.",
}
_LIMIT = re.compile(r"(QOS|Assoc)(?:Max|Min|Grp)?([A-Za-z]*)")
_SCOPE = re.compile(r"Per(User|Account|Job|Node)")
_SUBJECTS = (
    # The first that occurs in the reason without its scope.
    ("GRES", "GPUs or other devices"),
    ("Cpu", "processors"),
    ("CPU", "processors"),
    ("Mem", "memory"),
    ("Node", "nodes"),
    ("BB", "burst buffer"),
    ("Billing", "billing units"),
    ("License", "licences"),
    ("Energy", "energy"),
    ("Submit", "jobs in the queue"),
    ("Job", "jobs at once"),
    ("Wall", "time"),
    ("Resource", "resources"),
)
_SCOPES = (
    ("PerUser", "of one user"),
    ("PU", "of one user"),
    ("PerAccount", "of one account"),
    ("PA", "of one account"),
    ("PerJob", "in one job"),
    ("PerNode", "on one node"),
    ("Grp", "of all who share it"),
)


def explain_reason(reason: str) -> str:
    """Returns a sentence, empty if there is nothing to explain; an unknown reason is shown as it is.

    `reason` may carry details, as in `ReqNodeNotAvail, UnavailableNodes:n[1-2]`."""
    word, _, detail = reason.strip().strip("()").partition(",")
    if word in ("", "null"):
        return ""
    sentence = SENTENCES.get(word)
    if sentence is None:
        limit = _LIMIT.fullmatch(word)
        sentence = _limit_sentence(word, limit[1]) if limit else f"Slurm's reason is: {one_line(word)}."
    return f"{sentence} ({one_line(detail)})" if detail.strip() else sentence


def _limit_sentence(word: str, owner: str) -> str:
    name = "The QOS" if owner == "QOS" else "The account"
    limited = _SCOPE.sub("", word)
    subject = next((words for sign, words in _SUBJECTS if sign in limited), "use")
    if "Minutes" in word:
        subject = f"{subject} times minutes"
    scope = next((f" {words}" for sign, words in _SCOPES if sign in word), "")
    if "Min" in word and "Minutes" not in word:
        return f"{name} demands more {subject}{scope} ({word}). Ask for more, or choose another."
    is_permanent = "PerJob" in word or "PerNode" in word
    remedy = "Ask for less" if is_permanent else "It starts when others have ended; or ask for less"
    return f"{name} allows no more {subject}{scope} ({word}). {remedy}, or choose another."
