"""The estimators of frameworks: each begins with what the hub has in place of a curated environment."""

from __future__ import annotations

from typing import Any

from trainhub_azureml.distributions import TensorflowConfiguration
from trainhub_azureml.estimators.estimator import Estimator
from trainhub_azureml.exceptions import UserErrorException


class PyTorch(Estimator):
    framework = "PyTorch"


class TensorFlow(Estimator):
    """`worker_count`, `parameter_server_count`: the older way to give a ParameterServer."""

    framework = "TensorFlow"

    def __init__(
        self,
        source_directory: Any,
        *,
        worker_count: int = 1,
        parameter_server_count: int = 1,
        distributed_backend: str | None = None,
        **others: Any,
    ) -> None:
        if distributed_backend == "ps" and others.get("distributed_training") is None:
            others["distributed_training"] = TensorflowConfiguration(worker_count, parameter_server_count)
        super().__init__(source_directory, distributed_backend=distributed_backend, **others)


class Keras(Estimator):
    """On TensorFlow."""

    framework = "Keras"


class SKLearn(Estimator):
    """One process on one node."""

    framework = "Scikit-learn"


class Chainer(Estimator):
    """Refused when it is used: scripts import it beside the others."""

    def __init__(self, *_arguments: Any, **_others: Any) -> None:
        raise UserErrorException(
            "Chainer: there is no environment with Chainer, which has had no version since 2022: use "
            "Estimator with pip_packages=['chainer', …], or PyTorch."
        )
