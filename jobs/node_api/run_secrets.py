"""Gives a node the values of the secrets that its order names, and nothing else.

They are no part of the order, which nodes keep in a file."""

from __future__ import annotations

from collections.abc import Mapping

from clusters.models import Node
from jobs.attempts.attempt_end import end_attempt
from jobs.checkpoints.stores import source_folder, write_folder
from jobs.data_orders.models import is_data_order_id
from jobs.models import AttemptNode, Run
from jobs.node_api.claims import NONCE, Refused
from jobs.node_api.probes import probe_secrets
from jobs.peers.tickets import ticket_values
from jobs.states import Reason, RunState
from jobs.stored_outputs.folders import output_order
from trainhub_launch.data.downloads import DataDownload
from trainhub_launch.data.stores import SECRET_PREFIX
from trainhub_launch.spec_reader import read_spec
from workspaces.models import User
from workspaces.secrets import masking, store, uses
from workspaces.secrets.errors import SecretsUnavailable

WAITING = (RunState.PROVISIONING, RunState.PREPARING)


def take(node: Node, run_id: str, number: int, nonce: str) -> dict[str, str]:
    """Returns name -> value for the part that this node has claimed with `nonce`, until the part is settled:
    the node also masks the logs with them. Raises Refused.

    An attempt that has not started and needs a secret that is not there ends. To one that runs, whose agent
    was restarted, a secret that was deleted meanwhile is not given."""
    if is_data_order_id(run_id):
        return probe_secrets.take(node, run_id, nonce)
    part = _claimed_part(node, run_id, number, nonce)
    run = part.attempt.run
    names, of_data = secret_names(run.spec), _data_secrets(part)
    has_started = run.state not in WAITING
    if has_started:
        names &= store.resolve(run.workspace, run.created_by, names).keys()
        of_data &= store.resolve(run.workspace, None, of_data).keys()
    try:
        values = _take(run, run.created_by, names, node)
        data_values = _take(run, None, of_data, node)
        values |= {f"{SECRET_PREFIX}{name}": value for name, value in data_values.items()}
        return values | ticket_values(part)
    except SecretsUnavailable as error:
        sentence = f"{error.message[:1].upper()}{error.message[1:]}."
        if not has_started:
            end_attempt(run_id, number, Reason.LAUNCH_FAILED, {"node": node.name, "detail": sentence})
        raise Refused(sentence) from error


def _take(run: Run, user: User | None, names: set[str], node: Node) -> dict[str, str]:
    """`user`: whose own secrets come first; None for the workspace's alone."""
    if not names:
        return {}
    return uses.take(run.workspace, user, names, uses.RUN, run.pk, node.name, actor=run.created_by)


def _data_secrets(part: AttemptNode) -> set[str]:
    """Returns the names of the secrets with which the part's data is read, and its outputs and checkpoints
    are written."""
    attempt = part.attempt
    items = (*attempt.downloads.values(), *attempt.references.values())
    names = {download.secret for download in map(DataDownload.from_json, items) if download.secret_key}
    folders = [output_order(part), write_folder(attempt)]
    if attempt.restores is not None:
        folders.append(source_folder(attempt.restores))
    return names | {folder.secret for folder in folders if folder and folder.secret_key}


def masked_texts(values: Mapping[str, str]) -> list[str]:
    """Returns the texts for which the node masks what it reports."""
    texts = (text for value in values.values() for text in masking.masked_texts(value))
    return list(dict.fromkeys(texts))


def secret_names(spec: Mapping[str, object]) -> set[str]:
    """Returns the names of the secrets that a stored spec uses."""
    variables = read_spec(spec).environment_variables.values()
    return {variable.secret for variable in variables if variable.secret is not None}


def _claimed_part(node: Node, run_id: str, number: int, nonce: str) -> AttemptNode:
    part = (
        AttemptNode.objects.select_related("attempt__run__workspace", "attempt__run__created_by", "node")
        .filter(attempt__run_id=run_id, attempt__number=number, node=node)
        .first()
    )
    if part is None:
        raise Refused("This attempt is not placed on this node.")
    if not NONCE.match(nonce) or part.claimed_at is None or part.nonce != nonce:
        raise Refused("This part has been claimed with another nonce.")
    if part.settled_at is not None:
        raise Refused("This attempt is over.")
    return part
