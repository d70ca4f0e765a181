"""Calls that the modules of this package share, and the translation of NVML's errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import pynvml  # of the package nvidia-ml-py; without it the agent must not start, rather than show no GPUs

from trainhub_node.gpu import nvml_errors
from trainhub_node.gpu.library import FieldId

WIDE = pynvml.NVML_VALUE_TYPE_UNSIGNED_LONG_LONG
# Codes for a field that the device or driver does not know. SUCCESS is a counter that is too narrow.
NO_SUCH_FIELD = dict.fromkeys(
    (nvml_errors.SUCCESS, nvml_errors.INVALID_ARGUMENT, nvml_errors.NOT_FOUND), nvml_errors.NOT_SUPPORTED
)
# The union member that holds a field's value, by its value type.
VALUE_MEMBERS = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
P = ParamSpec("P")
T = TypeVar("T")


def translate_errors(call: Callable[P, T]) -> Callable[P, T]:
    """Decorates a call so that it raises QueryFailed instead of NVMLError."""

    @wraps(call)
    def wrapper(*args: P.args, **options: P.kwargs) -> T:
        try:
            return call(*args, **options)
        except pynvml.NVMLError as error:
            raise nvml_errors.from_code(error.value, str(error)) from None

    return wrapper


@translate_errors
def read_fields(
    handle: object, field_ids: Sequence[FieldId], *, wide: bool = False
) -> Mapping[FieldId, float]:
    """Returns the fields that answer. One call reads all fields, and each has an error code of its own."""
    values = pynvml.nvmlDeviceGetFieldValues(handle, list(field_ids))
    result = {
        (field.fieldId, field.scopeId): getattr(field.value, VALUE_MEMBERS[field.valueType])
        for field in values
        if field.nvmlReturn == nvml_errors.SUCCESS and (field.valueType == WIDE or not wide)
    }
    if not result:
        code = values[0].nvmlReturn
        raise nvml_errors.from_code(NO_SUCH_FIELD.get(code, code), str(pynvml.NVMLError(code)))
    return result


def memory_info(handle: object) -> Any:
    """Returns the memory of a device as nvidia-smi shows it.

    The newer call reports the driver's own memory apart; the older one counts it as used."""
    try:
        return pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    except (
        pynvml.NVMLError_NotSupported,
        pynvml.NVMLError_FunctionNotFound,
        pynvml.NVMLError_ArgumentVersionMismatch,
    ):
        return pynvml.nvmlDeviceGetMemoryInfo(handle)


def or_none(call: Callable[P, T], *args: P.args, **options: P.kwargs) -> T | None:
    """Returns the result of a call that may fail without harm, else None."""
    try:
        return call(*args, **options)
    # pynvml decodes the driver's texts as UTF-8 and fails on other bytes.
    except (pynvml.NVMLError, UnicodeDecodeError):
        return None
