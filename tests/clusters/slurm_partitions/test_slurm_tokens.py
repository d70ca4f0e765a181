"""Tokens for a slurmrestd: which are taken, who sees them, and what waits for one. Here is no slurmrestd."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from clusters.allocations import allocation_requests, partitions, redemption, slurm_tokens, token_warnings
from clusters.allocations.claim_codes import claim_code
from clusters.allocations.redemption import Claim, ClaimRefused
from clusters.allocations.states import AllocationState
from clusters.backends.contract import Request
from clusters.backends.slurm.errors import SlurmError, SlurmFault
from clusters.backends.slurm.script import BatchJob
from clusters.models import Allocation, Cluster, SlurmToken
from clusters.slurm_partitions import account_table
from jobs.recovery.outside_cancel import leave_queue
from tests.clusters.slurm_partitions.builders import make_allocation, make_partition
from tests.jobs.builders import queued
from tests.people import api_client, client_of, make_contributor, make_operator, make_owner, principal_of
from trainhub_launch.errors import SpecError
from trainhub_launch.scheduler.capacity import Demand
from workspaces.models import AuditEvent, Channel, Delivery, HubSecret, User
from workspaces.notifications.events import TOKEN_ENDING
from workspaces.secrets import hub_secrets

pytestmark = pytest.mark.django_db
JSON = "application/json"
# Nothing listens there.
URL = "http://127.0.0.1:9"
OWN = "/api/v1/clusters/hpc/slurm-token/"
OBSERVER = "/api/v1/clusters/hpc/observer-token/"
JOB = BatchJob("run-1.1", "main", ("true",))


def token(account: str = "ada", seconds: float = 3600, **claims: Any) -> str:
    """Signed by nobody that a Slurm knows."""
    now = datetime.now(UTC).timestamp()
    content = {"exp": int(now + seconds), "iat": int(now), "sun": account, **claims}
    parts = [
        {"alg": "HS256", "typ": "JWT"},
        {name: value for name, value in content.items() if value is not None},
    ]
    texts = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*texts, "c2lnbmF0dXJl"])


@pytest.fixture
def cluster() -> Cluster:
    return make_partition(rest_url=URL)


@pytest.fixture
def person(cluster: Cluster) -> User:
    """Whose account is ada."""
    person = make_contributor()
    account_table.set_unix_account(cluster, person.username, "ada", make_operator())
    return person


def put(person: User, text: str, address: str = OWN) -> Any:
    return api_client(person).put(address, {"token": text}, JSON)


def expire(cluster: Cluster, person: User | None) -> None:
    SlurmToken.objects.filter(cluster=cluster, person=person).update(expires_at=timezone.now())


# Their names cannot be those of the tests: each process of the tests makes its own.
NOT_TAKEN = [
    ("", "may not be blank"),
    ("hello", "This is no token"),
    ("a.b.c", "This is no token"),
    (token("bo"), "This is a token of bo, and your runs here are jobs of ada"),
    (token("root"), "This is a token of root"),
    (token("a b"), "cannot be a Unix account"),
    (token(seconds=-60), "This token expired at"),
    (token(exp=None), "does not say when it ends"),
    (token(sun=None), "does not say whose it is"),
    (token(exp="soon"), "This is no token"),
    (token(exp=10**30), "This is no token"),
]


class TestOwn:
    def test_is_kept_encrypted_and_never_shown(self, person: User) -> None:
        text = token()
        assert put(person, f"SLURM_JWT={text}\n").status_code == 200
        secret = HubSecret.objects.get()
        assert hub_secrets.value_of(secret.name) == text
        assert text.encode() not in bytes(secret.sealed)
        answer = api_client(person).get(OWN)
        assert answer.json()["account"] == "ada"
        assert text.split(".")[2] not in answer.content.decode()
        page = client_of(person).get("/clusters/hpc/").content.decode()
        assert "Your token for Slurm" in page
        assert text.split(".")[2] not in page
        (event,) = AuditEvent.objects.filter(verb="cluster.slurm-token")
        assert text not in str(event.detail)

    @pytest.mark.parametrize(("text", "words"), NOT_TAKEN, ids=[words for _, words in NOT_TAKEN])
    def test_that_is_not_taken(self, person: User, text: str, words: str) -> None:
        answer = put(person, text)
        assert answer.status_code == 400
        (problem,) = answer.json()["errors"]
        assert problem["field"] == "token"
        assert words in problem["message"]
        assert not SlurmToken.objects.exists()

    def test_needs_an_account(self, cluster: Cluster) -> None:
        answer = put(make_contributor(), token())
        assert "has no Unix account" in answer.json()["errors"][0]["message"]

    def test_is_not_for_a_slurm_that_is_asked_by_commands(self) -> None:
        cluster, person = make_partition(), make_contributor()
        account_table.set_unix_account(cluster, person.username, "ada", make_operator())
        answer = put(person, token())
        assert "takes no tokens" in answer.json()["errors"][0]["message"]
        assert "Your token for Slurm" not in client_of(person).get("/clusters/hpc/").content.decode()

    def test_can_be_renewed_and_removed(self, person: User) -> None:
        put(person, token())
        later = token(seconds=7200)
        assert put(person, later).status_code == 200
        assert hub_secrets.value_of(HubSecret.objects.get().name) == later
        assert api_client(person).delete(OWN).status_code == 204
        assert api_client(person).delete(OWN).status_code == 404
        assert not HubSecret.objects.exists()

    def test_is_given_and_removed_on_the_page(self, person: User) -> None:
        browser = client_of(person)
        for text, words in ((token("bo"), "This is a token of bo"), ("", "This field is required")):
            page = browser.post("/clusters/hpc/slurm-token/", {"token": text})
            assert (page.status_code, words in page.content.decode()) == (400, True)
        page = browser.post("/clusters/hpc/slurm-token/", {"token": token()}, follow=True)
        assert "Runs of yours can be submitted as ada until" in page.content.decode()
        browser.post("/clusters/hpc/slurm-token/remove/")
        assert not SlurmToken.objects.exists()

    def test_goes_with_the_account_in_the_table(self, cluster: Cluster, person: User) -> None:
        operator = make_operator()
        put(person, token())
        account_table.set_unix_account(cluster, person.username, "ada", operator)
        assert SlurmToken.objects.exists()
        account_table.set_unix_account(cluster, person.username, "bo", operator)
        assert not SlurmToken.objects.exists()
        assert not HubSecret.objects.exists()

    def test_does_not_go_to_another_address(self, person: User) -> None:
        put(person, token())
        operator = api_client(make_operator())
        operator.patch("/api/v1/clusters/hpc/", {"slurm": {"qos": "small"}}, JSON)
        assert SlurmToken.objects.exists()
        changed = {"slurm": {"rest_url": "https://elsewhere.invalid"}}
        assert operator.patch("/api/v1/clusters/hpc/", changed, JSON).status_code == 200
        assert not SlurmToken.objects.exists()
        assert not HubSecret.objects.exists()


class TestObserver:
    def test_is_the_operators_matter(self, cluster: Cluster, person: User) -> None:
        assert put(person, token("hub"), OBSERVER).status_code == 403
        operator = make_operator()
        assert api_client(operator).get(OBSERVER).status_code == 404
        page = client_of(operator).post("/clusters/hpc/observer-token/", {"token": "hello"})
        assert (page.status_code, "This is no token" in page.content.decode()) == (400, True)
        assert put(operator, token("hub"), OBSERVER).status_code == 200
        assert partitions.observer_of(partitions.partition_of(cluster)).owner == "hub"
        assert "Token of the observer" in client_of(operator).get("/clusters/hpc/edit/").content.decode()
        assert api_client(operator).delete(OBSERVER).status_code == 204

    def test_is_missed_with_a_sentence(self, cluster: Cluster) -> None:
        row = partitions.partition_of(cluster)
        with pytest.raises(
            SlurmError, match=r"has no token yet.*/clusters/hpc/edit/#observer-token"
        ) as error:
            partitions.observer_of(row)
        assert error.value.fault is SlurmFault.TOKEN
        put(make_operator(), token("hub"), OBSERVER)
        expire(cluster, None)
        with pytest.raises(SlurmError, match="had a token until"):
            partitions.observer_of(row)

    def test_that_is_missing_is_an_error_of_the_test(self, cluster: Cluster, person: User) -> None:
        answer = api_client(make_operator()).post("/api/v1/clusters/hpc/test/").json()
        assert not answer["is_usable"]
        assert "has no token yet" in answer["checks"][0]["sentence"]


class TestWaiting:
    """`person` has no token, or an expired one."""

    def test_a_run_waits_and_is_told_what_to_do(self, cluster: Cluster, person: User) -> None:
        allocation = make_allocation(cluster, "a" * 32, person, state="wanted", job_id=None)
        row = partitions.partition_of(cluster)
        allocation_requests.submit(allocation, row, JOB)
        allocation.refresh_from_db()
        assert (allocation.state, allocation.calling_until) == (AllocationState.WANTED, None)
        for words in ("no token of ada", "scontrol token lifespan=", "/clusters/hpc/#slurm-token"):
            assert words in allocation.sentence
        put(person, token())
        expire(cluster, person)
        allocation_requests.submit(allocation, row, JOB)
        assert "The token of ada for Slurm expired at" in allocation.sentence
        row.refresh_from_db()
        assert row.trouble == ""

    def test_nobody_elses_token_is_used(self, cluster: Cluster, person: User) -> None:
        """Also if that person has the same account."""
        other = make_owner()
        account_table.set_unix_account(cluster, other.username, "ada", make_operator())
        put(person, token())
        with pytest.raises(SlurmError, match="The hub has no token of ada"):
            partitions.client_of(partitions.partition_of(cluster), "ada", other)

    def test_a_job_of_an_earlier_account_is_nobodys(self, cluster: Cluster, person: User) -> None:
        put(person, token())
        account_table.set_unix_account(cluster, person.username, "bo", make_operator())
        with pytest.raises(SlurmError, match=r"has the account ada no more for .* with scancel") as error:
            partitions.client_of(partitions.partition_of(cluster), "ada", person)
        assert error.value.fault is SlurmFault.TOKEN

    def test_a_run_that_waits_gets_the_account_of_now(self, cluster: Cluster, person: User) -> None:
        allocation = make_allocation(cluster, "a" * 32, person, state="wanted", job_id=None)
        account_table.set_unix_account(cluster, person.username, "bo", make_operator())
        request = Request(
            cluster, "a" * 32, 1, "run 1", Demand(1, 0, 1), principal_of(person).workspace, person
        )
        assert allocation_requests.request_allocation(request) == allocation
        allocation.refresh_from_db()
        assert allocation.account == "bo"

    def test_a_canceled_run_says_that_slurm_could_not_be_told(self, cluster: Cluster, person: User) -> None:
        run = queued(principal_of(person))
        allocation = make_allocation(cluster, run.pk, person)
        type(run).objects.filter(pk=run.pk).update(state="Canceled")
        leave_queue(run.pk)
        allocation.refresh_from_db()
        assert allocation.cancel_requested_at is not None
        assert "Slurm's job 41 could not be canceled yet" in allocation.cancel_trouble
        assert run.events.filter(message=allocation.cancel_trouble).count() == 1
        queue = client_of(person).get("/clusters/hpc/queue/").content.decode()
        assert "could not be canceled yet" in queue

    def test_a_canceled_job_that_starts_is_refused(self, cluster: Cluster, person: User) -> None:
        allocation = make_allocation(cluster, "a" * 32, person)
        allocation_requests.cancel_all([allocation])
        with pytest.raises(ClaimRefused, match="the run was canceled"):
            redemption.redeem(Claim(claim_code(allocation.pk), 41, 0, "n1"))


class TestWarnings:
    def channel(self, person: User) -> Channel:
        return Channel.objects.create(
            workspace=principal_of(person).workspace, user=person, name="mine", kind="webhook",
            events=[TOKEN_ENDING],
        )  # fmt: skip

    def test_come_once_for_each_token(self, cluster: Cluster, person: User) -> None:
        self.channel(person)
        now = timezone.now()
        put(person, token(seconds=7200))
        token_warnings.warn_of_ends(now + timedelta(minutes=80))
        assert not Delivery.objects.exists()
        for minutes in (100, 101):
            token_warnings.warn_of_ends(now + timedelta(minutes=minutes))
        (delivery,) = Delivery.objects.all()
        assert delivery.event == TOKEN_ENDING
        assert "The token of ada for the Slurm of hpc expires at" in delivery.body["text"]
        put(person, token(seconds=7300))
        token_warnings.warn_of_ends(now + timedelta(minutes=101))
        assert Delivery.objects.count() == 2

    def test_of_others_are_not_sent(self, cluster: Cluster, person: User) -> None:
        self.channel(make_owner())
        put(person, token(seconds=7200))
        token_warnings.warn_of_ends(timezone.now() + timedelta(minutes=100))
        assert not Delivery.objects.exists()

    def test_are_on_the_page(self, cluster: Cluster, person: User) -> None:
        put(person, token(seconds=7200))
        SlurmToken.objects.update(stored_at=timezone.now() - timedelta(hours=7))
        assert "Your token expires soon" in client_of(person).get("/clusters/hpc/").content.decode()
        expire(cluster, person)
        assert "Your token has expired" in client_of(person).get("/clusters/hpc/").content.decode()


def test_a_deleted_cluster_has_no_tokens(cluster: Cluster, person: User) -> None:
    put(person, token())
    assert api_client(make_operator()).delete("/api/v1/clusters/hpc/").status_code == 204
    assert not HubSecret.objects.exists()
    with pytest.raises(SpecError, match="no Unix account"):
        slurm_tokens.store_person_token(Cluster(name="hpc", pk=0), person, token())
    assert not Allocation.objects.exists()
