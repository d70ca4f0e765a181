from __future__ import annotations

import pytest

from environments.contents.cuda_builds import cpu_build, cuda_build, is_older, newest_cuda, required_driver


@pytest.mark.parametrize(
    ("versions", "build"),
    [
        ({"torch": "2.13.0", "nvidia-cuda-runtime": "13.0.96"}, ("torch 2.13.0", "13.0", 13)),
        ({"torch": "2.6.0", "nvidia-cuda-runtime-cu12": "12.4.127"}, ("torch 2.6.0", "12.4", 12)),
        ({"torch": "2.6.0+cu118"}, ("torch 2.6.0+cu118", "11.8", 11)),
        ({"torch": "2.6.0+cpu", "nvidia-cuda-runtime-cu12": "12.4.1"}, ("the environment", "12.4", 12)),
        ({"torch": "2.6.0+cpu"}, None),
        ({"numpy": "2.1.0", "nvidia-ml-py": "13.580.65"}, None),
    ],
)
def test_the_cuda_of_a_lock(versions: dict[str, str], build: tuple[str, str, int] | None) -> None:
    found = cuda_build(versions)
    assert (found and (found.package, found.version, found.major)) == build


def test_builds_for_cpus_alone() -> None:
    assert cpu_build({"torch": "2.6.0+cpu"}, "torch") == "torch 2.6.0+cpu"
    assert cpu_build({"torch": "2.6.0"}, "torch") == ""
    assert cpu_build({"tensorflow-cpu": "2.21.0"}, "tensorflow") == "tensorflow-cpu 2.21.0"
    # Both lie in one folder, and which one remains is not certain.
    assert cpu_build({"tensorflow-cpu": "2.21.0", "tensorflow": "2.21.0"}, "tensorflow") == ""


@pytest.mark.parametrize(
    ("driver", "newest"), [("580.65.06", 13), ("535.104.05", 12), ("470.57", 11), ("440.1", None), ("", 13)]
)
def test_drivers(driver: str, newest: int | None) -> None:
    # An unknown driver is never certainly too old.
    assert newest_cuda(driver) == newest
    assert is_older(driver, required_driver(13)) is (newest != 13)
