"""Which orders a node follows."""

from __future__ import annotations

import platform
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from trainhub_launch.errors import WireError
from trainhub_launch.upgrades.program_order import ProgramOrder
from trainhub_node import __version__
from trainhub_node.upgrade import order_check
from trainhub_node.upgrade.ed25519 import is_signed
from trainhub_node.upgrade.order_check import OrderRefused, check_order, check_signature, check_start

KEY = Ed25519PrivateKey.generate()
ORDER = ProgramOrder(
    order=7,
    node="alpha",
    version="9.0",
    sha256="a" * 64,
    size=1000,
    machine=platform.machine(),
    python="3.11",
)
# RFC 8032, section 7.1, tests 1 to 3: public key, message, signature.
VECTORS = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46b"
        "d25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c"
        "387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc659"
        "4a7c15e9716ed28dc027beceea1ec40a",
    ),
]


def signed(order: ProgramOrder, key: Ed25519PrivateKey = KEY) -> ProgramOrder:
    public = key.public_key().public_bytes_raw().hex()
    return replace(order, key=public, signature=key.sign(order.signed_bytes()).hex())


@pytest.mark.parametrize(("key", "message", "signature"), VECTORS)
def test_signatures_of_the_standard_hold_and_changed_ones_do_not(
    key: str, message: str, signature: str
) -> None:
    parts = [bytes.fromhex(part) for part in (key, message, signature)]
    assert is_signed(parts[0], parts[1], parts[2])
    for place in range(3):
        for at in (0, len(parts[place]) - 1):
            if parts[place]:
                changed = [bytearray(part) for part in parts]
                changed[place][at] ^= 1
                assert not is_signed(bytes(changed[0]), bytes(changed[1]), bytes(changed[2]))
    assert not is_signed(b"", b"", b"")
    assert not is_signed(b"\xff" * 32, b"", b"\xff" * 64)


def test_an_order_is_believed_with_the_key_of_the_first_one_alone() -> None:
    order = signed(ORDER)
    check_signature(order, "")
    check_signature(order, order.key)
    other = signed(ORDER, Ed25519PrivateKey.generate())
    check_signature(other, "")
    with pytest.raises(OrderRefused, match="another key"):
        check_signature(other, order.key)
    for changed in (
        replace(order, sha256="b" * 64),
        replace(order, node="beta"),
        replace(order, may_go_back=True),
        replace(order, signature="zz"),
        replace(order, signature=""),
    ):
        with pytest.raises(OrderRefused, match="not the hub's"):
            check_signature(changed, order.key)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"node": "beta"}, "is for the node beta"),
        ({"version": "../../etc"}, "names no version"),
        ({"sha256": "../" + "a" * 61}, "names no version"),
        ({"version": "0.0.1"}, f"0.0.1 is older than {__version__}"),
        ({"machine": "pdp11"}, "is for pdp11"),
        ({"python": "4.0"}, "needs Python 4.0"),
        ({"size": 0}, "an archive of 0 bytes"),
        ({"size": 2**40}, "an archive of 1099511627776 bytes"),
    ],
)
def test_an_order_that_cannot_be_followed_is_refused_with_the_reason(
    tmp_path: Path, change: dict[str, object], reason: str
) -> None:
    check_order(ORDER, "alpha", tmp_path)
    with pytest.raises(OrderRefused) as refusal:
        check_order(replace(ORDER, **change), "alpha", tmp_path)  # type: ignore[arg-type]
    assert reason in str(refusal.value)


def test_an_older_version_is_taken_if_the_order_says_so(tmp_path: Path) -> None:
    check_order(replace(ORDER, version="0.0.1", may_go_back=True), "alpha", tmp_path)


def test_a_disk_without_room_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_check, "SIZE_UNPACKED", 10**12)
    with pytest.raises(OrderRefused, match="Make room"):
        check_order(ORDER, "alpha", tmp_path)


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise ImportError('no such module')", "does not start here: ImportError: no such module"),
        ("print('trainhub-node 10.0')", "does not start here: trainhub-node 10.0"),
        ("raise SystemExit(5)", "does not start here: code 5"),
    ],
)
def test_a_program_that_cannot_say_its_version_is_refused(tmp_path: Path, code: str, reason: str) -> None:
    (tmp_path / "trainhub_node").mkdir()
    main = tmp_path / "trainhub_node" / "__main__.py"
    main.write_text("print('trainhub-node 9.0')")
    check_start(ORDER, tmp_path)
    main.write_text(code)
    with pytest.raises(OrderRefused) as refusal:
        check_start(ORDER, tmp_path)
    assert reason in str(refusal.value)


@pytest.mark.parametrize("change", [{"order": "7"}, {"extra": 1}, {"size": None}])
def test_what_is_no_order_is_none(change: dict[str, object]) -> None:
    assert ProgramOrder.from_json(ORDER.to_json()) == ORDER
    with pytest.raises(WireError):
        ProgramOrder.from_json({**ORDER.to_json(), **change})
