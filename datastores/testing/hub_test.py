"""The hub's part of a test: whether it can read the datastore, and how fast."""

from __future__ import annotations

import logging
from datetime import timedelta

from django.utils import timezone

from datastores.models import Datastore, DatastoreTest
from datastores.states import DatastoreKind
from datastores.store_process import StoreProcess, StoreProcessFailed
from datastores.store_secret import store_secret
from datastores.testing.states import ProbeState
from trainhub_launch.data.probe_work import TEST
from trainhub_launch.data.store_test import TEST_TIMEOUT_S
from trainhub_launch.data.stores import SignIn
from workspaces.secrets import uses
from workspaces.secrets.errors import SecretsUnavailable

log = logging.getLogger(__name__)
MISSED_AFTER = timedelta(seconds=10)
TOO_LONG = (
    f"The store did not answer within {TEST_TIMEOUT_S:.0f} s: check its address, and that the hub reaches it."
)
OWN_FAULT = "The hub itself failed at this test; an operator finds the reason in its log."


def hub_refusal(datastore: Datastore) -> str:
    """Returns why the hub has nothing to test, as a sentence, "" if it can."""
    if datastore.kind == DatastoreKind.FOLDER:
        return "It is a folder of the nodes, which the hub does not have."
    if datastore.kind == DatastoreKind.NFS:
        return "Nodes mount it, and the hub does not."
    if datastore.sign_in == SignIn.NODE:
        return "It is read with the role of each node, which the hub does not have."
    return ""


def test_from_hub(test_id: int) -> None:
    """Reads the datastore of the test, unless that is done or in progress."""
    waiting = DatastoreTest.objects.filter(pk=test_id, hub_state=ProbeState.WAITING)
    # Of two workers, only the one that changes the row reads.
    if not waiting.update(hub_state=ProbeState.TESTING, hub_begun_at=timezone.now()):
        return
    test = DatastoreTest.objects.select_related("datastore__workspace", "created_by").get(pk=test_id)
    state, reason, result = ProbeState.FAILED, "", {}
    try:
        result, state = _read(test), ProbeState.OK
    except SecretsUnavailable as error:
        reason = f"{error.message[:1].upper()}{error.message[1:]}."
    except StoreProcessFailed as error:
        reason = str(error) or OWN_FAULT
    except Exception:
        log.exception("The test of datastore %s failed", test.datastore)
        reason = OWN_FAULT
    DatastoreTest.objects.filter(pk=test_id, hub_state=ProbeState.TESTING).update(
        hub_state=state, hub_reason=reason[:2000], hub_result=result
    )


def test_missed() -> None:
    """Reads for a test whose message was lost."""
    waiting = DatastoreTest.objects.filter(hub_state=ProbeState.WAITING)
    missed = waiting.filter(created_at__lt=timezone.now() - MISSED_AFTER).order_by("created_at").first()
    if missed is not None:
        test_from_hub(missed.pk)


def _read(test: DatastoreTest) -> dict[str, object]:
    datastore = test.datastore
    secret = store_secret(datastore, uses.DATASTORE, datastore.name, test.created_by)
    request = {"work": TEST, "path": datastore.path_of(test.path), "secret": secret}
    return StoreProcess(datastore.store, request).run(TEST_TIMEOUT_S, TOO_LONG)
