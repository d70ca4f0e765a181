"""What the process that reads event files can no longer do."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub import PROJECT

# Of the process, run with the folder that it may read as its argument.
SCRIPT = """
import json, os, signal, socket, sys
from pathlib import Path
from tracking.tensorboard import confinement

folder, secret, port = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3])
if not confinement.restrict_files(folder):
    print(json.dumps(None))
    sys.exit()
confinement.limit_resources()
confinement.drop_root()

def outcome(act):
    try:
        act()
    except OSError as error:
        return type(error).__name__
    return "allowed"

print(json.dumps({
    "read its folder": outcome((folder / "events").read_bytes),
    "read another file": outcome(secret.read_bytes),
    "list another folder": outcome(lambda: os.listdir(secret.parent)),
    "write into its folder": outcome(lambda: (folder / "new").write_text("x")),
    "connect": outcome(lambda: socket.socket().connect(("127.0.0.1", port))),
    "signal its parent": outcome(lambda: os.kill(os.getppid(), signal.SIGCONT)),
    "run a program": outcome(lambda: os.execv("/bin/true", ["true"])),
}))
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other accounts may enter: pytest's own are closed to them."""
    with tempfile.TemporaryDirectory(prefix="trainhub-test-") as path:
        Path(path).chmod(0o755)
        yield Path(path)


def test_it_reads_its_folder_and_nothing_else(place: Path) -> None:
    folder, secret = place / "folder", place / "hub" / "secret-key"
    for path in (folder, secret.parent):
        path.mkdir()
        path.chmod(0o755)
    (folder / "events").write_text("events")
    secret.write_text("secret")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(folder), str(secret), "9"],
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=True,
    )
    results = json.loads(done.stdout)
    if results is None:
        pytest.skip("this kernel has no Landlock: only the account limits TensorBoard")
    assert results.pop("read its folder") == "allowed"
    assert set(results.values()) == {"PermissionError"}, results
