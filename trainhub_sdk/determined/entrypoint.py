"""What an experiment starts: a program of its own, one of Determined's launchers, or a class."""

from __future__ import annotations

import ast
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

from trainhub_sdk.determined.config import ERROR, HINT, WARNING, ExperimentConfig
from trainhub_sdk.shell_command import literal, needs_shell, split_line

_TRIAL_CLASS = re.compile(r"[A-Za-z0-9_.]+:[A-Za-z0-9_.]+")
_LAUNCH = "determined.launch."
TORCH, DEEPSPEED, HOROVOD, TENSORFLOW = "torch_distributed", "deepspeed", "horovod", "tensorflow"
LAUNCHERS = (TORCH, DEEPSPEED, HOROVOD, TENSORFLOW)
_REWRITE = (
    "Train in a plain script that calls determined.core.init(), reports metrics with train.report_..., and "
    "saves with checkpoint.store_path (Core API), and name it: entrypoint: python3 train.py"
)
HOOK = "startup-hook.sh"


class Launch(NamedTuple):
    """`launcher`: one of LAUNCHERS, "" if the experiment starts its processes itself; `fields`: script and
    arguments, or command, of the spec; `process_count_per_node`: None if the slots say it."""

    launcher: str
    fields: dict[str, Any]
    process_count_per_node: int | None = None


def read_entrypoint(config: ExperimentConfig, folder: Path | None) -> Launch:
    """`folder`: with the code, None if unknown. What cannot be started is an error among the findings."""
    entrypoint = config.get("entrypoint")
    if folder is not None and (folder / HOOK).is_file():
        text = f"{HOOK} is not run: what it installs belongs into an environment (docs/environments.md)."
        config.add(WARNING, "entrypoint", text)
    if isinstance(entrypoint, str) and entrypoint.strip():
        return _from_line(config, entrypoint.strip(), folder)
    if isinstance(entrypoint, (list, tuple)) and entrypoint:
        # No shell reads a list.
        words = [literal(str(word)) for word in entrypoint]
        return _from_words(config, words, folder)
    config.add(ERROR, "entrypoint", "is missing: name the program, such as python3 train.py.")
    return Launch("", {})


def _from_line(config: ExperimentConfig, line: str, folder: Path | None) -> Launch:
    if _TRIAL_CLASS.fullmatch(line):
        return _refuse_class(config, line, folder)
    if not needs_shell(line):
        return _from_words(config, shlex.split(line), folder)
    if _LAUNCH in line:
        config.add(
            ERROR,
            "entrypoint",
            "a launcher within a line for a shell cannot be translated: let the entrypoint be the launcher "
            "alone, with the script behind it, and do the rest in the script.",
        )
    return Launch("", {"command": split_line(line)})


def _from_words(config: ExperimentConfig, words: list[str], folder: Path | None) -> Launch:
    module = words[2] if len(words) > 2 and words[1] == "-m" and _is_python(words[0]) else ""
    if not module.startswith(_LAUNCH):
        return Launch("", _command(words))
    launcher = module[len(_LAUNCH) :]
    if launcher not in LAUNCHERS:
        text = f"there is no launcher {module} here; there are {', '.join(LAUNCHERS)}."
        config.add(ERROR, "entrypoint", text)
        return Launch("", {})
    options, rest = _split_options(words[3:], launcher)
    trial = next((word for word in [*options, *rest[:1]] if word.split("=")[0] == "--trial"), "")
    if trial:
        following = [word for word in words[3:] if word != "--"]
        place = following.index(trial)
        name = trial.partition("=")[2] or "".join(following[place + 1 : place + 2])
        return _refuse_class(config, name, folder)
    if not rest:
        config.add(ERROR, "entrypoint", f"names no script behind {module}.")
        return Launch("", {})
    count = _process_count(config, options)
    return Launch(launcher, _command(rest), count)


def _split_options(words: list[str], launcher: str) -> tuple[list[str], list[str]]:
    """Returns what is for the launcher, and the program behind it."""
    if "--" in words:
        place = words.index("--")
        return words[:place], words[place + 1 :]
    if launcher == TENSORFLOW and words[:1] == ["--port"]:
        return words[:2], words[2:]
    return [], words


def _process_count(config: ExperimentConfig, options: list[str]) -> int | None:
    """Returns the number of processes on a node that torchrun's options set. Says of all others that they do
    nothing."""
    count = None
    ignored = []
    pairs = re.split(r"\s+(?=--)", " ".join(options)) if options else []
    for pair in pairs:
        name, _, value = pair.replace("=", " ", 1).partition(" ")
        if name.replace("-", "_") in ("__nproc_per_node", "__np", "_np") and value.strip().isdigit():
            count = int(value)
        else:
            ignored.append(pair)
    if ignored:
        text = f"{', '.join(ignored)}: not passed on, TrainHub starts the processes itself."
        config.add(WARNING, "entrypoint", text)
    return count


def _command(words: list[str]) -> dict[str, Any]:
    """Returns the fields of the spec. A script is started by the interpreter of the run's environment."""
    if len(words) > 1 and _is_python(words[0]) and words[1].endswith(".py"):
        return {"script": words[1], "arguments": words[2:]}
    return {"command": words}


def _is_python(word: str) -> bool:
    return re.fullmatch(r"(?:.*/)?python[0-9.]*", word) is not None


def _refuse_class(config: ExperimentConfig, name: str, folder: Path | None) -> Launch:
    place = _class_place(folder, name)
    config.add(
        ERROR,
        "entrypoint",
        f"{name} is a trial class{place}, which only Determined's own training loop can run. {_REWRITE}",
    )
    return Launch("", {})


def _class_place(folder: Path | None, name: str) -> str:
    """Returns where a class is defined, in words, "" if unknown."""
    module, _, path = name.partition(":")
    file = "/".join(module.split(".")) + ".py"
    if folder is None or not (folder / file).is_file():
        return f" of {file}" if module else ""
    try:
        tree = ast.parse((folder / file).read_bytes())
    except (SyntaxError, ValueError):
        return f" of {file}"
    classes = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    line = next((node.lineno for node in classes if node.name == path.rpartition(".")[2]), None)
    return f" ({file}, line {line})" if line else f" of {file}"


def framework_hint(config: ExperimentConfig, launcher: str) -> None:
    """Says what the run of a launcher needs from its environment."""
    needs = {
        DEEPSPEED: "mpirun starts the processes: the environment needs DeepSpeed and mpi4py, and the script "
        "calls deepspeed.init_distributed() (docs/frameworks.md).",
        HOROVOD: "mpirun starts the processes: the environment needs Horovod (docs/frameworks.md).",
    }
    if launcher in needs:
        config.add(HINT, "entrypoint", needs[launcher])
