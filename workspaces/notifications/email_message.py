"""Sends a notification as a mail, over the server that EMAIL_URL names."""

from __future__ import annotations

import asyncio
import smtplib
from collections.abc import Mapping
from typing import Any

from django.core.mail import EmailMessage

from workspaces.notifications.errors import NotSent

# Several exchanges, each of which Django's EMAIL_TIMEOUT bounds.
WITHIN_S = 15.0
LONGEST_SUBJECT = 140


async def send(address: str, body: Mapping[str, Any]) -> None:
    """Sends the message to a mail address. Raises NotSent."""
    text = str(body.get("text", ""))
    subject = " ".join(f"TrainHub: {text}".split())
    message = EmailMessage(
        subject if len(subject) <= LONGEST_SUBJECT else subject[: LONGEST_SUBJECT - 1] + "…",
        f"{text}\n\n{body.get('url', '')}\n",
        to=[address],
    )
    try:
        async with asyncio.timeout(WITHIN_S):
            await asyncio.to_thread(send_now, message)
    except TimeoutError as error:
        raise NotSent(f"The mail server did not accept it within {WITHIN_S:.0f} s.", is_away=True) from error


def send_now(message: EmailMessage) -> None:
    """Sends a mail with one recipient; returns when the server has accepted it. Raises NotSent."""
    try:
        message.send()
    except smtplib.SMTPRecipientsRefused as error:
        raise NotSent(f"The mail server refuses the address {message.to[0]}.") from error
    except (smtplib.SMTPException, OSError) as error:
        raise NotSent(f"The mail server could not be used: {str(error)[:200]}.", is_away=True) from error
