"""Nodes of one run that exchange a dataset's files: the hub's routes, the processes that serve and those that
download, all of them real and on this machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette

from clusters.enrolment import node_tokens
from clusters.models import Node
from datastores.models import PeerServer
from jobs.byte_routes import routes
from jobs.models import AttemptNode, Run
from jobs.peers import tickets
from tests.hub import eventually, free_port
from tests.node.data.processes import Fetch, bucket
from tests.stores.s3_server import BUCKET, MODIFIED_AT, S3Server, etag
from trainhub_launch.data.downloads import DataDownload
from trainhub_launch.data.manifests import ListedFile, ManifestWriter
from trainhub_node.data.data_cache import DataCache
from trainhub_node.data.peers.serving import PeerServing
from trainhub_node.launch.wrapper import AGENT_WRAPPER
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

    def fetch(self, download: DataDownload, manifest: str, server: S3Server, **changes: Any) -> Fetch:
        peers = {
            "swarm": download.swarm,
            "url": f"{self.hub}{tickets.ADDRESS}",
            "ticket": tickets.hub_ticket(self.part, download.swarm),
            "ca": "",
            "proxies": {},
        }
        values = {"manifest": manifest, "scope": download.scope, "peers": peers, **changes}
        return Fetch(self.folder, bucket(server), download.path, **values)

    def close(self) -> None:
        self.serving.close()
        self.client.close()


def written_list(path: Path, server: S3Server) -> str:
    """Writes the list of everything in the bucket, as it is now."""
    with path.open("wb") as output:
        writer = ManifestWriter(output)
        for key, content in sorted(server.objects[BUCKET].items()):
            writer.write(ListedFile(key, len(content), etag(content), MODIFIED_AT))
        writer.flush()
    return str(path)


def download_of(server: S3Server) -> DataDownload:
    return DataDownload(bucket(server), "", "key", "workspace 1", "ab" * 32)


def parts_of(run: Run) -> list[AttemptNode]:
    parts = AttemptNode.objects.select_related("attempt__run", "node__cluster").filter(attempt__run=run)
    return list(parts.order_by("node_rank"))


def nodes_by_id() -> dict[int, str]:
    return dict(Node.objects.values_list("pk", "name"))
