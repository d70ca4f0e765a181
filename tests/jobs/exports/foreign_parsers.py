"""Reads exports with the parsers of the launchers themselves, which are too heavy for the hub's environment:

    python -m venv VENV
    VENV/bin/pip install azure-ai-ml dstack kubeflow skypilot jsonschema
    VENV/bin/pip install --no-deps torchx
    python -m tests.jobs.exports.write_exports FOLDER
    VENV/bin/python tests/jobs/exports/foreign_parsers.py FOLDER

Tried with azure-ai-ml 1.35.2, dstack 0.22.5, kubeflow 0.5.0 (kubeflow_trainer_api 2.3.0), skypilot 0.14.1 and
torchx 0.7.0. The files of `golden/` are such exports."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

MARK = "# trainhub-spec: "


def plain_variables(path: Path) -> dict[str, str]:
    """Returns the variables of the spec in the comment, without secrets."""
    line = next(line for line in path.read_text().split("\n") if line.startswith(MARK))
    variables = json.loads(line[len(MARK) :])["environment_variables"]
    return {name: value for name, value in variables.items() if isinstance(value, str)}


def parse_azureml(path: Path) -> None:
    job = importlib.import_module("azure.ai.ml").load_job(path)
    job._to_rest_object()
    assert dict(job.environment_variables or {}) == plain_variables(path)


def parse_dstack(path: Path) -> None:
    models = importlib.import_module("dstack._internal.core.models.configurations")
    interpolator = importlib.import_module("dstack._internal.utils.interpolator").VariablesInterpolator
    yaml = importlib.import_module("yaml")
    task = models.parse_run_configuration(yaml.safe_load(path.read_text()))
    secrets = interpolator({"secrets": {"wandb": "value"}})
    values = {name: secrets.interpolate_or_error(value) for name, value in task.env.as_dict().items()}
    assert values.items() >= plain_variables(path).items(), values


def parse_skypilot(path: Path) -> None:
    task = importlib.import_module("sky").Task.from_yaml(str(path))
    assert task.envs.items() >= plain_variables(path).items(), task.envs


def parse_trainjob(path: Path) -> None:
    yaml = importlib.import_module("yaml")
    models = importlib.import_module("kubeflow_trainer_api.models")
    data = yaml.safe_load(path.read_text())
    job = models.TrainerV1alpha1TrainJob.from_dict(data)
    # What the model does not know would be missing here.
    assert job.to_dict() == data, (job.to_dict(), data)


def parse_torchx(path: Path) -> None:
    os.environ.setdefault("WANDB_API_KEY", "value")
    os.environ.setdefault("KEY", "value")
    spec: Any = importlib.util.spec_from_file_location("component", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    app = module.trainhub_run()
    specs = importlib.import_module("torchx.specs")
    assert isinstance(app, specs.AppDef)
    macros = specs.macros.Values(img_root="", app_id="app", replica_id="1", rank0_env="RANK0")
    role = macros.apply(app.roles[0])
    assert role.args[1] == "\n".join(module.SCRIPT), role.args[1]
    assert role.env.items() >= plain_variables(path).items(), role.env
    assert role.env["NODE_RANK"] == "1"


PARSERS: dict[str, Callable[[Path], None]] = {
    "azureml": parse_azureml,
    "dstack": parse_dstack,
    "skypilot": parse_skypilot,
    "trainjob": parse_trainjob,
    "torchx": parse_torchx,
}


def main(folder: Path) -> int:
    failures = 0
    for format_name, parse in PARSERS.items():
        paths = sorted(path for path in (folder / format_name).rglob("*") if path.is_file())
        for path in paths:
            try:
                parse(path)
            except Exception as error:
                failures += 1
                print(f"{path.relative_to(folder)}: {type(error).__name__}: {error}")  # noqa: T201
        print(f"{format_name}: {len(paths)} files")  # noqa: T201
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
