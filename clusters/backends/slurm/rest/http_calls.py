"""Calls of a slurmrestd over HTTP, and what its answers say went wrong."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import httpx

from clusters.backends.slurm.commands import CALL_TIMEOUT_S
from clusters.backends.slurm.errors import SlurmError, SlurmFault, one_line

# The one that this package reads and writes, and that has been tried with a real Slurm.
VERSION = "v0.0.38"
# The greatest that Slurm can read. It gives lower ones (MaxJobId), so no job ever has it.
NO_JOB = 2**26 - 1
# Slurm's numbers of errors.
UNSPECIFIED = -1
INVALID_JOB = 2017
INVALID_PARTITION = 2000
NOTHING_FOUND = 9003
# So slurmctld hangs up on a token that it does not accept, and so slurmdbd refuses one.
_TOKEN_ERRORS = frozenset({5005, 1007})
# Slurm's controller or its database cannot be reached, or is not the primary one.
_AWAY_ERRORS = frozenset({*range(1000, 1007), *range(1800, 1805), 2008, 5004, 6900, 7000, 7001})
# Of a proxy that does not reach it.
_PROXY_ERRORS = frozenset({502, 503, 504})
_NUMBERS = ("error_number", "error_code", "errno")
_AWAY = (
    "Slurm's controller (slurmctld) or its database (slurmdbd) does not answer slurmrestd. Jobs go on "
    "meanwhile; TrainHub asks again."
)


class RestProblem(SlurmError):
    """An answer of slurmrestd that reports an error of Slurm with this number. `content`: all of it."""

    def __init__(
        self, fault: SlurmFault, message: str, number: int, content: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(fault, message)
        self.number, self.content = number, content or {}


@dataclass(frozen=True)
class RestServer:
    """`url` of slurmrestd, without a slash at the end. `authority`: certificates (PEM) of who signed its own;
    empty: those that this machine trusts."""

    url: str
    authority: str = ""


@dataclass(frozen=True)
class RestCalls:
    """Calls as one account, with its token. `max_s`: how long any of them may take."""

    server: RestServer
    account: str
    token: str = field(repr=False)
    max_s: float = CALL_TIMEOUT_S

    def send(
        self, method: str, path: str, *, body: Any = None, timeout_s: float = CALL_TIMEOUT_S
    ) -> Mapping[str, Any]:
        """Returns the answer as JSON. `path`: below the address, such as `/slurm/v0.0.38/ping`. Raises
        SlurmError; RestProblem if Slurm gave its error a number."""
        answer = self._call(method, path, body, min(timeout_s, self.max_s))
        if answer.status_code == httpx.codes.UNAUTHORIZED:
            raise refused_token(self.account)
        if answer.status_code == httpx.codes.NOT_FOUND and VERSION in path:
            raise SlurmError(
                SlurmFault.VERSION,
                f"slurmrestd has no {path.split('/')[1]}/{VERSION}. TrainHub speaks that version: start "
                f"slurmrestd with -s openapi/{VERSION},openapi/db{VERSION}, or use a login node.",
            )
        if answer.status_code in _PROXY_ERRORS:
            raise _unreachable(self.server.url, f"what answers there says {answer.status_code}")
        try:
            content = answer.json()
        except ValueError:
            raise _unreadable(answer) from None
        if not isinstance(content, dict):
            raise _unreadable(answer)
        self._raise_errors(content, answer)
        return content

    def check_token(self) -> None:
        """Raises SlurmError if Slurm does not accept the token. Asks for the end of a job that cannot exist:
        only what would change something is answered with the reason of a refusal."""
        try:
            self.send("DELETE", f"/slurm/{VERSION}/job/{NO_JOB}")
        except RestProblem as problem:
            if problem.fault is not SlurmFault.REFUSED:
                raise

    def _raise_errors(self, content: Mapping[str, Any], answer: httpx.Response) -> None:
        errors = content.get("errors") or []
        if not isinstance(errors, list) or not all(isinstance(error, dict) for error in errors):
            raise _unreadable(answer)
        if not errors and answer.is_success:
            return
        numbers = [_number_of(error) for error in errors]
        texts = [str(error.get("error") or error.get("description") or "") for error in errors]
        detail = one_line("; ".join(filter(None, texts))) or f"status {answer.status_code}"
        number = next((number for number in numbers if number != UNSPECIFIED), UNSPECIFIED)
        if _TOKEN_ERRORS & {*numbers}:
            raise refused_token(self.account, f" ({detail})")
        if _AWAY_ERRORS & {*numbers}:
            raise RestProblem(SlurmFault.CONTROLLER_AWAY, f"{_AWAY} ({detail})", number)
        if number == UNSPECIFIED and answer.request.method == "GET":
            # Reads fail alike for a token that is refused and for a controller that is away.
            self.check_token()
            raise RestProblem(SlurmFault.CONTROLLER_AWAY, f"{_AWAY} ({detail})", number)
        raise RestProblem(SlurmFault.REFUSED, f"Slurm refused: {detail}", number, content)

    def _call(self, method: str, path: str, body: Any, timeout_s: float) -> httpx.Response:
        headers = {"X-SLURM-USER-NAME": self.account, "X-SLURM-USER-TOKEN": self.token}
        try:
            context = ssl.create_default_context(cadata=self.server.authority or None)
            # Proxies of the environment must not get the token, and no redirection leads it elsewhere.
            with httpx.Client(verify=context, trust_env=False, timeout=timeout_s) as client:
                return client.request(method, self.server.url + path, headers=headers, json=body)
        except httpx.TimeoutException as error:
            if isinstance(error, httpx.ConnectTimeout):
                raise _unreachable(self.server.url, "it does not answer") from error
            raise SlurmError(
                SlurmFault.TIMEOUT,
                f"slurmrestd gave no answer within {timeout_s:g} s. Slurm's controller may be overloaded or "
                "away; TrainHub asks again.",
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL, ssl.SSLError) as error:
            raise _unreachable(self.server.url, str(error)) from error


def refused_token(account: str, detail: str = "") -> SlurmError:
    return SlurmError(
        SlurmFault.TOKEN,
        f"Slurm does not accept the token of {account}: it has expired, or is of another cluster, or its key "
        f"was replaced. Make a new one with scontrol token, and enter it.{detail}",
    )


def _number_of(error: Mapping[str, Any]) -> int:
    value = next((error[name] for name in _NUMBERS if name in error), UNSPECIFIED)
    return value if isinstance(value, int) else UNSPECIFIED


def _unreachable(url: str, detail: str) -> SlurmError:
    if "CERTIFICATE_VERIFY_FAILED" in detail:
        return SlurmError(
            SlurmFault.UNREACHABLE,
            f"The certificate of {url} is not trusted. Enter the certificate of the authority that signed it "
            f"in the cluster's settings, and the name that it has. ({one_line(detail)})",
        )
    return SlurmError(
        SlurmFault.UNREACHABLE,
        f"slurmrestd cannot be reached at {url}. Check whether it runs, its address, and the network "
        f"between. ({one_line(detail)})",
    )


def _unreadable(answer: httpx.Response) -> SlurmError:
    return SlurmError(
        SlurmFault.UNREADABLE,
        f"What answers at {answer.request.url} is no slurmrestd, or of a version that TrainHub cannot read: "
        f"status {answer.status_code}, {one_line(answer.text[:200])!r}.",
    )
