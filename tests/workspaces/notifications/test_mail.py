"""Notifications over a real mail server on this machine, which refuses or is silent as a test wants."""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Iterator

import pytest
from django.utils import timezone
from pytest_django import Settings

from tests.workspaces.notifications.builders import channel, event
from workspaces.models import Channel, Delivery
from workspaces.notifications import delivery, email_message, outbox

pytestmark = pytest.mark.django_db
SILENT = "silent"


class Session(socketserver.StreamRequestHandler):
    server: MailServer

    def handle(self) -> None:
        if SILENT in self.server.answers:
            self.server.over.wait(30)
            return
        self._say("220 here")
        for line in self.rfile:
            verb = line[:4].decode().upper()
            answer = self.server.answers.get(verb, "354 go on" if verb == "DATA" else "250 fine")
            self._say(answer)
            if answer.startswith("354"):
                self.server.letters.append(b"".join(iter(self.rfile.readline, b".\r\n")).decode())
                self._say("250 taken")

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


class MailServer(socketserver.ThreadingTCPServer):
    """`answers`: verb -> the line that answers it, instead of the usual one."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Session)
        self.answers: dict[str, str] = {}
        self.letters: list[str] = []
        self.over = threading.Event()
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        self.over.set()
        self.shutdown()
        self.server_close()


@pytest.fixture
def server(settings: Settings) -> Iterator[MailServer]:
    running = MailServer()
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", running.server_address[1]
    yield running
    running.stop()


def send() -> Channel:
    """Sends one message; returns the channel afterwards."""
    channel("ann@example.org", kind="mail")
    outbox.post(event())
    delivery.tick(timezone.now())
    return Channel.objects.get()


def test_a_letter_arrives_with_subject_and_link(server: MailServer) -> None:
    assert send().last_error == ""
    (letter,) = server.letters
    assert "Subject: TrainHub: [failed] run:1" in letter
    assert "To: ann@example.org" in letter
    assert "http://hub/runs/1/" in letter
    assert Delivery.objects.get().state == "sent"


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        ({"RCPT": "550 nobody here"}, "The mail server refuses the address ann@example.org."),
        ({"MAIL": "451 not now"}, "The mail server could not be used: "),
        ({"DATA": "554 no"}, "The mail server could not be used: "),
        ({SILENT: ""}, "The mail server did not accept it within 1 s."),
    ],
    ids=["address", "sender", "content", "silence"],
)
def test_what_the_server_refuses_is_told_and_sent_later(
    server: MailServer, monkeypatch: pytest.MonkeyPatch, answers: dict[str, str], words: str
) -> None:
    if SILENT in answers:
        monkeypatch.setattr(email_message, "WITHIN_S", 1.0)
    server.answers = answers
    assert words in send().last_error
    assert (server.letters, Delivery.objects.get().state) == ([], "waiting")


def test_a_server_that_is_not_there_is_told(server: MailServer) -> None:
    server.stop()
    assert "The mail server could not be used: " in send().last_error
