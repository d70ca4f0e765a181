"""Brings TrainHub's node program to a node of a Slurm job, and becomes it.

The batch script holds this text, and `srun` runs it once on each node: `python3 -I -c TEXT URL SHA256`. It
needs nothing but a Python, and one that is too old can still say so. The program is fetched from the hub once
for each Unix account and version of the hub, into ~/.cache/trainhub, or for this job alone where that folder
cannot be written. An interpreter that has the package trainhub_node fetches nothing.
"""

import atexit
import contextlib
import fcntl
import hashlib
import hmac
import http.client
import importlib.util
import json
import os
import platform
import pwd
import runpy
import shutil
import socket
import ssl
import sys
import tarfile
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import IO, Dict, Optional

OLDEST = (3, 11)
# How long the hub may be away.
FETCH_WITHIN_S = 300.0
RETRY_S = 2.0
TELL_TIMES = 5
TIMEOUT_S = 60.0
CHUNK = 1 << 20
UNUSED_S = 30 * 24 * 3600
MAX_SENTENCE = 300
LOCK = ".lock"
LOST = (ConnectionError, socket.timeout)
# The locks of what this process uses, for as long as it lives.
locks: Dict[Path, IO[str]] = {}


class StartFailed(Exception):
    """The node program cannot start here; the message is a sentence that says why."""


def start_node(url: str, digest: str) -> None:
    try:
        if sys.version_info < OLDEST:
            raise StartFailed(
                f"{sys.executable} is Python {platform.python_version()}, and TrainHub needs "
                f"{'.'.join(map(str, OLDEST))} or newer. Name another one in the cluster's settings (python)."
            )
        if importlib.util.find_spec("trainhub_node") is None:
            sys.path.insert(0, program_folder(url, digest))
    except StartFailed as failure:
        tell_hub(url, str(failure))
        sys.exit(f"trainhub: {failure}")
    sys.argv = ["trainhub-node", "allocation", url]
    runpy.run_module("trainhub_node", run_name="__main__")


def program_folder(url: str, digest: str) -> str:
    """Return the folder that has the program, which is fetched if this account has none of this version."""
    if not digest:
        raise StartFailed("The hub could not make its package for nodes; its log says why.")
    home = Path(os.environ.get("TRAINHUB_PROGRAM_CACHE") or own_home() / ".cache" / "trainhub")
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = home / ("node-" + digest[:16])
        # All that run it share it, and one fetches it alone. Where nothing locks, each of them fetches it.
        lock = home / (folder.name + LOCK)
        hold(lock, fcntl.LOCK_SH)
        if not folder.is_dir():
            hold(lock, fcntl.LOCK_EX)
            if not folder.is_dir():
                fetch_into(home, folder, url, digest)
                remove_unused(home)
            hold(lock, fcntl.LOCK_SH)
        os.utime(str(lock))
        return str(folder)
    except OSError as error:
        sys.stderr.write(f"trainhub: {home} cannot hold the node program ({error}).\n")
    temporary = Path(tempfile.mkdtemp(prefix="trainhub-node-"))
    atexit.register(shutil.rmtree, str(temporary), ignore_errors=True)
    try:
        fetch_into(temporary, temporary / "node", url, digest)
    except OSError as error:
        raise StartFailed(f"Neither {home} nor {temporary} can hold the node program: {error}.") from error
    return str(temporary / "node")


def fetch_into(parent: Path, folder: Path, url: str, digest: str) -> None:
    """Make `folder`, which appears complete or not at all. Raises OSError, and StartFailed."""
    work = Path(tempfile.mkdtemp(prefix="part-", dir=str(parent)))
    try:
        archive = work / "node.tar.gz"
        fetch_archive(url, digest, archive)
        # The digest has proved that these are the hub's files.
        with tarfile.open(str(archive)) as members:
            # Without it, a Python from 3.12 on warns.
            members.extraction_filter = getattr(tarfile, "data_filter", None)
            members.extractall(str(work / "tree"))  # noqa: S202
        with contextlib.suppress(OSError):
            # Fails if another node of this job, which shares the folder, was faster.
            (work / "tree").rename(folder)
        if not folder.is_dir():
            raise OSError(0, "no folder could be made", str(parent))
    finally:
        shutil.rmtree(str(work), ignore_errors=True)


def fetch_archive(url: str, digest: str, path: Path) -> None:
    deadline = time.monotonic() + FETCH_WITHIN_S
    headers = {"Authorization": "Bearer " + own_claim()}
    while True:
        try:
            sha256 = hashlib.sha256()
            with open_url(f"{url}/api/v1/node/program/{digest}", headers) as answer, path.open("wb") as file:
                for chunk in iter(lambda: answer.read(CHUNK), b""):
                    sha256.update(chunk)
                    file.write(chunk)
            if sha256.hexdigest() == digest:
                return
            reason = "what it sent is not its package for nodes"
        except urllib.error.HTTPError as error:
            if error.code < 500:
                raise StartFailed(f"The hub does not give its package for nodes: {error}.") from error
            reason = str(error)
        # As every error of a connection is one of the system, it must not look like a full disk.
        except (urllib.error.URLError, http.client.HTTPException, ssl.SSLError, *LOST) as error:
            reason = str(getattr(error, "reason", error))
        if time.monotonic() > deadline:
            raise StartFailed(f"The package for nodes could not be fetched from {url}: {reason}.")
        time.sleep(RETRY_S)


def open_url(address: str, headers: Dict[str, str], data: Optional[bytes] = None) -> IO[bytes]:
    """Raises OSError, of which the errors of urllib are kinds, and StartFailed."""
    fingerprint = os.environ.get("TRAINHUB_HUB_FINGERPRINT", "")
    context = ssl.create_default_context(cadata=authority(address, fingerprint) if fingerprint else None)
    request = urllib.request.Request(address, data, headers)  # noqa: S310 - the hub has written the address
    answer: IO[bytes] = urllib.request.urlopen(request, timeout=TIMEOUT_S, context=context)  # noqa: S310
    return answer


def authority(address: str, fingerprint: str) -> str:
    """Return the hub's own authority. Its fingerprint proves it, whoever answers; nothing secret is sent."""
    unverified = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unverified.check_hostname = False
    unverified.verify_mode = ssl.CERT_NONE
    own = urllib.parse.urljoin(address, "/api/v1/node/ca/")
    with urllib.request.urlopen(own, timeout=TIMEOUT_S, context=unverified) as answer:  # noqa: S310
        pem = str(answer.read(CHUNK).decode("ascii", "replace")).strip() + "\n"
    try:
        sha256 = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pem)).hexdigest()
    except ValueError:
        sha256 = ""
    if not hmac.compare_digest(sha256, fingerprint):
        raise StartFailed(
            f"What answers at {own} shows another certificate authority than the hub that submitted this "
            "job: it is another hub, or somebody stands between. Nothing was sent to it."
        )
    return pem


def tell_hub(url: str, sentence: str) -> None:
    """Tell the hub why there is no node, if it can be reached: few people look into the output of a job."""
    claim = {
        "code": own_claim(),
        "job_id": int(os.environ.get("SLURM_JOB_ID") or 0),
        "restart_count": int(os.environ.get("SLURM_RESTART_COUNT") or 0),
        "node": os.environ.get("SLURMD_NODENAME") or socket.gethostname(),
        "trouble": sentence[:MAX_SENTENCE],
    }
    address, data = url + "/api/v1/node/allocations/troubles/", json.dumps(claim).encode()
    for _ in range(TELL_TIMES):
        try:
            open_url(address, {"Content-Type": "application/json"}, data).close()
            return
        # Slurm may not call the job running yet.
        except (OSError, StartFailed) as error:
            sys.stderr.write(f"trainhub: the hub was not told: {error}\n")
            time.sleep(RETRY_S)


def own_claim() -> str:
    return os.environ.get("TRAINHUB_CLAIM", "")


def own_home() -> Path:
    # Of this machine: HOME is that of the machine from which the job was submitted.
    with contextlib.suppress(KeyError):
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    return Path.home()


def hold(path: Path, kind: int) -> None:
    """Lock the file for as long as this process lives, or until it is locked in another way."""
    if path not in locks:
        locks[path] = path.open("a")
    with contextlib.suppress(OSError):
        fcntl.flock(locks[path], kind)


def remove_unused(home: Path) -> None:
    """Delete the programs that no job has used for a month and none uses now."""
    for path in home.glob("node-*" + LOCK):
        with contextlib.suppress(OSError), path.open("a") as lock:
            if time.time() - path.stat().st_mtime > UNUSED_S:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(str(home / path.name[: -len(LOCK)]), ignore_errors=True)
                path.unlink()


if __name__ == "__main__":
    start_node(*sys.argv[1:3])
