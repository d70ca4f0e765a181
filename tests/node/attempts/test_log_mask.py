from __future__ import annotations

import pytest

from trainhub_node.attempts.log_mask import LogMask, changed_spans

VALUE = "hf_abcDEF123456"


class TestMask:
    def test_replaces_each_text_by_as_many_stars_as_it_has_bytes(self) -> None:
        mask = LogMask([VALUE, "gänsefüßchen-9"])
        line = f"a {VALUE} b gänsefüßchen-9 {VALUE}".encode()
        masked = mask.mask(line)
        assert masked == b"a *************** b ***************** ***************"
        assert len(masked) == len(line)

    def test_a_text_within_a_longer_one_leaves_no_rest_of_it(self) -> None:
        assert LogMask(["secret-1", "secret-1-and-more"]).mask(b"secret-1-and-more") == b"*" * 17

    def test_without_texts_nothing_changes(self) -> None:
        mask = LogMask([])
        assert (mask.mask(b"line"), mask.overlap, mask.pending_bytes(b"line")) == (b"line", 0, 0)

    def test_sentences_of_the_node_are_masked_like_logs(self) -> None:
        assert LogMask([VALUE]).mask_sentence(f"exited: {VALUE}.") == "exited: ***************."


class TestSignatures:
    """Of addresses that the node has made, which no list of texts can name."""

    ADDRESS = b"GET http://s3/birds/a.jpg?X-Amz-Date=1&X-Amz-Signature="
    BLOB = b"'https://team.blob/birds/a.jpg?sv=1&sig="

    def test_are_masked_and_the_rest_is_not(self) -> None:
        mask = LogMask([], masks_signatures=True)
        assert mask.mask(self.ADDRESS + b"5f" * 32 + b" 403") == self.ADDRESS + b"*" * 64 + b" 403"
        assert mask.mask(self.BLOB + b"a%2Bb/c%3D'") == self.BLOB + b"**********'"
        assert mask.mask(rb"a.jpg?sv=1\u0026sig=abc\u0026se=2") == rb"a.jpg?sv=1\u0026sig=***\u0026se=2"
        assert mask.mask(b"loss=0.1 sig=0.5") == b"loss=0.1 sig=0.5"

    def test_are_masked_however_little_of_them_is_written(self) -> None:
        mask = LogMask([], masks_signatures=True)
        whole = self.ADDRESS + b"5f" * 32
        for cut in range(len(self.ADDRESS), len(whole)):
            # As a log is read: what follows with what stands before it.
            assert mask.mask(whole[:cut]).endswith(b"=" + b"*" * (cut - len(self.ADDRESS)))
            start = max(0, cut - mask.overlap)
            assert set(mask.mask(whole[start:])[cut - start :]) == set(b"*")

    def test_stay_where_no_addresses_are_made(self) -> None:
        assert LogMask([]).mask(self.BLOB + b"abc") == self.BLOB + b"abc"


class TestPendingBytes:
    @pytest.mark.parametrize(
        ("tail", "pending"),
        [(b"x hf_a", 4), (b"x hf_abcDEF12345", 14), (b"x hf_", 0), (b"x hf_b", 0), (b"hf_abcDEF123456", 0)],
    )
    def test_are_the_beginning_of_a_text_at_the_very_end(self, tail: bytes, pending: int) -> None:
        assert LogMask([VALUE]).pending_bytes(tail) == pending


class TestChangedSpans:
    def test_are_the_masked_parts_in_order(self) -> None:
        before = b"a" * 5000 + b"secret-1" + b"b" * 9000 + b"secret-2"
        after = LogMask(["secret-1", "secret-2"]).mask(before)
        assert list(changed_spans(before, after)) == [(5000, 5008), (14008, 14016)]

    def test_of_equal_bytes_are_none(self) -> None:
        assert list(changed_spans(b"same" * 2000, b"same" * 2000)) == []
