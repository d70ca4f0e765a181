"""What of the package `determined` a script imports that runs do not offer."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from trainhub_sdk.determined.config import WARNING, ExperimentConfig
from trainhub_sdk.determined.job.not_offered import OFFERED, sentence

_NAMES = ("core", "get_cluster_info", "ClusterInfo", "TrialInfo", "LOG_FORMAT")


def mention_imports(config: ExperimentConfig, folder: Path | None, script: str) -> None:
    """Adds a finding for each module that the script imports and a run would refuse. `folder`: of the code,
    None if unknown; `script`: "" if the experiment has none."""
    file = folder / script if folder is not None and script else None
    if file is None or not file.is_file():
        return
    try:
        tree = ast.parse(file.read_bytes())
    except (SyntaxError, ValueError):
        return  # of another version of Python, or a template: only a run can tell
    refused = {module: line for line, module in sorted(_imports(tree), reverse=True)}
    for module, line in sorted(refused.items(), key=lambda item: item[1]):
        config.add(WARNING, "entrypoint", f"{script}, line {line}: {sentence(module)}")


def _imports(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yields the line and the module of each import from `determined` that is not offered."""
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("determined.")]
        elif isinstance(node, ast.ImportFrom) and node.module == "determined":
            names = [f"determined.{alias.name}" for alias in node.names if alias.name not in _NAMES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("determined."):
            names = [str(node.module)]
        line = getattr(node, "lineno", 0)
        yield from ((line, ".".join(name.split(".")[:2])) for name in names if name not in OFFERED)
