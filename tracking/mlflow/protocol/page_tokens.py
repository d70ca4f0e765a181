"""Page tokens in MLflow's format: Base64 of {"offset": first row of the next page}."""

from __future__ import annotations

import base64
import binascii

import orjson

from tracking.mlflow.protocol.errors import INVALID, MlflowError
from tracking.mlflow.protocol.fields import CallArgs, text


def offset_of(args: CallArgs) -> int:
    """Returns the offset in the argument `page_token`; 0 without one. Raises MlflowError if it is
    malformed."""
    token = text(args, "page_token")
    if not token:
        return 0
    try:
        content = orjson.loads(base64.b64decode(token, validate=True))
    except (binascii.Error, ValueError) as error:
        raise MlflowError(INVALID, "Invalid page token, could not base64-decode") from error
    offset = content.get("offset") if isinstance(content, dict) else None
    if isinstance(offset, bool) or not isinstance(offset, int) or not 0 < offset < 2**62:
        raise MlflowError(
            INVALID,
            "Invalid page token: this server did not issue it; leave it out to start from the first page.",
        )
    return offset


def encode_offset(offset: int) -> str:
    return base64.b64encode(orjson.dumps({"offset": offset})).decode()
