"""Line breaks that strangers send begin no line of a log and no header of an answer."""

from __future__ import annotations

import logging

import pytest

from tests.people import client_of, make_contributor


@pytest.mark.django_db
@pytest.mark.parametrize(
    "path", ["/runs/%0aFAKE/", "/%0d%0a2026-01-01%20INFO%20FAKE", "/models/%1b%5b31mFAKE/", "/%E2%80%A8A"]
)
def test_a_path_begins_no_line_of_the_log(path: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        client_of(make_contributor()).get(path)
    assert [line for record in caplog.records for line in record.getMessage().splitlines()[1:]] == []
    assert not any("\x1b" in record.getMessage() for record in caplog.records)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "target", ["/%0d%0aSet-Cookie:%20a=b", "/\r\nSet-Cookie: a=b", "//evil.example/", "/\\evil.example"]
)
def test_a_redirect_carries_no_header_of_a_strangers(target: str) -> None:
    client = client_of(make_contributor())
    client.logout()
    answer = client.get("/runs/", {"next": target})
    again = client.post(
        f"/sign-in/?next={target}", {"username": "nobody", "password": "wrong", "next": target}
    )
    for found in (answer, again):
        assert "a" not in found.cookies
        assert "\n" not in found.headers.get("Location", "")
