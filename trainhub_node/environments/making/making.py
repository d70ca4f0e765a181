"""Carries out an order to make what a version of an environment consists of."""

from __future__ import annotations

import importlib

from trainhub_node.supervisor.gang import Gang, PreparationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# The name of the work in an order -> module with a function `make`, loaded only for such an order.
KINDS = {
    "dockerfile": "trainhub_node.environments.making.image_build",
    "wheels": "trainhub_node.environments.making.wheel_build",
}


def carry_out(gang: Gang) -> None:
    """Makes what the order names, and uploads it. Raises PreparationFailed, and StopRequested."""
    module = KINDS.get(str(gang.order["make"]["kind"]))
    if module is None:
        raise PreparationFailed("environment", "This node cannot make this; upgrade its agent.")
    work: Callable[[Gang], None] = importlib.import_module(module).make
    work(gang)
