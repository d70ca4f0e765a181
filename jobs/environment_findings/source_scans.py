"""What the script of a run imports. Each script of a snapshot is scanned once, in a process of its own, and
the result stays with the snapshot."""

from __future__ import annotations

from functools import cache
from pathlib import Path, PurePosixPath

from environments.imports.scan_process import SourceImports, imports_of, imports_to_json, scan_source
from jobs.models import Snapshot
from jobs.sources.examples import example
from trainhub_launch.processes.launchers import PER_NODE, launcher, python_script
from trainhub_launch.spec import ExampleSource, RunSpec
from workspaces.models import Workspace
from workspaces.stored_files import blob_cache

# Part of the key of a stored result: another version of the scan finds something else.
VERSION = 1
MAX_SCANS = 20


def entry_of(spec: RunSpec) -> str:
    """Returns the path of the script that the environment's Python runs first, "" if it is not certain."""
    script = spec.script
    if spec.command:
        program = spec.command[0]
        if "/" in program or "$" in program:
            return ""
        started = launcher(spec.command)
        is_per_node = started is not None and started.program in PER_NODE
        script = python_script(spec.command) or (started.script if started and is_per_node else "")
    if not script.endswith(".py") or script.startswith(("/", "-")) or "$" in script:
        return ""
    path = PurePosixPath(script)
    return "" if ".." in path.parts else str(path)


def script_imports(spec: RunSpec, workspace: Workspace) -> SourceImports | None:
    """Returns what the run's script imports whenever it runs; None if no script, or no source, is known."""
    entry = entry_of(spec)
    if not entry:
        return None
    if isinstance(spec.source, ExampleSource):
        return _of_folder(example(spec.source.name).folder, entry)
    snapshot = Snapshot.objects.filter(workspace=workspace, sha256=spec.snapshot).first()
    if snapshot is None or entry not in snapshot.paths:
        return None
    key = f"{VERSION}:{entry}"
    stored = snapshot.scans.get(key)
    if stored is not None:
        return imports_of(stored)
    imports = scan_source(blob_cache.local_path(snapshot.sha256), entry, _folder(entry))
    others = list(snapshot.scans.items())[-MAX_SCANS:]
    # Of two requests at once the later one is stored; both have found the same.
    Snapshot.objects.filter(pk=snapshot.pk).update(scans={**dict(others), key: imports_to_json(imports)})
    return imports


# The examples belong to the installation and do not change while the process runs.
@cache
def _of_folder(folder: Path, entry: str) -> SourceImports:
    return scan_source(folder, entry, _folder(entry))


def _folder(entry: str) -> str:
    folder = str(PurePosixPath(entry).parent)
    return "" if folder == "." else folder
