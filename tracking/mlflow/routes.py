"""URL routes of MLflow's tracking protocol, for its client and for its web pages."""

from __future__ import annotations

from starlette.routing import BaseRoute, Mount, Route, Router

from tracking.mlflow import (
    about,
    experiment_search,
    experiments,
    histories,
    inputs,
    logging_calls,
    runs,
    workspaces,
)
from tracking.mlflow.logged_models import logged_model_calls, logged_model_search
from tracking.mlflow.protocol.http import Handler, handler_for
from workspaces.states import Role

ROOTS = ("/api/2.0/mlflow", "/api/3.0/mlflow", "/ajax-api/2.0/mlflow", "/ajax-api/3.0/mlflow")
APIS = ("/api", "/ajax-api")
WRITE_ROLE = Role.CONTRIBUTOR

_CALLS: list[tuple[str, str, Handler]] = [
    ("POST", "runs/log-metric", logging_calls.log_metric),
    ("POST", "runs/log-batch", logging_calls.log_batch),
    ("POST", "runs/log-parameter", logging_calls.log_parameter),
    ("POST", "runs/set-tag", logging_calls.set_run_tag),
    ("POST", "runs/delete-tag", handler_for(runs.delete_run_tag, role=WRITE_ROLE)),
    ("POST", "runs/create", handler_for(runs.create_run, role=WRITE_ROLE)),
    ("GET", "runs/get", handler_for(runs.get_run)),
    ("POST", "runs/update", handler_for(runs.update_run, role=WRITE_ROLE)),
    ("POST", "runs/delete", handler_for(runs.delete, role=WRITE_ROLE)),
    ("POST", "runs/restore", handler_for(runs.restore, role=WRITE_ROLE)),
    ("POST", "runs/search", handler_for(runs.search_runs)),
    ("POST", "runs/log-inputs", handler_for(inputs.log_inputs, role=WRITE_ROLE)),
    ("POST", "runs/outputs", handler_for(inputs.log_outputs, role=WRITE_ROLE)),
    ("POST", "runs/log-model", handler_for(inputs.log_model, role=WRITE_ROLE)),
    ("POST", "experiments/create", handler_for(experiments.create_experiment, role=WRITE_ROLE)),
    ("GET", "experiments/get", handler_for(experiments.get_experiment)),
    ("GET", "experiments/get-by-name", handler_for(experiments.get_experiment_by_name)),
    ("POST", "experiments/search", handler_for(experiment_search.search_experiments)),
    ("GET", "experiments/search", handler_for(experiment_search.search_experiments)),
    ("GET", "experiments/list", handler_for(experiment_search.search_experiments)),
    ("POST", "experiments/update", handler_for(experiments.update_experiment, role=WRITE_ROLE)),
    ("POST", "experiments/delete", handler_for(experiments.delete, role=WRITE_ROLE)),
    ("POST", "experiments/restore", handler_for(experiments.restore, role=WRITE_ROLE)),
    ("POST", "experiments/set-experiment-tag", handler_for(experiments.set_experiment_tag, role=WRITE_ROLE)),
    (
        "POST",
        "experiments/delete-experiment-tag",
        handler_for(experiments.delete_experiment_tag, role=WRITE_ROLE),
    ),
    ("POST", "experiments/search-datasets", handler_for(inputs.search_datasets)),
    ("GET", "metrics/get-history", handler_for(histories.get_history)),
    ("GET", "metrics/get-history-bulk", handler_for(histories.get_history_bulk)),
    ("GET", "metrics/get-history-bulk-interval", handler_for(histories.get_history_bulk_interval)),
    ("POST", "logged-models", handler_for(logged_model_calls.create_logged_model, role=WRITE_ROLE)),
    ("POST", "logged-models/search", handler_for(logged_model_search.search_logged_models)),
    ("GET", "logged-models/{model_id}", handler_for(logged_model_calls.get_logged_model)),
    ("PATCH", "logged-models/{model_id}", handler_for(logged_model_calls.finalize, role=WRITE_ROLE)),
    (
        "DELETE",
        "logged-models/{model_id}",
        handler_for(logged_model_calls.delete_logged_model, role=WRITE_ROLE),
    ),
    (
        "PATCH",
        "logged-models/{model_id}/tags",
        handler_for(logged_model_calls.set_logged_model_tags, role=WRITE_ROLE),
    ),
    (
        "DELETE",
        "logged-models/{model_id}/tags/{key:path}",
        handler_for(logged_model_calls.delete_logged_model_tag, role=WRITE_ROLE),
    ),
    ("POST", "logged-models/{model_id}/params", handler_for(logged_model_calls.log_params, role=WRITE_ROLE)),
    ("GET", "workspaces", workspaces.list_workspaces),
    ("GET", "workspaces/{name}", workspaces.get_workspace),
    ("POST", "workspaces", about.unsupported),
    ("PATCH", "workspaces/{name}", about.unsupported),
    ("DELETE", "workspaces/{name}", about.unsupported),
    ("GET", "server-info", about.server_info),
]


def _mount_below(root: str) -> Mount:
    """Returns all calls below one root, with an error response for any other path."""
    calls: list[BaseRoute] = [
        Route(f"/{path}", handler, methods=[method]) for method, path, handler in _CALLS
    ]
    # The empty mount matches every path and comes last: unknown calls get MLflow's JSON error instead of a
    # page.
    return Mount(root, Router([*calls, Mount("", about.unsupported_below)], redirect_slashes=False))


# Routes that scripts call hundreds of times a second; the router tries them first.
hot = [Route(f"{ROOTS[0]}/{path}", handler, methods=[method]) for method, path, handler in _CALLS[:2]]
# They come after the routes of the registry and of artifacts, because they answer every path below the roots.
routes = [
    Route("/version", about.version),
    Route("/health", about.health),
    *(_mount_below(root) for root in ROOTS),
    # MLflow 3.17 lacks a slash in this address, on its server and in its pages.
    *(
        Route(
            f"{root}/2.0mlflow/experiments/search-datasets",
            handler_for(inputs.search_datasets),
            methods=["POST"],
        )
        for root in APIS
    ),
    *(
        Mount(root, about.unsupported_below)
        for root in ("/api/{version}/mlflow", "/api/2.0/mlflow-artifacts", APIS[1])
    ),
    Route("/graphql", about.unsupported, methods=["GET", "POST"]),
]
