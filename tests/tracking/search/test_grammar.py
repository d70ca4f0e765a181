from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tracking.search.errors import FilterError
from tracking.search.parser import parse, parse_order, parse_orders
from tracking.search.time_values import parse_time_ms
from tracking.search.tree import And, Comparison, Key, Node, Not, Or
from tracking.search.vocabulary import ATTRIBUTES, ORDER, TEXT, AttributeType, KeyKind

ACC = Key(KeyKind.METRIC, "acc")

MLFLOW = {
    "metrics.rmse < 1": Comparison(Key(KeyKind.METRIC, "rmse"), "<", 1),
    "metrics.rmse < 1.0": Comparison(Key(KeyKind.METRIC, "rmse"), "<", 1.0),
    "metric.acc >= -1e-3": Comparison(ACC, ">=", -0.001),
    "metrics.`cross-entropy-loss` = 1.e2": Comparison(Key(KeyKind.METRIC, "cross-entropy-loss"), "=", 100.0),
    'metrics."cross entropy" != .5': Comparison(Key(KeyKind.METRIC, "cross entropy"), "!=", 0.5),
    "params.model = 'linear'": Comparison(Key(KeyKind.PARAM, "model"), "=", "linear"),
    'parameters.model = "linear"': Comparison(Key(KeyKind.PARAM, "model"), "=", "linear"),
    "param.model LIKE '%tree%'": Comparison(Key(KeyKind.PARAM, "model"), "LIKE", "%tree%"),
    "parameter.`max depth` ilike 'A_'": Comparison(Key(KeyKind.PARAM, "max depth"), "ILIKE", "A_"),
    "tags.mlflow.source.type = 'NOTEBOOK'": Comparison(
        Key(KeyKind.TAG, "mlflow.source.type"), "=", "NOTEBOOK"
    ),
    "tag.`mlflow.parentRunId` != 'x'": Comparison(Key(KeyKind.TAG, "mlflow.parentRunId"), "!=", "x"),
    "tags.version IS NULL": Comparison(Key(KeyKind.TAG, "version"), "IS NULL", None),
    "params.alpha is not null": Comparison(Key(KeyKind.PARAM, "alpha"), "IS NOT NULL", None),
    "attributes.status = 'FINISHED'": Comparison(Key(KeyKind.ATTRIBUTE, "status"), "=", "FINISHED"),
    "attr.status != 'FAILED'": Comparison(Key(KeyKind.ATTRIBUTE, "status"), "!=", "FAILED"),
    "run.status = 'RUNNING'": Comparison(Key(KeyKind.ATTRIBUTE, "status"), "=", "RUNNING"),
    "status = 'RUNNING'": Comparison(Key(KeyKind.ATTRIBUTE, "status"), "=", "RUNNING"),
    "attribute.run_name LIKE 'a%'": Comparison(Key(KeyKind.ATTRIBUTE, "run_name"), "LIKE", "a%"),
    "attributes.`Run name` = 'x'": Comparison(Key(KeyKind.ATTRIBUTE, "run_name"), "=", "x"),
    "start_time > 1664067852747": Comparison(Key(KeyKind.ATTRIBUTE, "start_time"), ">", 1664067852747),
    "attributes.created <= 0": Comparison(Key(KeyKind.ATTRIBUTE, "start_time"), "<=", 0),
    "run_id IN ('a', 'b')": Comparison(Key(KeyKind.ATTRIBUTE, "run_id"), "IN", ("a", "b")),
    'attributes.run_id not in ("a")': Comparison(Key(KeyKind.ATTRIBUTE, "run_id"), "NOT IN", ("a",)),
    "dataset.name = 'cifar'": Comparison(Key(KeyKind.DATASET, "name"), "=", "cifar"),
    "datasets.digest IN ('a', 'b')": Comparison(Key(KeyKind.DATASET, "digest"), "IN", ("a", "b")),
    "dataset.context LIKE 'tr%'": Comparison(Key(KeyKind.DATASET, "context"), "LIKE", "tr%"),
}
OURS = {
    "params.lr > 0.01": Comparison(Key(KeyKind.PARAM, "lr"), ">", 0.01),
    "params.opt IN ('adam', 'sgd')": Comparison(Key(KeyKind.PARAM, "opt"), "IN", ("adam", "sgd")),
    "min(metrics.loss) < 0.1": Comparison(Key(KeyKind.METRIC, "loss", "min"), "<", 0.1),
    "MAX( metrics.`val acc` ) > 0": Comparison(Key(KeyKind.METRIC, "val acc", "max"), ">", 0),
    "last(metrics.loss) = inf": Comparison(Key(KeyKind.METRIC, "loss"), "=", math.inf),
    "duration > 2h": Comparison(Key(KeyKind.ATTRIBUTE, "duration"), ">", 7200),
    "starred": Comparison(Key(KeyKind.ATTRIBUTE, "starred"), "=", True),
    "archived = FALSE": Comparison(Key(KeyKind.ATTRIBUTE, "archived"), "=", False),
    "start_time >= '2025-11-01'": Comparison(Key(KeyKind.ATTRIBUTE, "start_time"), ">=", 1761955200000),
    "params.path = 'it''s'": Comparison(Key(KeyKind.PARAM, "path"), "=", "it's"),
    "metrics.val/loss > 1": Comparison(Key(KeyKind.METRIC, "val/loss"), ">", 1),
}
REFUSED = {
    "params.lr > 1e400": (12, "larger than any number"),
    "metrics.acc > 'x'": (14, "compared with a number"),
    "metrics.acc >": (13, "Expected a value; it ends here"),
    "metrics.acc LIKE 'a'": (12, "cannot be compared by LIKE"),
    "acc > 0.5": (0, "did you mean metrics.acc"),
    "metrics.acc > 0.5 x": (18, "Expected AND or OR"),
    "metrics.acc > 0.5 AND": (21, "Expected a key"),
    "metrics.acc == 0.5": (12, "Write = instead of =="),
    "metrics.acc <> 0.5": (12, "Write != instead of <>"),
    "params.opt = adam": (13, "in quotes: 'adam'"),
    "params.opt = 'adam": (13, "not closed"),
    "tags.n = 5": (9, "in quotes: '5'"),
    "params.lr > 'a'": (12, "without quotes"),
    "(metrics.acc > 1": (16, "AND, OR or )"),
    "metrics.acc > 1)": (15, "Expected AND or OR"),
    "params.opt IN 'adam'": (14, "( before the list"),
    "params.opt IN ()": (15, "Expected a value"),
    "foo.bar = 1": (0, "not a kind of key"),
    "attributes.foo = 'x'": (0, "not an attribute"),
    "dataset.foo = 'x'": (0, "not a field of data sets"),
    "min(params.lr) > 1": (0, "for metrics only"),
    "start_time > 'soon'": (13, "not a time"),
    "starred = 'yes'": (10, "true or false"),
    "metrics.acc > 5 % 2": (16, "not allowed here"),
    "state IS NULL": (6, "cannot be compared by IS NULL"),
    "AND": (0, "Expected a key"),
    "min(metrics.loss > 1": (17, "Expected )"),
    "metrics.`` = 1": (0, "The key is empty"),
    "params.opt IN ('a' 'b')": (19, "Expected , or )"),
    "params.lr IN (1)": (14, "Params are text in a list; write it in quotes: '1'"),
    "starred = maybe": (10, "starred is true or false"),
    "starred = 1": (10, "starred is true or false"),
    "number = 5x": (9, "neither a number nor a duration"),
}


class TestParse:
    @pytest.mark.parametrize("text", MLFLOW)
    def test_reads_what_mlflow_reads(self, text: str) -> None:
        assert parse(text) == MLFLOW[text]

    @pytest.mark.parametrize("text", OURS)
    def test_reads_more(self, text: str) -> None:
        assert parse(text) == OURS[text]

    @pytest.mark.parametrize("text", REFUSED)
    def test_points_at_what_is_wrong(self, text: str) -> None:
        with pytest.raises(FilterError) as error:
            parse(text)
        position, message = REFUSED[text]
        assert message in error.value.message
        assert error.value.position == position
        assert f"(at character {position + 1})" in error.value.sentence

    def test_reads_times_in_words(self) -> None:
        now = datetime(2025, 11, 30, 18, 30, tzinfo=UTC)
        words = {
            "now": now,
            " Today ": datetime(2025, 11, 30, tzinfo=UTC),
            "yesterday": datetime(2025, 11, 29, tzinfo=UTC),
        }
        for word, at in words.items():
            assert parse_time_ms(word, now) == int(at.timestamp() * 1000)
        assert parse_time_ms("tomorrow", now) is None

    def test_nothing_is_no_filter(self) -> None:
        assert parse("") is None
        assert parse(" \n\t") is None

    def test_and_binds_closer_than_or_and_not_closest(self) -> None:
        a, b, c = (Comparison(Key(KeyKind.METRIC, name), ">", 1) for name in "abc")
        assert parse("metrics.a > 1 OR NOT metrics.b > 1 AND metrics.c > 1") == Or((a, And((Not(b), c))))
        assert parse("(metrics.a > 1 or metrics.b > 1) and metrics.c > 1") == And((Or((a, b)), c))

    def test_the_caret_stands_in_the_line_in_question(self) -> None:
        with pytest.raises(FilterError) as error:
            parse("metrics.a > 1\nAND metrics.b > x\nAND starred")
        assert error.value.pointer == "AND metrics.b > x\n                ^"

    def test_depth_length_and_number_are_bounded(self) -> None:
        deep = ("(" * 1000 + "starred" + ")" * 1000, "NOT " * 1000 + "starred")
        for text in (*deep, "starred AND " * 200 + "starred", "x" * 30_000):
            with pytest.raises(FilterError):
                parse(text)


class TestOrder:
    def test_reads_key_and_direction(self) -> None:
        assert str(parse_order("metrics.acc DESC")) == "metrics.acc DESC"
        assert str(parse_order("`metrics`.`a b` asc")) == "metrics.`a b` ASC"
        assert str(parse_order("start_time")) == "start_time ASC"
        assert str(parse_order("max(metrics.acc) desc")) == "max(metrics.acc) DESC"

    @pytest.mark.parametrize(
        "text", ["", "metrics.acc down", "metrics.acc DESC, params.lr", "nonsense", "dataset.name", "'"]
    )
    def test_refuses_others(self, text: str) -> None:
        with pytest.raises(FilterError) as error:
            parse_order(text)
        assert error.value.field == "order_by"

    def test_a_key_comes_once(self) -> None:
        with pytest.raises(FilterError, match="twice"):
            parse_orders(["metrics.acc", "params.lr", "metrics.acc DESC"])

    def test_are_not_thousands_at_once(self) -> None:
        """A database refuses to join so much."""
        with pytest.raises(FilterError, match="More than 20"):
            parse_orders([f"metrics.m{number}" for number in range(21)])


texts = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12)
names = texts.filter(bool)
numbers = st.integers(-(2**63) + 1, 2**63 - 1) | st.floats(allow_nan=False)
some_texts = st.lists(texts, min_size=1, max_size=3).map(tuple)
TYPED = {kind: [name for name, type_ in ATTRIBUTES.items() if type_ is kind] for kind in AttributeType}


PIECES = st.sampled_from(["metrics.a", "(", ")", "AND", "NOT", ">", "1", "'x'", "IN", "IS", ",", "min", "`"])


def compared(
    keys: st.SearchStrategy[Key], operators: tuple[str, ...], values: st.SearchStrategy[object]
) -> st.SearchStrategy[Node]:
    return st.builds(Comparison, keys, st.sampled_from(operators), values)


def of(kind: KeyKind) -> st.SearchStrategy[Key]:
    return st.builds(Key, st.just(kind), names)


def attributes(type_: AttributeType) -> st.SearchStrategy[Key]:
    return st.builds(Key, st.just(KeyKind.ATTRIBUTE), st.sampled_from(TYPED[type_]))


comparisons = st.one_of(
    compared(
        st.builds(Key, st.just(KeyKind.METRIC), names, st.sampled_from(["last", "min", "max"])),
        ORDER,
        numbers,
    ),
    compared(of(KeyKind.PARAM), ORDER, numbers.filter(math.isfinite)),
    compared(
        of(KeyKind.PARAM) | of(KeyKind.TAG) | attributes(AttributeType.TEXT) | attributes(AttributeType.WORD),
        TEXT[:4],
        texts,
    ),
    compared(
        of(KeyKind.PARAM) | of(KeyKind.TAG) | attributes(AttributeType.TEXT) | attributes(AttributeType.WORD),
        TEXT[4:],
        some_texts,
    ),
    compared(of(KeyKind.PARAM) | of(KeyKind.TAG), ("IS NULL", "IS NOT NULL"), st.none()),
    compared(attributes(AttributeType.TIME), ORDER, st.integers(-(2**62), 2**62)),
    compared(attributes(AttributeType.FLAG), ("=", "!="), st.booleans()),
)
trees = st.recursive(
    comparisons,
    lambda inner: (
        st.builds(Not, inner)
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: And(tuple(parts)))
        | st.lists(inner, min_size=2, max_size=3).map(lambda parts: Or(tuple(parts)))
    ),
    max_leaves=8,
)


class TestAlways:
    @given(trees)
    def test_what_is_printed_reads_the_same(self, tree: Node) -> None:
        assert parse(str(tree)) == tree

    @given(st.text() | st.lists(PIECES).map(" ".join))
    @example("1" * 5000)
    @example("metrics.a > 1e99999")
    @example("start_time > 1e30")
    def test_any_text_is_read_or_refused_at_a_character_of_it(self, text: str) -> None:
        refused = None
        try:
            parse(text)
        except FilterError as error:
            refused = error
        assert refused is None or (refused.message and 0 <= refused.position <= len(text))
