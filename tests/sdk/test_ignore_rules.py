"""The SDK leaves out only what the hub would leave out as well: it applies the same rules."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.sources import ignore_rules as of_the_hub
from jobs.sources.source_files import SnapshotError
from trainhub_sdk import ignore_rules as of_the_sdk

PATTERNS = (
    """
*.ckpt|data/|/data|data|a/b|a/*|a/**|**/a|**/a/|a/**/b|*|*/|/*|!*.py|!a/|\\#x|\\!x|# x|x\\ |x |[ab].py
[!a].py|[^a].py|[a-c]x|[]a]|[a|a?c|?.py|__pycache__|!.git/|.git|a//b|/|//|**|/**|a/**/|**/**|x\\|[\\]]
a**b|**a|.*|!/a|!a/b.py
""".strip()
    .replace("\n", "|")
    .split("|")
)
PATHS = (
    """
a|b|a/b|a/b.py|a/b/c.py|data/x|x/data/y|x/data|a.py|b.py|c.py|.git/config|x/.git/y|a/__pycache__/b.pyc|#x|!x|x
x y|model.ckpt|a/x/y/b|ax|bx|abc|a c|]|a]|.DS_Store|.env|a/.env|[a|aXb|a/aXb|data.py
""".strip()
    .replace("\n", "|")
    .split("|")
)
# Rare forms: what the SDK sends in vain the hub leaves out.
HUB_LEAVES_OUT_MORE = ("!a/", "!/a", "a/**/")


def test_the_names_of_files_and_the_built_in_rules_are_the_same() -> None:
    assert of_the_sdk.IGNORE_FILES == of_the_hub.IGNORE_FILES
    assert of_the_sdk.ALWAYS == of_the_hub.ALWAYS


@pytest.mark.parametrize("pattern", PATTERNS)
def test_each_pattern_means_the_same(pattern: str) -> None:
    sdk, hub = left_out([pattern], PATHS)
    assert sdk == hub or (pattern in HUB_LEAVES_OUT_MORE and sdk < hub)


@given(
    st.lists(st.one_of(st.sampled_from(PATTERNS), st.text("ab*?/!.[]\\ -", max_size=6)), max_size=4),
    st.lists(
        st.one_of(st.sampled_from(PATHS), st.from_regex(r"[ab.]{1,3}(/[ab.]{1,3}){0,3}", fullmatch=True))
    ),
)
def test_no_rules_leave_out_what_the_hub_would_keep(lines: list[str], paths: list[str]) -> None:
    sdk, hub = left_out(lines, [path for path in paths if not {"", ".", ".."} & set(path.split("/"))])
    assert sdk <= hub


def test_a_folder_is_skipped_only_if_nothing_in_it_can_come_back() -> None:
    rules = of_the_sdk.IgnoreRules(["data/"])
    assert rules.skips_folder("data")
    assert not rules.skips_folder("code")
    assert not of_the_sdk.IgnoreRules(["data/*", "!data/a"]).skips_folder("data")


def left_out(lines: list[str], paths: list[str]) -> tuple[set[str], set[str]]:
    """Returns which paths the SDK leaves out, and which the hub; none if the hub refuses the rules."""
    try:
        hub = of_the_hub.IgnoreRules(tuple(lines))
    except SnapshotError:
        return set(), set()
    sdk = of_the_sdk.IgnoreRules(lines)

    def is_skipped(path: str) -> bool:
        parts = path.split("/")
        return any(sdk.skips_folder("/".join(parts[:count])) for count in range(1, len(parts)))

    return (
        {path for path in paths if is_skipped(path) or sdk.is_ignored(path)},
        {path for path in paths if hub.is_ignored(path)},
    )
