"""The folder in which a node keeps downloaded data, each content once.

    names/ab/IDENTITY      a file, by where it was read (see RemoteFile.identity)
    objects/ab/SHA256      the same file, by its content, once that is known: a hard link
    objects/ab/SHA256-IDENTITY    another one of this content, until no run uses it (see contents.naming)
    parts/BOOT/ab/IDENTITY    a file that is being downloaded; IDENTITY.blocks says what has arrived of it
    swarms/NAME            which files nodes exchange under that name (see peers.swarm_table)
    trees/AGENT/RUN-ATTEMPT/INPUT    what a run sees: hard links to the files, or copies
    lists/KEY              whether all files of a list are here (see cached_lists)
    reserved/RUN-ATTEMPT   the bytes that a download still needs, locked while it goes on

Only the agent's account can enter them, but for the trees. What stands under `names` is complete; after a
crash of the machine see `durability`."""

from __future__ import annotations

import os

from trainhub_node import proc

PRIVATE = ("objects", "names", "parts", "reserved", "swarms", "lists")
# Of what has arrived. Earlier versions, with pieces of another size, had another name.
RECORD = ".blocks"
TREES = "trees"
# Many threads make files at the same time, which a folder takes one after the other.
SHARDS = {f"{number:02x}" for number in range(256)}
# Entered by the accounts of runs, which know the way to what is theirs and cannot list anything.
PASSAGE = 0o711


class DataCache:
    """`agent`: the name of the agent's own folder of trees: agents of one machine may share a cache."""

    COPY = "-"

    def __init__(self, folder: str, agent: str) -> None:
        self.folder = folder
        self.parts = f"{folder}/parts/{proc.boot_id()}"
        self.names = f"{folder}/names"
        self.objects = f"{folder}/objects"
        self.reserved = f"{folder}/reserved"
        self.lists = f"{folder}/lists"
        self.trees = f"{folder}/{TREES}/{agent}"

    def make(self) -> None:
        """Makes the folders that are missing."""
        for path, mode in (
            (self.folder, PASSAGE),
            (f"{self.folder}/{TREES}", PASSAGE),
            (self.trees, PASSAGE),
            *((f"{self.folder}/{name}", 0o700) for name in PRIVATE),
            (self.parts, 0o700),
        ):
            os.makedirs(path, mode=0o700, exist_ok=True)
            os.chmod(path, mode)
        # All at once: each file would look for its own otherwise.
        for folder in (self.objects, self.names, self.parts):
            for shard in SHARDS - set(os.listdir(folder)):
                os.makedirs(f"{folder}/{shard}", mode=0o700, exist_ok=True)

    def name(self, identity: str) -> str:
        return f"{self.names}/{identity[:2]}/{identity}"

    def has(self, identity: str) -> bool:
        """Returns whether the file is here."""
        return os.access(self.name(identity), os.F_OK)

    def content(self, sha256: str) -> str:
        return f"{self.objects}/{sha256[:2]}/{sha256}"

    def copy(self, sha256: str, identity: str) -> str:
        return f"{self.content(sha256)}{self.COPY}{identity}"

    def part(self, identity: str) -> str:
        return f"{self.parts}/{identity[:2]}/{identity}"

    def pieces(self, identity: str) -> str:
        return f"{self.part(identity)}{RECORD}"

    def swarm(self, name: str) -> str:
        return f"{self.folder}/swarms/{name}"

    def tree(self, attempt: str) -> str:
        """`attempt`: the name of its folder, RUN-ATTEMPT."""
        return f"{self.trees}/{attempt}"
