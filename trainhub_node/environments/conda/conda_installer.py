"""Installs the packages of a conda environment, in a process of its own: `python -I conda_installer.py PREFIX
FOLDER`. Reads `conda.json` in the folder, and writes `activate.sh` there. The variable TRAINHUB_PACKAGES
says how the hub is asked for packages, before their channels.

Imports nothing of TrainHub: the build copies this file to where its account can read it, and rattler beside
it where that account needs a copy. No script of a package runs."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import re
import shlex
import ssl
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any
from urllib import request
from urllib.parse import quote, unquote, urlsplit

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
HUB = "TRAINHUB_PACKAGES"
MAX_AT_ONCE = 4


def write_line(text: str) -> None:
    """Writes a line of the build log at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


class Progress:
    """Prints how many packages have been downloaded and installed. rattler calls it, but does not tell it of
    files that are on this machine already."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._downloaded = 0
        self._linked = 0

    def on_download_completed(self, _: int = 0) -> None:
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
    packages = json.loads((folder / "conda.json").read_text())["packages"]
    if sentence := newer_glibc(packages):
        raise SystemExit(f"error: {sentence}")
    progress = Progress(len(packages))
    if hub := os.environ.pop(HUB, ""):
        packages = HubDownload(json.loads(hub), folder).fetch(packages, progress)
    records = [rattler_record(with_checked_file(package, folder, progress)) for package in packages]
    await rattler.install(
        records,
        target_prefix=prefix,
        cache_dir=folder / "conda-cache",
        installed_packages=[],
        platform=rattler.Subdir("linux-64"),
        execute_link_scripts=False,
        show_progress=False,
        client=Client.default_client(max_retries=3, timeout=TIMEOUT_S),
        reporter=progress,
    )
    for path in sorted(Path(prefix, "bin").glob(f".*{LINK_SCRIPT}")):
        name = path.name.removeprefix(".").removesuffix(LINK_SCRIPT)
        write_line(f"{name} has a script for conda to run after linking; it was not run.")


class HubDownload:
    """Gets the files of packages from the hub. `hub`: the address of its files, the ticket of the order that
    opens them, its certificates and proxies."""

    def __init__(self, hub: dict[str, Any], folder: Path) -> None:
        self._hub = hub
        self._folder = folder
        context = ssl.create_default_context(cafile=hub["certificates"] or None)
        self._opener = request.build_opener(
            request.ProxyHandler(hub["proxies"]), request.HTTPSHandler(context=context)
        )

    def fetch(self, packages: list[dict[str, Any]], progress: Progress) -> list[dict[str, Any]]:
        """Returns the packages; those that the hub has are in a folder now."""
        result = []
        with ThreadPoolExecutor(MAX_AT_ONCE) as threads:
            for before, after in zip(packages, threads.map(self._fetch, packages), strict=True):
                result.append(after)
                if after is not before:
                    progress.on_download_completed()
        return result

    def _fetch(self, package: dict[str, Any]) -> dict[str, Any]:
        url = f"{self._hub['files']}/{package['sha256']}/{quote(package['file'])}"
        query = request.Request(url, headers={"Authorization": f"Bearer {self._hub['ticket']}"})  # noqa: S310
        copy = copy_path(package, self._folder)
        try:
            with self._opener.open(query, timeout=TIMEOUT_S) as answer:
                is_right = write_checked(answer, copy, package["sha256"])
        except OSError as error:  # of the connection, the answer or this disk
            reason = getattr(error, "reason", "") or error
            write_line(f"{package['file']} does not come from the hub ({reason}): its channel is asked.")
            return package
        return {**package, "url": copy.as_uri()} if is_right else package


def copy_path(package: dict[str, Any], folder: Path) -> Path:
    """Returns where the file of a package is kept until it is installed."""
    path = folder / "files" / str(package["subdir"]) / str(package["file"])
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def write_checked(source: IO[bytes], path: Path, sha256: str) -> bool:
    """Copies the bytes to the file, and returns whether they have this hash. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("wb") as target:
        while block := source.read(BLOCK):
            digest.update(block)
            target.write(block)
    return digest.hexdigest() == sha256


def with_checked_file(package: dict[str, Any], folder: Path, progress: Progress) -> dict[str, Any]:
    """Returns the package, from a copy whose hash is right if it comes from a folder: rattler checks only
    what it downloads."""
    copy = copy_path(package, folder)
    if not package["url"].startswith("file://") or package["url"] == copy.as_uri():
        return package
    path = unquote(urlsplit(package["url"]).path)
    try:
        with open(path, "rb") as source:
            is_right = write_checked(source, copy, package["sha256"])
    except OSError as error:
        raise SystemExit(f"error: {path} cannot be read on this node: {error.strerror}") from error
    if not is_right:
        raise SystemExit(f"error: {MISMATCH.format(package['file'])}")
    progress.on_download_completed()
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
