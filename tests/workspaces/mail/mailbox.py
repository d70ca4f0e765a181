"""A real mail server that keeps what it receives."""

from __future__ import annotations

import re
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

from aiosmtpd.controller import Controller

from tests.hub import eventually, free_port

LINK = re.compile(r"https?://[^/\s]+(/sign-in/\S+)")


class Mailbox:
    """`letters`: what has arrived, in order. `is_refusing`: it answers that nobody has the address."""

    def __init__(self) -> None:
        self.letters: list[EmailMessage] = []
        self.is_refusing = False
        self.port = free_port()
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port)

    def start(self) -> Mailbox:
        self._controller.start()
        return self

    def stop(self) -> None:
        self._controller.stop()

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: Any, session: Any, envelope: Any, address: str, options: Any
    ) -> str:
        if self.is_refusing:
            return "450 not now"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:  # noqa: N802
        self.letters.append(message_from_bytes(envelope.content, policy=policy.default))
        return "250 OK"

    def letter_to(self, address: str, about: str = "") -> EmailMessage:
        """The last letter to this address whose subject contains `about`; waits for it."""

        def last() -> EmailMessage | None:
            letters = [one for one in self.letters if one["To"] == address and about in one["Subject"]]
            return letters[-1] if letters else None

        return eventually(last, 30, f"a letter to {address} about {about!r}")


def path_in(letter: EmailMessage) -> str:
    """The path of the hub's link in a letter."""
    match = LINK.search(letter.get_content())
    assert match is not None, letter.get_content()
    return match[1]
