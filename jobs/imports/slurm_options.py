"""The options of `#SBATCH` and srun, and what each means for a spec."""

from __future__ import annotations

import math
import re
import shlex
from collections import deque
from collections.abc import Iterator

from jobs.exports.sbatch import EXPERIMENT, NICE
from jobs.imports.draft import NODES, PER_NODE, PROCESSES, ImportDraft, ProcessLayout
from trainhub_launch.spec import EXPERIMENT_NAME, LOWEST_PRIORITY

_SHORT = {
    "J": "job-name",
    "N": "nodes",
    "n": "ntasks",
    "c": "cpus-per-task",
    "t": "time",
    "p": "partition",
    "A": "account",
    "q": "qos",
    "o": "output",
    "e": "error",
    "G": "gpus",
    "a": "array",
    "d": "dependency",
    "w": "nodelist",
    "x": "exclude",
    "C": "constraint",
    "D": "chdir",
    "L": "licenses",
    "K": "kill-on-bad-exit",
    "l": "label",
    "u": "unbuffered",
    "m": "distribution",
    "W": "wait",
}
FLAGS = frozenset(
    {"exclusive", "requeue", "no-requeue", "hold", "overcommit", "label", "unbuffered", "contiguous", "exact"}
    | {"kill-on-bad-exit", "overlap", "spread-job", "reboot"}
)
# Option: what to do instead.
_REMEDIES = {
    "partition": "choose a cluster of TrainHub",
    "account": "TrainHub counts use by workspace",
    "qos": "see priority",
    "output": "TrainHub keeps the log of each process",
    "error": "TrainHub keeps the log of each process",
    "array": "submit a run for each task, or start a sweep",
    "requeue": "set limits.retries, after how many failures it starts again",
    "no-requeue": "limits.retries is 0 unless you set it",
    "exclusive": 'set resources.gpus_per_node to "all" for whole nodes with GPUs',
    "mail-type": "choose what you are told about in your settings",
    "mail-user": "choose what you are told about in your settings",
    "chdir": "processes start in the folder of the code",
}
_UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}


def split_options(text: str) -> Iterator[tuple[str, str]]:
    """Yields the long name and the value of each option. Raises ValueError for a quote without its end."""
    words = deque(shlex.split(text, comments=True))
    while words:
        word = words.popleft()
        if word.startswith("--"):
            name, separator, value = word[2:].partition("=")
        elif word.startswith("-") and len(word) > 1:
            name, separator, value = _SHORT.get(word[1], word[1]), word[2:], word[2:].removeprefix("=")
        else:
            yield word, ""
            continue
        if not separator and name not in FLAGS and words and not words[0].startswith("-"):
            value = words.popleft()
        yield name, value


class SlurmOptions:
    """Collects options, some of which mean something only together. A later one replaces an earlier one."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[str, int]] = {}

    def add(self, name: str, value: str, line: int) -> None:
        self.values[name] = (value, line)

    def number(self, name: str) -> int | None:
        match = re.match(r"\d{1,9}", self.values.get(name, ("", 0))[0])
        return int(match[0]) if match else None

    def apply(self, draft: ImportDraft) -> None:
        """Puts what they mean into the draft, with a note on each."""
        nodes = self.number("nodes") or 1
        tasks = self.number("ntasks-per-node")
        if tasks is None and (total := self.number("ntasks")):
            tasks = -(-total // nodes)
        draft.layout = ProcessLayout(nodes, tasks)
        for name, (value, line) in self.values.items():
            if not self._apply(draft, name, value, line):
                remedy = _REMEDIES.get(name, "leave it out, or say it in the script")
                draft.refuse(f"--{name}", f"a spec has nothing like it: {remedy}", line)

    def _apply(self, draft: ImportDraft, name: str, value: str, line: int) -> bool:
        if name in ("nodes", "ntasks", "ntasks-per-node"):
            return self._apply_count(draft, name, value, line)
        if name in ("gres", "gpus-per-node", "gpus", "gpus-per-task"):
            return self._apply_gpus(draft, name, value, line)
        if name in ("cpus-per-task", "mem", "mem-per-cpu"):
            return self._apply_size(draft, name, value, line)
        field = f"--{name}"
        if name == "job-name" and value:
            draft.put(("display_name",), value[:200], field, line)
        elif name == "comment" and EXPERIMENT_NAME.match(value.removeprefix(EXPERIMENT)):
            if not value.startswith(EXPERIMENT):
                return False
            draft.put(("experiment",), value.removeprefix(EXPERIMENT), field, line)
        elif name == "time" and (seconds := parse_duration(value)):
            draft.put(("limits", "timeout_s"), seconds, field, line)
        elif name == "signal" and (match := re.search(r"@(\d{1,4})\Z", value)):
            message = "TrainHub sends SIGTERM when the time is over, and ends it so long after that"
            draft.put(("limits", "grace_s"), int(match[1]), field, line, message)
        elif name == "nice" and value.isdecimal() and int(value[:9]) > 0:
            priority = max(LOWEST_PRIORITY, -math.ceil(int(value[:9]) / NICE))
            draft.put(("priority",), priority, field, line, f"becomes priority {priority} of -10 to 10")
        else:
            return False
        return True

    def _apply_count(self, draft: ImportDraft, name: str, value: str, line: int) -> bool:
        count = self.number(name)
        if not count:
            return False
        message = f"becomes {count}, the least of {value}" if not value.isdecimal() else ""
        path = {"nodes": NODES, "ntasks": PROCESSES, "ntasks-per-node": PER_NODE}[name]
        draft.put(path, count, f"--{name}", line, message)
        return True

    def _apply_gpus(self, draft: ImportDraft, name: str, value: str, line: int) -> bool:
        match = re.fullmatch(r"(?:gres/)?(?:gpu:)?(?:([A-Za-z][^:,(]*):)?(\d{1,3})(?:\(.*\))?", value)
        if value == "gpu":
            count, model = 1, ""
        elif match and (name != "gres" or value.startswith(("gpu:", "gres/gpu:"))):
            count, model = int(match[2]), match[1] or ""
        else:
            return False
        if name == "gpus":
            count = -(-count // draft.layout.nodes)
        elif name == "gpus-per-task":
            count *= draft.layout.per_node or 1
        changes = [f"becomes {count} on each node"] if name in ("gpus", "gpus-per-task") else []
        changes += [f"the model {model!r} is left out: a spec names none"] if model else []
        draft.put(("resources", "gpus_per_node"), count, f"--{name}", line, "; ".join(changes))
        return True

    def _apply_size(self, draft: ImportDraft, name: str, value: str, line: int) -> bool:
        tasks = draft.layout.per_node or 1
        if name == "cpus-per-task":
            count = self.number(name)
            if not count:
                return False
            message = f"becomes {count * tasks} cores for the {tasks} tasks of a node" if tasks > 1 else ""
            draft.put(("resources", "cpus"), float(count * tasks), f"--{name}", line, message)
            return True
        match = re.fullmatch(r"(\d{1,12})([KMGT]?)B?", value.upper())
        size = int(match[1]) * _UNITS[match[2] or "M"] if match else 0
        if not size:
            return False
        if name == "mem-per-cpu":
            size *= tasks * (self.number("cpus-per-task") or 1)
            message = "becomes the memory of all cores of a node together"
        else:
            message = ""
        draft.put(("resources", "memory"), size, f"--{name}", line, message)
        return True


def parse_duration(text: str) -> int:
    """Returns the seconds that Slurm reads: minutes, minutes:seconds, hours:minutes:seconds, days-hours,
    days-hours:minutes or days-hours:minutes:seconds; 0 for anything else."""
    match = re.fullmatch(r"(?:(\d{1,4})-)?(\d{1,6})(?::(\d{1,2}))?(?::(\d{1,2}))?", text)
    if match is None:
        return 0
    days, parts = match[1], [int(part) for part in match.groups()[1:] if part is not None]
    if days is not None:
        hours, minutes, seconds = [*parts, 0, 0][:3]
    elif len(parts) == 3:
        hours, minutes, seconds = parts
    else:
        hours, (minutes, seconds) = 0, [*parts, 0][:2]
    return int(days or 0) * 86400 + hours * 3600 + minutes * 60 + seconds
