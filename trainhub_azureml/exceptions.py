"""The exceptions of the SDK v1, each once: all spellings of its name lead to the same class."""

from __future__ import annotations


class AzureMLException(Exception):
    """The base of the others. `message`: what has happened; `inner_exception`: what caused it, or None."""

    def __init__(
        self, exception_message: str = "", inner_exception: object = None, **_others: object
    ) -> None:
        super().__init__(exception_message)
        self.message = exception_message
        self.inner_exception = inner_exception


class UserErrorException(AzureMLException):
    """A call is wrong, and its message says how to correct it."""


class ProjectSystemException(AzureMLException):
    """There is no such workspace or experiment."""


class WorkspaceException(ProjectSystemException):
    """The older name for it."""


class ComputeTargetException(AzureMLException):
    """There is no such compute target, or it cannot be made."""


class ExperimentExecutionException(AzureMLException):
    """The hub has refused a run."""


class ActivityFailedException(AzureMLException):
    """A run that was waited for has failed or was canceled."""


class RunEnvironmentException(AzureMLException):
    """The process is not part of a run."""


class AuthenticationException(AzureMLException):
    """The hub does not take the token."""


class ModelNotFoundException(AzureMLException):
    """There is no such model or version."""


class ServiceException(AzureMLException):
    """The hub has answered with an error."""
