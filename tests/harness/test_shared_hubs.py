"""Hubs of slow tests end before the quick ones, and can be had again."""

from __future__ import annotations

import pytest

from tests.hub import PROJECT

pytest_plugins = ["pytester"]
CONFTEST = """
import pytest

@pytest.fixture(scope="session")
def hub():
    print("BEGINS", flush=True)
    yield "hub"
    print("ENDS", flush=True)

@pytest.fixture(scope="session")
def hosts():
    print("HOSTS", flush=True)
    yield "hosts"
    print("GO", flush=True)

@pytest.fixture(scope="session")
def signed_in(hub):
    return hub
"""
TESTS = """
import pytest

@pytest.mark.hosts
def test_zero(hosts): print("ZERO")

@pytest.mark.slow
def test_one(signed_in): print("ONE")

@pytest.mark.slow
def test_two(hub): print("TWO")

def test_three(): print("THREE")

@pytest.mark.slow
def test_four(signed_in): print("FOUR")
"""


def test_a_shared_hub_ends_when_quick_tests_begin(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    # In a folder of their own, as the project's are.
    folder = pytester.mkpydir("suite")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "test_order.py").write_text(TESTS)
    plugins = ("-p", "no:django", "-p", "tests.harness.shared_hubs")
    result = pytester.runpytest_subprocess("-q", "-s", *plugins, "-W", "ignore")
    result.assert_outcomes(passed=5)
    words = [word.strip(".") for word in result.outlines if word.strip(".").isupper()]
    assert words == ["HOSTS", "ZERO", "GO", "BEGINS", "ONE", "TWO", "ENDS", "THREE", "BEGINS", "FOUR", "ENDS"]
