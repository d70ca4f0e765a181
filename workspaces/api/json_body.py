"""Parses JSON bodies of requests to the API within bounded memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any, NoReturn

from django.conf import settings
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import JSONParser

# Values in one body. Each takes up to 240 bytes of memory, however short it is in JSON.
MAX_VALUES = 200_000


class BodyTooLarge(APIException):
    status_code = 413


class BoundedJSONParser(JSONParser):
    """Refuses a body that is larger than DATA_UPLOAD_MAX_MEMORY_SIZE, which Django enforces for forms only,
    or that has more than MAX_VALUES values."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,  # noqa: ARG002
        parser_context: Mapping[str, object] | None = None,  # noqa: ARG002
    ) -> Any:
        most = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        # One byte more than permitted shows that there is more, without reading it.
        data: bytes = stream.read(most + 1)
        if len(data) > most:
            raise BodyTooLarge(f"The JSON body is larger than the {most // 2**20} MiB that this hub accepts.")
        # Commas inside texts count too: this is an upper bound, found without parsing.
        if data.count(b",") + data.count(b"[") + data.count(b"{") > MAX_VALUES:
            raise BodyTooLarge(f"The JSON body may hold at most {MAX_VALUES:,} values; send fewer at once.")
        try:
            return json.loads(data.decode(), parse_constant=_refuse_constant)
        except ValueError as error:
            raise ParseError(f"The body is not JSON: {str(error)[:200]}") from error
        except RecursionError as error:
            raise ParseError("The body is not JSON that can be read: it is nested too deeply") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")
