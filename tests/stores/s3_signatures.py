"""Checks the signatures of requests as S3 does: version 4, in headers or in the address."""

from __future__ import annotations

import hashlib
import hmac
from datetime import UTC, datetime, timedelta
from email.message import Message
from urllib.parse import parse_qsl, quote, urlsplit

KEY_ID, SECRET = "AKIATEST", "the-secret-part-of-the-key"
# As far as the clocks of client and store may be apart.
MAX_SKEW = timedelta(minutes=15)
_TIME = "%Y%m%dT%H%M%SZ"


class RequestSignature:
    """The signature of one request. `skew`: by how much the clock of the store is ahead."""

    def __init__(self, command: str, path: str, headers: Message, skew: timedelta) -> None:
        self.command, self.path, self.headers = command, path, headers
        self._now = datetime.now(UTC) + skew

    def problem(self, content: bytes | None = None) -> str:
        """Returns the code of the error, "" for a right signature of version 4. `content`: the body, whose
        hash is signed, too."""
        named = dict(split_query(urlsplit(self.path).query))
        if "X-Amz-Signature" in named:
            return self._wrong_address(named)
        words = self.headers.get("Authorization", "").replace(",", " ").split()
        fields = dict(word.split("=", 1) for word in words[1:] if "=" in word)
        key_id, _, scope = fields.get("Credential", "").partition("/")
        if key_id != KEY_ID:
            return "InvalidAccessKeyId" if key_id else "AccessDenied"
        date, payload = self.headers["x-amz-date"], self.headers["x-amz-content-sha256"]
        right = self._signature(scope, date, fields["SignedHeaders"].split(";"), payload)
        if not hmac.compare_digest(right, fields["Signature"]):
            return "SignatureDoesNotMatch"
        if abs(self._now - datetime.strptime(date, _TIME).replace(tzinfo=UTC)) > MAX_SKEW:
            return "RequestTimeTooSkewed"
        is_hashed = content is not None and payload != "UNSIGNED-PAYLOAD"
        if is_hashed and hashlib.sha256(content or b"").hexdigest() != payload:
            return "XAmzContentSHA256Mismatch"
        return ""

    def _wrong_address(self, named: dict[str, str]) -> str:
        """The same for an address that is signed, and for a time only."""
        key_id, _, scope = named["X-Amz-Credential"].partition("/")
        signed_at = datetime.strptime(named["X-Amz-Date"], _TIME).replace(tzinfo=UTC)
        if key_id != KEY_ID:
            return "InvalidAccessKeyId"
        if self._now > signed_at + timedelta(seconds=int(named["X-Amz-Expires"])):
            return "AccessDenied"
        headers = named["X-Amz-SignedHeaders"].split(";")
        right = self._signature(scope, named["X-Amz-Date"], headers, "UNSIGNED-PAYLOAD")
        return "" if hmac.compare_digest(right, named["X-Amz-Signature"]) else "SignatureDoesNotMatch"

    def _signature(self, scope: str, date: str, headers: list[str], payload: str) -> str:
        parts = urlsplit(self.path)
        query = sorted(
            (quote(name, safe="-_.~"), quote(value, safe="-_.~"))
            for name, value in split_query(parts.query)
            if name != "X-Amz-Signature"
        )
        canonical = "\n".join(
            [
                self.command,
                parts.path,
                "&".join(f"{name}={value}" for name, value in query),
                *(f"{name}:{' '.join(self.headers[name].split())}" for name in headers),
                "",
                ";".join(headers),
                payload,
            ]
        )
        digest = hashlib.sha256(canonical.encode()).hexdigest()
        text = "\n".join(["AWS4-HMAC-SHA256", date, scope, digest])
        key = f"AWS4{SECRET}".encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        return hmac.new(key, text.encode(), "sha256").hexdigest()


def split_query(text: str) -> list[tuple[str, str]]:
    return parse_qsl(text, keep_blank_values=True)
