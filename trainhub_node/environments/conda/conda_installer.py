"""Installs the packages of a conda environment, in a process of its own: `python -I conda_installer.py PREFIX
FOLDER`. Reads `conda.json` in the folder, and writes `activate.sh` there.

Imports nothing of TrainHub: the build copies this file to where its account can read it, and rattler beside
it where that account needs a copy. No script of a package runs."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shlex
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import rattler
    from rattler.networking import Client
    from rattler.shell import ActivationVariables, Shell, activate
except ImportError as error:
    sys.exit(f"error: this node has no py-rattler ({error}); install it for the agent's Python")

TIMEOUT_S = 60
# As when the script runs: rattler would take this process's own otherwise.
PATH = "/usr/bin:/bin"
BLOCK = 1024 * 1024
MISMATCH = (
    "the file {} of the channel is not the one that was locked: its hash differs. Make a new version of the "
    "environment if the file was replaced on purpose"
)
LINK_SCRIPT = "-post-link.sh"


def write_line(text: str) -> None:
    """Writes a line of the build log at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Progress:
    """Prints how many packages have been downloaded and installed."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._downloaded = 0
        self._linked = 0

    def on_download_completed(self, _: int) -> None:
        self._downloaded += 1
        self._say()

    def on_link_complete(self, _: int) -> None:
        self._linked += 1
        self._say()

    def _say(self) -> None:
        # Both go on at the same time.
        write_line(f"Downloaded {self._downloaded} and installed {self._linked} of {self._total} packages.")

    def __getattr__(self, name: str) -> Any:
        # rattler asks for many more steps; those that begin something return a number.
        if not name.startswith("on_"):
            raise AttributeError(name)
        return lambda *_, **__: 0


def rattler_record(package: dict[str, Any]) -> rattler.RepoDataRecord:
    return rattler.RepoDataRecord(
        rattler.PackageRecord(
            name=package["name"],
            version=package["version"],
            build=rattler.BuildString(package["build"]),
            build_number=package.get("build_number", 0),
            subdir=package["subdir"],
            noarch=package.get("noarch") or None,
            depends=package.get("depends", []),
            sha256=bytes.fromhex(package["sha256"]),
            size=package.get("size"),
            python_site_packages_path=package.get("site_packages") or None,
        ),
        file_name=package["file"],
        url=package["url"],
        channel=package["channel"],
    )


async def install_packages(prefix: str, folder: Path) -> None:
    request = json.loads((folder / "conda.json").read_text())
    if sentence := newer_glibc(request["packages"]):
        raise SystemExit(f"error: {sentence}")
    records = [rattler_record(with_checked_file(package, folder)) for package in request["packages"]]
    await rattler.install(
        records,
        target_prefix=prefix,
        cache_dir=folder / "conda-cache",
        installed_packages=[],
        platform=rattler.Subdir("linux-64"),
        execute_link_scripts=False,
        show_progress=False,
        client=Client.default_client(max_retries=3, timeout=TIMEOUT_S),
        reporter=Progress(len(records)),
    )
    for path in sorted(Path(prefix, "bin").glob(f".*{LINK_SCRIPT}")):
        name = path.name.removeprefix(".").removesuffix(LINK_SCRIPT)
        write_line(f"{name} has a script for conda to run after linking; it was not run.")


def with_checked_file(package: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Returns the package, from a copy whose hash is right if it comes from a folder: rattler checks only
    what it downloads."""
    if not package["url"].startswith("file://"):
        return package
    copy = folder / "files" / package["subdir"] / package["file"]
    copy.parent.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256()
    path = unquote(urlsplit(package["url"]).path)
    try:
        with open(path, "rb") as source, copy.open("wb") as target:
            while block := source.read(BLOCK):
                digest.update(block)
                target.write(block)
    except OSError as error:
        raise SystemExit(f"error: {path} cannot be read on this node: {error.strerror}") from error
    if digest.hexdigest() != package["sha256"]:
        raise SystemExit(f"error: {MISMATCH.format(package['file'])}")
    return {**package, "url": copy.as_uri()}


def newer_glibc(packages: list[dict[str, Any]]) -> str:
    """Returns which package needs a newer glibc than this machine has, as a sentence, or ""."""
    own = (os.confstr("CS_GNU_LIBC_VERSION") or "").rpartition(" ")[2]
    for package in packages:
        for need in package.get("depends", []):
            name, _, condition = need.partition(" ")
            version = condition.split(",")[0].removeprefix(">=").strip()
            if (
                name == "__glibc"
                and condition.startswith(">=")
                and own
                and version_numbers(version) > version_numbers(own)
            ):
                return (
                    f"{package['name']} needs glibc {version}, and this node has {own}; choose another node"
                )
    return ""


def version_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(item) for item in version.split(".") if item.isdecimal())


def write_activation(prefix: str, folder: Path) -> None:
    variables = ActivationVariables(None, PATH.split(":"))
    script = activate(Path(prefix), variables, Shell.bash).script
    target = shlex.quote(str(folder / "activated"))
    (folder / "activate.sh").write_text(f"{script}\nexec /usr/bin/env -0 > {target}\n")


def make_environment(prefix: str, folder: Path) -> None:
    # Before rattler looks there: no settings or passwords of an account.
    os.environ["HOME"] = str(folder)
    asyncio.run(install_packages(prefix, folder))
    write_activation(prefix, folder)


def install_failure(error: BaseException) -> str:
    """Returns why rattler failed, as a sentence without its end."""
    text = " ".join(str(error).replace("Caused by: ", ": ").split()) or type(error).__name__
    match = re.search(r"failed to fetch (\S+)", text)
    file = match[1] if match else "a package"
    if "hash mismatch" in text:
        return MISMATCH.format(file)
    if "404" in text:
        return f"the channel no longer has {file}; make a new version of the environment"
    if "No space left on device" in text or "Disk quota exceeded" in text:
        return "the disk of this node is full"
    if "error sending request" in text or "timed out" in text:
        url = re.search(r"https?://[^\s)]+", text)
        return f"this node cannot download {file} from {url[0] if url else 'its channel'}; check its network"
    return text


if __name__ == "__main__":
    code = 0
    try:
        make_environment(sys.argv[1], Path(sys.argv[2]))
    except SystemExit as error:
        write_line(str(error))
        code = 1
    except BaseException as error:  # a panic of rattler is no Exception
        write_line(f"error: {install_failure(error)}")
        code = 1
    # rattler's threads may crash while the interpreter ends.
    os._exit(code)
