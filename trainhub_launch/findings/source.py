"""Checks the source folder: whether it contains the script, and whether it contains secrets."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from pathlib import PurePosixPath

from trainhub_launch.findings.finding import Finding
from trainhub_launch.processes.launchers import launcher, python_script
from trainhub_launch.spec import RunSpec

_SECRET_NAMES = frozenset(
    {".env", ".netrc", ".pypirc", "id_rsa", "id_ed25519", "id_ecdsa", "credentials.json", "secrets.json"}
)
_SECRET_ENDINGS = (".pem", ".p12", ".pfx", ".key")


def source(spec: RunSpec, paths: Collection[str] | None) -> Iterator[Finding]:
    refusals = list(_kind_of_script(spec))
    yield from refusals
    if paths is None:
        return
    if spec.script and not refusals:
        yield from _missing("script", spec.script, paths)
    elif spec.command:
        user_launcher = launcher(spec.command)
        started = python_script(spec.command) or (user_launcher.script if user_launcher else "")
        if started.endswith(".py") and not started.startswith("/") and "$" not in started:
            yield from _missing("command", started, paths)
    yield from _secrets(paths)


def _kind_of_script(spec: RunSpec) -> Iterator[Finding]:
    script = spec.script
    if script.startswith(("/", "~")) or ".." in PurePosixPath(script).parts:
        yield Finding(
            "error", "script", f"{script!r} must be a path inside the source folder, such as 'train.py'"
        )
    elif script.startswith("-") or script.split(" ")[0] in ("python", "python3"):
        yield Finding(
            "error",
            "script",
            "give only the path of the script; options belong to 'arguments', another program to 'command'",
        )
    ending = PurePosixPath(script).suffix
    if ending == ".ipynb":
        yield Finding(
            "error", "script", "a notebook cannot be run as a script; export it to a .py file first"
        )
    elif ending in (".sh", ".bash"):
        yield Finding(
            "error", "script", f"{script} would be run by Python; give it as a command instead: bash {script}"
        )


def _missing(field: str, script: str, paths: Collection[str]) -> Iterator[Finding]:
    # Normalises spellings such as `./train.py`, because the paths of a snapshot have no such prefix.
    script_path = str(PurePosixPath(script))
    if script_path in paths or script_path.startswith("-"):
        return
    # Files near the root come first, and only 500 are compared: difflib compares the name with each of them.
    same_name = sorted(path for path in paths if PurePosixPath(path).name == PurePosixPath(script_path).name)
    scripts = sorted(
        (path for path in paths if path.endswith(".py")), key=lambda path: (path.count("/"), path)
    )[:500]
    near = same_name or get_close_matches(script_path, scripts, n=3) or scripts
    remedy = f"did you mean {' or '.join(near[:3])}?" if near else "it contains no Python file"
    yield Finding("error", field, f"{script_path} is not in the source folder; {remedy}")


def _secrets(paths: Collection[str]) -> Iterator[Finding]:
    suspicious = sorted(
        path
        for path in paths
        if PurePosixPath(path).name in _SECRET_NAMES or PurePosixPath(path).suffix in _SECRET_ENDINGS
    )
    if suspicious:
        more = f" and {len(suspicious) - 3} more" if len(suspicious) > 3 else ""
        yield Finding(
            "warning",
            "source",
            f"the whole source folder is copied and kept, {', '.join(suspicious[:3])}{more} too; "
            "name what is secret in .trainhubignore, and hand it over as a secret variable",
        )
