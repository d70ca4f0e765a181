"""Calls a provider's program: JSON on its standard input, JSON from its standard output, with limits on time
and size."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import IO

from django.conf import settings

from clusters.provisioning.providers import ProviderError
from trainhub_launch.json_types import JsonObject, JsonValue

PASSED_VARIABLES = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
)
MAX_ANSWER_BYTES = 64 * 2**10
# Limit of standard error, of which only the end is quoted.
MAX_STDERR_BYTES = 1 * 2**20
MAX_QUOTED = 500
POLL_INTERVAL_S = 0.1


def call(
    program: Path, request: Mapping[str, JsonValue], *, seconds: float, secrets: Collection[str] = ()
) -> JsonObject:
    """Returns the program's answer. Raises ProviderError if it fails, times out or does not answer a JSON
    object; messages never contain `secrets`. Unless the program succeeds, its process group is killed."""
    # A chosen few variables: the hub's environment holds its secret key and the passwords of database and
    # broker.
    env = {
        name: os.environ[name] for name in (*PASSED_VARIABLES, *settings.PROVIDER_ENV) if name in os.environ
    }
    try:
        process = subprocess.Popen(
            [str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=program.parent,
            env=env,
            # A group of its own, so that a call that times out ends together with its child processes.
            start_new_session=True,
        )
    except OSError as error:
        raise ProviderError(f"{program.name} could not be started: {error.strerror}.") from error
    with process:
        answer, errors = bytearray(), bytearray()
        try:
            _exchange(process, json.dumps(request).encode(), answer, errors, time.monotonic() + seconds)
        except ProviderError as error:
            raise ProviderError(f"{program.name} {error}{_quoted(errors, secrets)}") from None
        finally:
            # None counts as well: after an error of the exchange the program may still run.
            if process.returncode != 0:
                _kill(process)
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
    if process.returncode:
        outcome = (
            f"exited with code {process.returncode}"
            if process.returncode > 0
            else f"was ended by signal {-process.returncode}"
        )
        raise ProviderError(f"{program.name} {outcome}{_quoted(errors, secrets)}")
    return _parse_answer(program, bytes(answer), secrets)


def _exchange(
    process: subprocess.Popen[bytes],
    request: bytes,
    answer: bytearray,
    errors: bytearray,
    deadline: float,
) -> None:
    """Exchanges data until the program ends. Its child processes may keep the pipes open, so it does not wait
    for the end of the pipes."""
    with selectors.DefaultSelector() as selector:
        for pipe, buffer, max_bytes in (
            (process.stdout, answer, MAX_ANSWER_BYTES),
            (process.stderr, errors, MAX_STDERR_BYTES),
        ):
            assert pipe is not None  # noqa: S101
            # A read must not block past the deadline.
            os.set_blocking(pipe.fileno(), False)
            selector.register(pipe, selectors.EVENT_READ, (buffer, max_bytes))
        # The request fits into the buffer of a pipe, so this does not block.
        with contextlib.suppress(BrokenPipeError):
            assert process.stdin is not None  # noqa: S101
            process.stdin.write(request)
            process.stdin.close()
        while process.poll() is None:
            if time.monotonic() >= deadline:
                raise ProviderError("did not answer in time and was ended")
            _read(selector, POLL_INTERVAL_S)
        # What the program wrote between the last read and its end.
        _read(selector, 0)


def _read(selector: selectors.BaseSelector, seconds: float) -> None:
    for key, _ in selector.select(seconds):
        buffer, max_bytes = key.data
        pipe: IO[bytes] = key.fileobj  # type: ignore[assignment]
        while chunk := pipe.read(2**16):
            buffer += chunk
            if len(buffer) > max_bytes:
                raise ProviderError(f"wrote more than {max_bytes} bytes and was ended")
        # A non-blocking read returns None without data, and empty bytes at the end of the pipe, which stays
        # readable for ever.
        if chunk == b"":
            selector.unregister(pipe)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _quoted(errors: bytearray, secrets: Collection[str]) -> str:
    # A character takes up to four bytes in UTF-8.
    words = " ".join(bytes(errors[-4 * MAX_QUOTED :]).decode(errors="replace").split())
    # The text reaches terminals and logs, where escape sequences would take effect.
    text = _masked(
        "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in words),
        secrets,
    )
    return f": {text[-MAX_QUOTED:]}" if text else "."


def _masked(text: str, secrets: Collection[str]) -> str:
    # A provider's error message may quote its input, and the journal of the cluster is read by all members.
    for secret in filter(None, secrets):
        text = text.replace(secret, "***")
    return text


def _parse_answer(program: Path, answer: bytes, secrets: Collection[str]) -> JsonObject:
    try:
        parsed = json.loads(answer)
    except (ValueError, RecursionError):
        quoted = _masked(repr(answer[:60].decode(errors="replace")), secrets)
        raise ProviderError(f"{program.name} answered {quoted}, which is not JSON.") from None
    if not isinstance(parsed, dict):
        raise ProviderError(f"{program.name} must answer a JSON object.")
    return parsed
