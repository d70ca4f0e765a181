"""The conversation with the hub about the blocks of a swarm: what was read, what is to be read, and who has
what."""

from __future__ import annotations

import base64
import json
import ssl
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib import request

from trainhub_node.data.peers.client import PeerNode

TIMEOUT_S = 10.0
MAX_ANSWER_BYTES = 64 * 1024 * 1024
HASH_BYTES = 32
INDEX_BYTES = 4
RECORD_BYTES = INDEX_BYTES + HASH_BYTES
# Of one request.
MAX_HASHES, MAX_NEEDS = 5_000, 5_000


class ExchangeFailed(Exception):
    """The hub does not answer, or what it answers is wrong. `is_refusal`: it will not answer otherwise
    later."""

    def __init__(self, sentence: str, *, is_refusal: bool = False) -> None:
        super().__init__(sentence)
        self.is_refusal = is_refusal


@dataclass(frozen=True)
class SwarmNews:
    """`read`: blocks that this node is to read from the store; `hashes`: node, number and hash of blocks that
    nodes have read; `peers`: the other nodes."""

    read: Sequence[int]
    hashes: Sequence[tuple[int, int, bytes]]
    peers: Sequence[PeerNode]


class SwarmTerms(NamedTuple):
    """What a download needs to take part, as the child of the attempt has it. `swarm`: the name of the files
    (see DataDownload.swarm); `url` and `ticket`: of the hub; `ca`: the file with its authority, "" = those of
    this machine; `proxies`: by the scheme of addresses."""

    swarm: str
    url: str
    ticket: str
    ca: str
    proxies: Mapping[str, str]


class HubExchange:
    """One thread uses it."""

    def __init__(self, terms: SwarmTerms, blocks: int) -> None:
        self._terms = terms
        self._blocks = blocks
        self._after = 0
        self._is_first = True
        context = ssl.create_default_context(cafile=terms.ca or None)
        self._opener = request.build_opener(
            request.ProxyHandler(dict(terms.proxies)), request.HTTPSHandler(context=context)
        )

    def exchange(
        self,
        hashes: Sequence[tuple[int, bytes]] = (),
        needs: Collection[int] = (),
        *,
        wants: int = 0,
        is_stalled: bool = False,
        is_complete: bool = False,
    ) -> SwarmNews:
        """Tells the hub what was read, and which blocks no node has given; asks for `wants` blocks to read.
        Raises ExchangeFailed."""
        body = {
            "blocks": self._blocks,
            "after": self._after,
            "hashes": base64.b64encode(b"".join(_record(*pair) for pair in hashes)).decode(),
            "needs": sorted(needs)[:MAX_NEEDS],
            "wants": wants,
            "first": self._is_first,
            "stalled": is_stalled,
            "complete": is_complete,
        }
        answer = self._post(json.dumps(body).encode())
        try:
            news = _news(answer, self._blocks)
            self._after = int(answer["after"])
        except (KeyError, TypeError, ValueError) as error:
            raise ExchangeFailed(f"the hub's answer is wrong: {error!r:.100}") from error
        self._is_first = False
        return news

    def _post(self, body: bytes) -> Any:
        headers = {
            "Authorization": f"Bearer {self._terms.ticket}",
            "Content-Type": "application/json",
        }
        message = request.Request(self._terms.url, body, headers)  # noqa: S310 - the hub's own address
        try:
            with self._opener.open(message, timeout=TIMEOUT_S) as answer:
                return json.loads(answer.read(MAX_ANSWER_BYTES))
        except (OSError, ValueError) as error:
            code = getattr(error, "code", 0)
            is_refusal = 400 <= code < 500 and code not in (408, 429)
            sentence = f"the hub answers {code}" if code else f"the hub does not answer: {error}"
            raise ExchangeFailed(sentence, is_refusal=is_refusal) from error


def _record(number: int, digest: bytes) -> bytes:
    return number.to_bytes(INDEX_BYTES, "big") + digest


def _news(answer: Mapping[str, Any], blocks: int) -> SwarmNews:
    hashes = []
    for node, text in answer["hashes"]:
        data = base64.b64decode(text)
        for start in range(0, len(data), RECORD_BYTES):
            number = int.from_bytes(data[start : start + INDEX_BYTES], "big")
            hashes.append((int(node), number, data[start + INDEX_BYTES : start + RECORD_BYTES]))
    read = [int(number) for number in answer["read"]]
    if any(number >= blocks for number in (*read, *(number for _, number, _ in hashes))):
        raise ValueError("a number of a block")
    return SwarmNews(read, hashes, [PeerNode.from_json(peer) for peer in answer["peers"]])
