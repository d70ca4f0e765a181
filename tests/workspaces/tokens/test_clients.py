"""Which program used a token last, and what its person is told about it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from tests.people import client_of, make_contributor, make_owner, token_of
from tracking.mlflow import client_versions
from workspaces import tokens
from workspaces.authentication.clients import client_name
from workspaces.models import ApiToken

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("valkey")]
OLD = "mlflow-python-client/2.22.1"


class TestName:
    @pytest.mark.parametrize(
        ("header", "name"),
        [
            ("mlflow-python-client/3.17.2", "mlflow-python-client/3.17.2"),
            ("curl/7.88.1", "curl/7.88.1"),
            ("Mozilla/5.0 (X11; Linux x86_64) Firefox/140.0", "Mozilla/5.0"),
            ("", ""),
            ("<script>/1", ""),
            ("a/b", ""),
            ("x" * 500 + "/1", ""),
            ("curl/7\x00", "curl/7"),
        ],
    )
    def test_is_the_first_product_of_the_header(self, header: str, name: str) -> None:
        assert client_name(header) == name


class TestLastClient:
    def test_is_noted_with_the_last_use(self) -> None:
        token = token_of(make_contributor())
        Client(headers={"authorization": f"Bearer {token}", "user-agent": "curl/7.88.1"}).get("/api/v1/me/")
        assert ApiToken.objects.get().last_client == "curl/7.88.1"

    def test_costs_no_further_query(self, django_assert_num_queries: DjangoAssertNumQueries) -> None:
        text = token_of(make_contributor())
        with django_assert_num_queries(3):  # token, membership, note of the use
            tokens.authenticate(text, "", OLD)
        with django_assert_num_queries(2):
            tokens.authenticate(text, "", "curl/7.88.1")
        assert ApiToken.objects.get().last_client == OLD
        ApiToken.objects.update(last_used_at=timezone.now() - timedelta(minutes=2))
        tokens.authenticate(text, "", "curl/7.88.1")
        assert ApiToken.objects.get().last_client == "curl/7.88.1"


class TestNotice:
    @pytest.mark.parametrize("version", ["3.0.0", "3.17.2", "4.1", "dev"])
    def test_says_nothing_of_a_supported_client(self, version: str) -> None:
        assert client_versions.mlflow_notice(client_versions.CLIENT, version) == ""
        assert client_versions.mlflow_notice("curl", "2.0") == ""

    def test_is_shown_to_its_person_and_to_owners(self) -> None:
        carl = make_contributor()
        tokens.authenticate(token_of(carl), "", OLD)
        for page in (
            client_of(carl).get("/settings/"),
            client_of(make_owner()).get("/settings/tokens/all/"),
        ):
            text = page.content.decode()
            assert "by mlflow-python-client/2.22.1" in text
            assert "MLflow 2.22.1 is not supported" in text
            assert "pip install &#x27;mlflow&gt;=3&#x27;" in text
