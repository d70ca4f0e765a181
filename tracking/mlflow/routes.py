"""The addresses of MLflow's tracking protocol: as its client asks, and as its pages do."""

from __future__ import annotations

from starlette.routing import BaseRoute, Mount, Route, Router

from tracking.mlflow import about, experiment_search, experiments, histories, inputs, logging_calls, runs
from tracking.mlflow.logged_models import logged_model_calls, logged_model_search
from tracking.mlflow.protocol.http import Handler, call
from workspaces.states import Role

ROOTS = ("/api/2.0/mlflow", "/api/3.0/mlflow", "/ajax-api/2.0/mlflow", "/ajax-api/3.0/mlflow")
APIS = ("/api", "/ajax-api")
WRITER = Role.CONTRIBUTOR

_CALLS: list[tuple[str, str, Handler]] = [
    ("POST", "runs/log-metric", logging_calls.log_metric),
    ("POST", "runs/log-batch", logging_calls.log_batch),
    ("POST", "runs/log-parameter", logging_calls.log_parameter),
    ("POST", "runs/set-tag", logging_calls.set_tag),
    ("POST", "runs/delete-tag", call(runs.delete_tag, role=WRITER)),
    ("POST", "runs/create", call(runs.create, role=WRITER)),
    ("GET", "runs/get", call(runs.get)),
    ("POST", "runs/update", call(runs.update, role=WRITER)),
    ("POST", "runs/delete", call(runs.delete, role=WRITER)),
    ("POST", "runs/restore", call(runs.restore, role=WRITER)),
    ("POST", "runs/search", call(runs.search)),
    ("POST", "runs/log-inputs", call(inputs.log_inputs, role=WRITER)),
    ("POST", "runs/outputs", call(inputs.log_outputs, role=WRITER)),
    ("POST", "runs/log-model", call(inputs.log_model, role=WRITER)),
    ("POST", "experiments/create", call(experiments.create, role=WRITER)),
    ("GET", "experiments/get", call(experiments.get)),
    ("GET", "experiments/get-by-name", call(experiments.get_by_name)),
    ("POST", "experiments/search", call(experiment_search.search)),
    ("GET", "experiments/search", call(experiment_search.search)),
    ("GET", "experiments/list", call(experiment_search.search)),
    ("POST", "experiments/update", call(experiments.update, role=WRITER)),
    ("POST", "experiments/delete", call(experiments.delete, role=WRITER)),
    ("POST", "experiments/restore", call(experiments.restore, role=WRITER)),
    ("POST", "experiments/set-experiment-tag", call(experiments.set_tag, role=WRITER)),
    ("POST", "experiments/delete-experiment-tag", call(experiments.delete_tag, role=WRITER)),
    ("POST", "experiments/search-datasets", call(inputs.search_datasets)),
    ("GET", "metrics/get-history", call(histories.get)),
    ("GET", "metrics/get-history-bulk", call(histories.bulk)),
    ("GET", "metrics/get-history-bulk-interval", call(histories.bulk_interval)),
    ("POST", "logged-models", call(logged_model_calls.create, role=WRITER)),
    ("POST", "logged-models/search", call(logged_model_search.search)),
    ("GET", "logged-models/{model_id}", call(logged_model_calls.get)),
    ("PATCH", "logged-models/{model_id}", call(logged_model_calls.finalize, role=WRITER)),
    ("DELETE", "logged-models/{model_id}", call(logged_model_calls.delete, role=WRITER)),
    ("PATCH", "logged-models/{model_id}/tags", call(logged_model_calls.set_tags, role=WRITER)),
    ("DELETE", "logged-models/{model_id}/tags/{key:path}", call(logged_model_calls.delete_tag, role=WRITER)),
    ("POST", "logged-models/{model_id}/params", call(logged_model_calls.log_params, role=WRITER)),
    ("GET", "server-info", about.server_info),
]


def _below(root: str) -> Mount:
    """All calls below one root, and an answer to any other."""
    calls: list[BaseRoute] = [
        Route(f"/{path}", handler, methods=[method]) for method, path, handler in _CALLS
    ]
    return Mount(root, Router([*calls, Mount("", about.nothing_at_all)], redirect_slashes=False))


hot = [Route(f"{ROOTS[0]}/{path}", handler, methods=[method]) for method, path, handler in _CALLS[:2]]
"""Before all others: what is called hundreds of times a second."""
routes = [
    Route("/version", about.version),
    Route("/health", about.health),
    *(_below(root) for root in ROOTS),
    # MLflow 3.17 lacks a slash in this address, on its server and in its pages.
    *(
        Route(f"{root}/2.0mlflow/experiments/search-datasets", call(inputs.search_datasets), methods=["POST"])
        for root in APIS
    ),
    *(
        Mount(root, about.nothing_at_all)
        for root in ("/api/{version}/mlflow", "/api/2.0/mlflow-artifacts", APIS[1])
    ),
    Route("/graphql", about.nothing, methods=["GET", "POST"]),
]
"""Behind the routes of the registry and of artifacts: what is asked below these roots ends here."""
