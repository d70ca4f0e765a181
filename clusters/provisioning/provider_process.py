"""One question to a provider's program: JSON to its standard input, JSON from its standard output, within
bounds."""

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
from typing import IO, Any

from django.conf import settings

from clusters.provisioning.providers import ProviderError

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
MAX_STDERR_BYTES = 1 * 2**20
"""Of standard error; only its end is quoted."""
QUOTED = 500
LOOK_EVERY_S = 0.1


def call(
    program: Path, question: Mapping[str, Any], *, seconds: float, secrets: Collection[str] = ()
) -> dict[str, Any]:
    """The program's answer. Raises ProviderError when it fails, hangs, or answers what is no JSON object;
    `secrets` are never quoted. It may leave processes of its own behind only where it ends well."""
    env = {name: os.environ[name] for name in (*PASSED_VARIABLES, *settings.PROVIDER_ENV) if name in os.environ}
    try:
        process = subprocess.Popen(
            [str(program)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=program.parent,
            env=env,
            start_new_session=True,
        )
    except OSError as error:
        raise ProviderError(f"{program.name} could not be started: {error.strerror}.") from error
    with process:
        answer, complaint = bytearray(), bytearray()
        try:
            _converse(process, json.dumps(question).encode(), answer, complaint, time.monotonic() + seconds)
        except ProviderError as error:
            raise ProviderError(f"{program.name} {error}{_quoted(complaint, secrets)}") from None
        finally:
            if process.returncode != 0:
                _kill(process)
            for pipe in (process.stdout, process.stderr):
                if pipe is not None:
                    pipe.close()
    if process.returncode:
        how = (
            f"exited with code {process.returncode}"
            if process.returncode > 0
            else f"was ended by signal {-process.returncode}"
        )
        raise ProviderError(f"{program.name} {how}{_quoted(complaint, secrets)}")
    return _object(program, bytes(answer), secrets)


def _converse(
    process: subprocess.Popen[bytes],
    question: bytes,
    answer: bytearray,
    complaint: bytearray,
    deadline: float,
) -> None:
    """Until the program ends. Whoever it left behind may keep its pipes open, so their end is not waited
    for."""
    with selectors.DefaultSelector() as watched:
        for pipe, kept, most in (
            (process.stdout, answer, MAX_ANSWER_BYTES),
            (process.stderr, complaint, MAX_STDERR_BYTES),
        ):
            assert pipe is not None  # noqa: S101
            os.set_blocking(pipe.fileno(), False)
            watched.register(pipe, selectors.EVENT_READ, (kept, most))
        # Shorter than what a pipe holds, so this waits for nobody.
        with contextlib.suppress(BrokenPipeError):
            assert process.stdin is not None  # noqa: S101
            process.stdin.write(question)
            process.stdin.close()
        while process.poll() is None:
            if time.monotonic() >= deadline:
                raise ProviderError("did not answer in time and was ended")
            _read(watched, LOOK_EVERY_S)
        _read(watched, 0)


def _read(watched: selectors.BaseSelector, seconds: float) -> None:
    for key, _ in watched.select(seconds):
        kept, most = key.data
        pipe: IO[bytes] = key.fileobj  # type: ignore[assignment]
        while chunk := pipe.read(2**16):
            kept += chunk
            if len(kept) > most:
                raise ProviderError(f"wrote more than {most} bytes and was ended")
        if chunk == b"":
            watched.unregister(pipe)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _quoted(complaint: bytearray, secrets: Collection[str]) -> str:
    words = " ".join(bytes(complaint[-4 * QUOTED :]).decode(errors="replace").split())
    # Sentences reach terminals and logs too, where an escape sequence would be obeyed.
    text = _masked(
        "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in words), secrets
    )
    return f": {text[-QUOTED:]}" if text else "."


def _masked(text: str, secrets: Collection[str]) -> str:
    for secret in filter(None, secrets):
        text = text.replace(secret, "***")
    return text


def _object(program: Path, answer: bytes, secrets: Collection[str]) -> dict[str, Any]:
    try:
        found = json.loads(answer)
    except (ValueError, RecursionError):
        said = _masked(repr(answer[:60].decode(errors="replace")), secrets)
        raise ProviderError(f"{program.name} answered {said}, which is no JSON.") from None
    if not isinstance(found, dict):
        raise ProviderError(f"{program.name} must answer a JSON object.")
    return found
