"""The raw ASGI routes in front of Django for nodes and file transfers (docs/adr/0003).

The token is checked from the headers before any byte of the body is read.
"""

from __future__ import annotations

from starlette.convertors import StringConvertor, register_url_convertor
from starlette.routing import Route

from jobs.checkpoint_views import node_routes as checkpoint_routes
from jobs.checkpoint_views.node_routes import ADDRESS as CHECKPOINTS
from jobs.data_orders import result_routes
from jobs.data_orders.order_address import ADDRESS as DATA_ORDERS
from jobs.image_registry import routes as image_routes
from jobs.node_api import join_routes, node_routes
from jobs.node_owners import owned_routes
from jobs.node_upgrades import upgrade_routes
from jobs.node_upgrades.upgrade_routes import ADDRESS as UPGRADE
from jobs.order_downloads import dataset_files, package_routes
from jobs.order_downloads.package_tickets import ADDRESS as PACKAGES
from jobs.peers.tickets import ADDRESS as PEERS
from jobs.placements import claim_routes
from jobs.transfer import (
    dataset_downloads,
    dataset_uploads,
    downloads,
    manifests,
    peer_routes,
    stored_outputs,
    uploads,
)
from jobs.transfer.manifests import ADDRESS as MANIFESTS
from jobs.version_builds import upload_routes as build_uploads
from jobs.version_builds.tickets import ADDRESS as BUILDS


class _Rest(StringConvertor):
    """Matches the rest of the path as a file name that does not end with `/`: Django serves `…/logs/` and
    `…/logs/search/`."""

    regex = ".*[^/]"


register_url_convertor("rest", _Rest())

# Matched before all other routes: matching a hundred others first would take a tenth of a report's time.
report = Route("/api/v1/node/report/", owned_routes.report, methods=["POST"])
routes = [
    Route("/api/v1/node/ca/", join_routes.ca, methods=["GET"]),
    Route("/api/v1/node/wheel/", join_routes.wheel, methods=["GET"]),
    Route("/api/v1/node/wheel/{name:str}", join_routes.wheel, methods=["GET"]),
    Route("/api/v1/node/enrol/", join_routes.enrol, methods=["POST"]),
    Route("/api/v1/node/allocations/", claim_routes.redeem_claim, methods=["POST"]),
    Route("/api/v1/node/allocations/troubles/", claim_routes.take_trouble, methods=["POST"]),
    Route("/api/v1/node/program/{sha256:str}", claim_routes.program, methods=["GET"]),
    Route(UPGRADE, upgrade_routes.order, methods=["GET"]),
    Route(UPGRADE, upgrade_routes.take_step, methods=["POST"]),
    Route(f"{UPGRADE}programs/{{sha256:str}}", upgrade_routes.archive, methods=["GET"]),
    Route("/api/v1/node/claim/", owned_routes.claim, methods=["POST"]),
    Route("/api/v1/node/secrets/", node_routes.secrets, methods=["POST"]),
    report,
    Route("/api/v1/node/config/", node_routes.config, methods=["GET"]),
    Route(f"{PACKAGES}/", package_routes.prepare, methods=["POST"]),
    Route(f"{PACKAGES}/simple/{{name:str}}/", package_routes.project, methods=["GET"]),
    Route(f"{PACKAGES}/files/{{sha256:str}}/{{filename:str}}", package_routes.file, methods=["GET"]),
    Route(f"{CHECKPOINTS}/", checkpoint_routes.announce, methods=["POST"]),
    Route(f"{CHECKPOINTS}/{{number:int}}/", checkpoint_routes.deliver, methods=["POST"]),
    Route(f"{CHECKPOINTS}/removed/", checkpoint_routes.remove, methods=["POST"]),
    Route(f"{CHECKPOINTS}/files/{{sha256:str}}", checkpoint_routes.file, methods=["GET"]),
    Route(stored_outputs.ADDRESS, stored_outputs.note_stored, methods=["POST"]),
    Route("/api/v1/node/peer-server/", peer_routes.register_server, methods=["POST"]),
    Route(PEERS, peer_routes.swarm, methods=["POST"]),
    Route(MANIFESTS, manifests.manifest, methods=["GET"]),
    Route(dataset_files.ADDRESS, dataset_files.file, methods=["GET"]),
    Route(dataset_uploads.ADDRESS, dataset_uploads.put_file, methods=["PUT"]),
    Route(dataset_downloads.ADDRESS, dataset_downloads.dataset_file, methods=["GET"]),
    Route("/api/v1/snapshots/{sha256:str}", downloads.snapshot, methods=["GET"]),
    Route("/api/v1/uploads/{sha256:str}", uploads.progress, methods=["HEAD"]),
    Route("/api/v1/uploads/{sha256:str}", uploads.put, methods=["PUT"]),
    Route("/api/v1/runs/{run:str}/logs/{name:rest}", downloads.log, methods=["GET"]),
    Route("/api/v1/builds/{build:str}/log", downloads.build_log, methods=["GET"]),
    Route(f"{BUILDS}/{{build:str}}/files/{{sha256:str}}", build_uploads.has_build_file, methods=["HEAD"]),
    Route(f"{BUILDS}/{{build:str}}/files/{{sha256:str}}", build_uploads.put_build_file, methods=["PUT"]),
    Route(f"{BUILDS}/{{build:str}}/registry-login/", build_uploads.registry_login, methods=["GET"]),
    Route(f"{BUILDS}/{{build:str}}/result/", build_uploads.accept_build_result, methods=["POST"]),
    Route(f"{DATA_ORDERS}/{{order:str}}/list/", result_routes.put_list, methods=["PUT"]),
    Route(f"{DATA_ORDERS}/{{order:str}}/progress/", result_routes.note_progress, methods=["POST"]),
    Route(f"{DATA_ORDERS}/{{order:str}}/result/", result_routes.accept_result, methods=["POST"]),
    Route("/api/v1/data-orders/{order:str}/log", downloads.data_order_log, methods=["GET"]),
    Route("/api/v1/runs/{run:str}/outputs/{path:rest}", downloads.output, methods=["GET"]),
    Route("/v2/", image_routes.root, methods=["GET"]),
    Route("/v2/env/{version:int}/manifests/{digest:str}", image_routes.manifest, methods=["GET"]),
    Route("/v2/env/{version:int}/blobs/{digest:str}", image_routes.blob, methods=["GET"]),
]
