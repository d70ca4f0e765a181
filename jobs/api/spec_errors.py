"""Finds all wrong fields of a spec, where the reader stops at the first one."""

from __future__ import annotations

import copy
import re
from typing import Any

from jobs.scheduling.run_preview import preview
from jobs.scheduling.submission import SubmitRefused
from trainhub_launch.errors import SpecError
from trainhub_launch.findings import Finding
from trainhub_launch.spec import RunSpec
from trainhub_launch.spec_reader import read_spec
from workspaces.access import Principal

MAX_ERRORS = 20


def read_whole_spec(data: Any, who: Principal) -> RunSpec:
    """Returns the RunSpec. Raises SubmitRefused with an error for each wrong field, and the errors that a
    preview has without these fields."""
    try:
        return read_spec(data)
    except SpecError as error:
        raise SubmitRefused(_all_errors(copy.deepcopy(data), error, who)) from error


def _all_errors(data: Any, first: SpecError, who: Principal) -> tuple[Finding, ...]:
    errors = [Finding("error", first.field, first.message)]
    while len(errors) < MAX_ERRORS and _remove(data, errors[-1].field):
        try:
            spec = read_spec(data)
        except SpecError as error:
            errors.append(Finding("error", error.field, error.message))
        else:
            wrong = {error.field for error in errors}
            return (*errors, *(item for item in preview(spec, who).errors if item.field not in wrong))
    return tuple(errors)


def _remove(data: Any, path: str) -> bool:
    """Removes a field (`limits.grace_s`, `arguments[2]`: all arguments), after which it has its default.
    Returns False if it is not there: it is required."""
    *parents, name = re.sub(r"\[.*", "", path).split(".")
    for parent in parents:
        data = data.get(parent) if isinstance(data, dict) else None
    if not isinstance(data, dict) or name not in data:
        return False
    del data[name]
    return True
