"""Nodes of one run that exchange a dataset's files: the hub's routes, the processes that serve and those that
download, all of them real and on this machine."""

from __future__ import annotations

import base64
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from clusters.enrolment import node_tokens
from datastores.models import PeerServer
from jobs.byte_routes import routes
from jobs.models import AttemptNode, Run
from jobs.peers import tickets
from tests.hub import eventually, free_port
from tests.node.data.processes import ATTEMPT, Fetch, bucket
from tests.stores.s3_server import BUCKET, MODIFIED_AT, S3Server, etag
from trainhub_launch.data.downloads import DataDownload
from trainhub_launch.data.manifests import ListedFile, ManifestWriter
from trainhub_node.bootstrap_command import AGENT_WRAPPER
from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.peers.serving import PeerServing
from trainhub_node.link.hub_client import HubClient

ADDRESS = "127.0.0.1"


@contextmanager
def hub_routes() -> Iterator[str]:
    """The address of a web server with the routes for nodes."""
    port = free_port()
    server = uvicorn.Server(
        uvicorn.Config(Starlette(routes=routes), host=ADDRESS, port=port, log_level="warning")
    )
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        eventually(lambda: server.started, 20, "the hub's routes do not answer")
        yield f"http://{ADDRESS}:{port}"
    finally:
        server.should_exit = True
        thread.join()


class SwarmNode:
    """A node of the run, with a cache of its own."""

    def __init__(self, hub: str, folder: Path, part: AttemptNode) -> None:
        self.hub = hub
        self.folder = folder / part.node.name
        self.part = part
        _, token = node_tokens.enrol_node(part.node.cluster.name, part.node.name)
        self.cache = DataCache(str(self.folder), "")
        self.client = HubClient(hub, token)
        self.serving = PeerServing(self.cache, self.client, 0, AGENT_WRAPPER, lambda: ADDRESS)

    @property
    def name(self) -> str:
        return str(self.part.node.name)

    def serve(self) -> PeerServer:
        self.serving.start()
        found = PeerServer.objects.filter(node=self.part.node)
        eventually(found.exists, 20, f"{self.name} does not serve")
        return found.get()

    def server_pid(self) -> int:
        """The process that serves."""
        command = f"\0peers\0{self.folder}\0"
        for entry in Path("/proc").glob("[0-9]*"):
            try:
                if command in (entry / "cmdline").read_text():
                    return int(entry.name)
            except OSError:
                continue
        raise AssertionError(f"{self.name} has no process that serves")

    def close(self) -> None:
        self.serving.close()
        self.client.close()


class Swarm:
    """The nodes, and the list of everything that the store has now."""

    def __init__(self, server: S3Server, nodes: list[SwarmNode], folder: Path) -> None:
        self.server = server
        self.nodes = nodes
        self.manifest = folder / "list"
        self.download = DataDownload(bucket(server), "", "key", "workspace 1", "ab" * 32)
        with self.manifest.open("wb") as output:
            writer = ManifestWriter(output)
            for key, content in sorted(server.objects[BUCKET].items()):
                writer.write(ListedFile(key, len(content), etag(content), MODIFIED_AT))
            writer.flush()
        self.bytes = sum(map(len, server.objects[BUCKET].values()))

    def fetch(self, member: SwarmNode, attempt: str = ATTEMPT) -> Fetch:
        peers = {
            "swarm": self.download.swarm,
            "url": f"{member.hub}{tickets.ADDRESS}",
            "ticket": tickets.hub_ticket(member.part, self.download.swarm),
            "ca": "",
            "proxies": {},
        }
        return Fetch(
            member.folder,
            self.download.store,
            attempt=attempt,
            manifest=str(self.manifest),
            scope=self.download.scope,
            peers=peers,
        )

    def ticket(self, member: SwarmNode, server: PeerServer) -> bytes:
        """What `member` shows to the node with this server."""
        return base64.b64decode(tickets.ticket_for_peer(member.part, self.download.swarm, server.node))


def parts_of(run: Run) -> list[AttemptNode]:
    parts = AttemptNode.objects.select_related("attempt__run", "node__cluster").filter(attempt__run=run)
    return list(parts.order_by("node_rank"))
