"""The content of an image that a script logs, from a file or from a figure of matplotlib."""

from __future__ import annotations

import io
import os

from trainhub_azureml.exceptions import UserErrorException

# Not typing.TYPE_CHECKING: every process of a job imports this.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def image_content(path: Any, plot: Any) -> tuple[bytes, str]:
    """Returns the content and the ending of the file name. Raises UserErrorException, and OSError for a file
    that cannot be read."""
    if (path is None) == (plot is None):
        raise UserErrorException("log_image: give either path or plot.")
    if plot is not None:
        # A figure, or pyplot itself, whose current figure it is then.
        buffer = io.BytesIO()
        plot.savefig(buffer, format="png")
        return buffer.getvalue(), ".png"
    if hasattr(path, "read"):
        return path.read(), ".png"
    with open(path, "rb") as file:
        return file.read(), os.path.splitext(str(path))[1] or ".png"
