"""A real NFS server: the kernel's, in a network namespace with a disk of its own, so that its network can be
cut. Only for a virtual machine: it mounts file systems and loads modules."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

NAMESPACE = "nfs-server"
CLIENT, SERVER, NOBODY = "10.99.0.1", "10.99.0.2", "10.99.0.77"
# No machine has it, in the network of the server.
ABSENT = "10.99.0.99"
PORT, START_S = 2049, 120
MIB = 2**20
# A machine that has no power, and not one that takes no connection.
DROP = "type filter hook input priority 0; policy drop;"
# In a root of its own: an export needs a file system that has an id, which overlays have not.
BEGIN = """
set -e
mount --make-rprivate /
mount -o loop {disk} {root}
cd {root}
mkdir -p usr etc proc dev run var/lib/nfs/v4recovery var/lib/nfs/sm srv/images srv/private
ln -s usr/bin usr/sbin usr/lib usr/lib64 .
for folder in usr dev proc; do mount --rbind /$folder $folder; done
cp -r /etc/passwd /etc/group /etc/nsswitch.conf /etc/netconfig /etc/services /etc/protocols /etc/rpc etc
mount -t nfsd nfsd proc/fs/nfsd
touch var/lib/nfs/etab var/lib/nfs/rmtab etc/exports
exec chroot {root} /bin/bash -c '
    rpcbind -w
    exportfs -o rw,no_subtree_check {client}:/srv/images
    exportfs -o rw,no_subtree_check {nobody}:/srv/private
    rpc.mountd
    # For so long it lets nobody open a file, because clients of its last start might come back.
    rpc.nfsd -G 10 -L 10 4
    exec sleep infinity
'
"""


def _run(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert not done.returncode, f"{argv}: {done.stdout} {done.stderr}"
    return done.stdout


class NfsServer:
    """It exports /srv/images to this machine, and /srv/private to another one. `images`: that folder, as the
    server has it."""

    def __init__(self) -> None:
        self._place = Path(tempfile.mkdtemp(prefix="nfs-server-", dir="/tmp"))
        disk, root = self._place / "disk", self._place / "root"
        root.mkdir()
        with disk.open("wb") as file:
            file.truncate(64 * MIB)
        _run("mkfs.ext4", "-q", str(disk))
        # Nothing else in that machine loads it.
        _run(Path("/proc/sys/kernel/modprobe").read_text().strip(), "loop")
        _run("ip", "netns", "add", NAMESPACE)
        _run("ip", "link", "add", "nfs-c", "type", "veth", "peer", "name", "nfs-s", "netns", NAMESPACE)
        _run("ip", "addr", "add", f"{CLIENT}/24", "dev", "nfs-c")
        _run("ip", "-n", NAMESPACE, "addr", "add", f"{SERVER}/24", "dev", "nfs-s")
        _run("ip", "link", "set", "nfs-c", "up")
        for name in ("lo", "nfs-s"):
            _run("ip", "-n", NAMESPACE, "link", "set", name, "up")
        script = BEGIN.format(disk=disk, root=root, client=CLIENT, nobody=NOBODY)
        self._process = subprocess.Popen(
            ["ip", "netns", "exec", NAMESPACE, "bash", "-c", script], start_new_session=True
        )
        self.images = Path(f"/proc/{self._process.pid}/root/srv/images")
        deadline = time.monotonic() + START_S
        while not self._is_up():
            assert time.monotonic() < deadline, "the NFS server does not start"
            time.sleep(0.2)

    def _is_up(self) -> bool:
        try:
            socket.create_connection((SERVER, PORT), 1).close()
        except OSError:
            return False
        return True

    def cut(self) -> None:
        """From now on it answers nothing, not even that it is gone."""
        self._filter("add table inet cut", f"add chain inet cut input {{ {DROP} }}")

    def heal(self) -> None:
        self._filter("add table inet cut", "delete table inet cut")

    def _filter(self, *commands: str) -> None:
        _run("ip", "netns", "exec", NAMESPACE, "nft", "; ".join(commands))

    def close(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(10)
