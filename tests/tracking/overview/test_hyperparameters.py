"""What the arguments of a script say, in the forms that scripts take."""

from __future__ import annotations

import pytest

from tracking.overview.hyperparameters import ON, read_hyperparameters


@pytest.mark.parametrize(
    ("arguments", "pairs", "others"),
    [
        ([], (), ()),
        (["--lr=0.1", "--epochs", "3"], (("lr", "0.1"), ("epochs", "3")), ()),
        (["-b", "64", "--fp16"], (("b", "64"), ("fp16", ON)), ()),
        (["--fp16", "--lr", "-0.5"], (("fp16", ON), ("lr", "-0.5")), ()),
        (["model.depth=18", "+trainer.gpus=2"], (("model.depth", "18"), ("trainer.gpus", "2")), ()),
        (["train", "--note=a=b", "/data/x=1"], (("note", "a=b"),), ("train", "/data/x=1")),
        (["--empty=", "--text", ""], (("empty", ""), ("text", "")), ()),
        (["--lines=a\nb"], (("lines", "a\nb"),), ()),
    ],
)
def test_each_form_is_read(arguments: list[str], pairs: tuple[object, ...], others: tuple[str, ...]) -> None:
    found = read_hyperparameters(arguments)
    assert found.pairs == pairs
    assert found.others == others


def test_what_the_run_logged_is_not_repeated() -> None:
    found = read_hyperparameters(["--learning-rate=0.1", "--seed=1"]).without(
        {"learning_rate": "0.1", "seed": "2"}
    )
    assert found.pairs == (("seed", "1"),), "another value is told"
