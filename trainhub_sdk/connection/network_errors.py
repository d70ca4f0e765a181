"""What the network and the standard library say when there is no answer, in words for people."""

from __future__ import annotations

import socket
import ssl

from trainhub_sdk.connection.certificates import explain_refusal


class NotSent(Exception):
    """There was no connection, so nothing has reached the hub. `is_lasting`: another attempt in a moment
    would not help: nobody has the name, the certificate does not hold, or there is no TLS."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(describe(cause))
        self.is_lasting = (
            isinstance(cause, ssl.SSLCertVerificationError)
            or _is_no_tls(cause)
            or (isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME)
        )


def describe(error: BaseException) -> str:
    """Returns the reason, as the end of a sentence."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return explain_refusal(error)
    if _is_no_tls(error):
        return "it does not speak TLS; if it has no certificate write its address with http://"
    if isinstance(error, (TimeoutError, socket.timeout)):
        return "it does not answer in time"
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return str(text)


def _is_no_tls(error: BaseException) -> bool:
    return isinstance(error, ssl.SSLError) and error.reason == "WRONG_VERSION_NUMBER"
