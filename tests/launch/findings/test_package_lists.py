"""Files of a source that list packages, which nothing installs by itself."""

from __future__ import annotations

import pytest

from tests.launch.builders import make_spec
from trainhub_launch.findings.environment import environment_findings


@pytest.mark.parametrize(
    ("file", "remedy"),
    [
        ("requirements.txt", "make an environment from the file"),
        ("environment.yml", "make an environment from the file"),
        ("pylock.toml", "make an environment from the file"),
        ("Pipfile", "write them as requirements, make an environment from these"),
    ],
)
def test_each_has_a_remedy_that_can_be_followed(file: str, remedy: str) -> None:
    (finding,) = environment_findings(make_spec(), None, ("train.py", file))
    assert finding.level == "hint"
    assert f"the packages of {file} are not installed by themselves: {remedy}" in finding.message
