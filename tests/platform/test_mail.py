from __future__ import annotations

import pytest

from trainhub.env import EnvError
from trainhub.mail import MailServer, server


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("", MailServer()),
        ("smtp://mail.lan", MailServer("mail.lan", 25)),
        ("smtps://ann%40lan:p%3Aw@mail.lan", MailServer("mail.lan", 465, "ann@lan", "p:w", is_ssl=True)),
        ("smtp+tls://ann:pw@mail.lan:2525", MailServer("mail.lan", 2525, "ann", "pw", is_starttls=True)),
    ],
)
def test_an_address_names_the_server_and_how_to_speak_to_it(url: str, expected: MailServer) -> None:
    assert server(url) == expected


@pytest.mark.parametrize("url", ["mail.lan", "http://mail.lan", "smtp://", "smtp://ann:s3cret@mail.lan:port"])
def test_a_wrong_one_is_refused_without_showing_its_password(url: str) -> None:
    with pytest.raises(EnvError, match="EMAIL_URL must be smtp://") as refused:
        server(url)
    assert "s3cret" not in str(refused.value)
