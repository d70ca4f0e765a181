"""Page tokens as MLflow spells them: where the next page begins, in Base64."""

from __future__ import annotations

import base64
import binascii

import orjson

from tracking.mlflow.protocol.errors import INVALID, MlflowError
from tracking.mlflow.protocol.fields import CallArgs, text


def offset_of(args: CallArgs) -> int:
    """Where the page that is asked for begins; 0 without a token."""
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
            INVALID, "Invalid page token: it is none that this server gave; leave it out to begin anew."
        )
    return offset


def encode(offset: int) -> str:
    return base64.b64encode(orjson.dumps({"offset": offset})).decode()
