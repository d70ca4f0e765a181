"""What makes a hub slow, silent or wrong in use."""

from __future__ import annotations

import ctypes
import shutil
from statistics import median

from django.conf import settings
from django.core.checks import CheckMessage, Warning

from clusters.node_reports import node_clock, notices
from trainhub.deployment import stored_facts
from trainhub.deployment.stored_facts import all_nodes

SQLITE_NODES = 4
MIN_FREE_SHARE = 0.05
MAX_NAMES = 10
# What ntp_adjtime() returns if nothing keeps the clock right.
TIME_ERROR = 5
# Larger than struct timex on any platform.
TIMEX_BYTES = 512


def small_database() -> list[CheckMessage]:
    count = len(all_nodes())
    if settings.DATABASES["default"]["ENGINE"] != "django.db.backends.sqlite3" or count < SQLITE_NODES:
        return []
    text = f"{count} nodes report to a hub on SQLite, which writes for one at a time."
    hint = (
        "Move to PostgreSQL before more nodes join: manage.py migrate-to-postgresql takes all data along "
        "(docs/upgrade.md)."
    )
    return [Warning(text, hint=hint, id="trainhub.W012")]


def unindexed_names() -> list[CheckMessage]:
    if not stored_facts.lacks_name_index():
        return []
    text = "Searches for a part of a run's name read all runs: the database lacks the index run_name_parts."
    hint = (
        "The migration could not make the extension pg_trgm. Add both as docs/limits.md says (a long "
        "history); the hub may go on meanwhile."
    )
    return [Warning(text, hint=hint, id="trainhub.W019")]


def no_mail() -> list[CheckMessage]:
    if settings.EMAIL_URL:
        return []
    text = "There is no mail server: no invitations, new passwords or alerts by mail."
    hint = "Set EMAIL_URL, for example smtp+tls://user:password@mail.example.org:587, and EMAIL_FROM."
    return [Warning(text, hint=hint, id="trainhub.W013")]


def full_disk() -> list[CheckMessage]:
    folder = settings.DATA_DIR
    if not folder.exists():
        return []
    usage = shutil.disk_usage(folder)
    if usage.free >= max(settings.ALERT_DISK_FREE_BYTES, usage.total * MIN_FREE_SHARE):
        return []
    text = (
        f"The disk of {folder} has only {usage.free / 2**30:.1f} GiB of {usage.total / 2**30:.0f} GiB free."
    )
    hint = (
        "Delete runs that nobody needs (their files go after PURGE_DAYS, docs/usage.md), or move DATA_DIR to "
        "a larger disk while the hub is stopped."
    )
    return [Warning(text, hint=hint, id="trainhub.W014")]


def wrong_clock() -> list[CheckMessage]:
    """Nodes tell by their reports how far the hub's clock is from theirs; the kernel tells whether anything
    keeps it right."""
    offset = median([node.clock_offset_s for node in all_nodes()] or [0.0])
    if abs(offset) > node_clock.NOTICED_S:
        how = "ahead of" if offset > 0 else "behind"
        text = f"The hub's clock is {abs(offset):.0f} s {how} those of its nodes."
    elif is_clock_unsynchronised():
        text = "Nothing keeps the clock of this machine right."
    else:
        return []
    hint = (
        "Install chrony, or run `timedatectl set-ntp true`; in a container, on the machine that it runs on."
    )
    return [Warning(text, hint=hint, id="trainhub.W015")]


def is_clock_unsynchronised() -> bool:
    """Returns whether the kernel says so; False where it cannot be asked."""
    try:
        adjtime = ctypes.CDLL(None).ntp_adjtime
    except AttributeError:
        return False
    return bool(adjtime(ctypes.create_string_buffer(TIMEX_BYTES)) == TIME_ERROR)


def outdated_agents() -> list[CheckMessage]:
    names = [node.name for node in all_nodes() if notices.has_other_agent(node)]
    if not names:
        return []
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    text = f"The agents of these nodes are not of the hub's version: {', '.join(names[:MAX_NAMES])}{more}."
    hint = "Install the hub's package on them again and restart the agents; runs continue (docs/nodes.md)."
    return [Warning(text, hint=hint, id="trainhub.W016")]
