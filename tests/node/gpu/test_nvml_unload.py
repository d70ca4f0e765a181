from __future__ import annotations

import ctypes
import logging
from types import ModuleType

import pynvml
import pytest

from tests.test_requirements import required
from trainhub_node.gpu.nvml import unload


def binding(**names: object) -> ModuleType:
    """A module that keeps a library as pynvml does; `names` differ."""
    module = ModuleType("binding")
    # libm by a handle of its own: closing it takes it from nobody else.
    stored: dict[str, object] = {
        unload.LIBRARY: ctypes.CDLL("libm.so.6"),
        unload.FUNCTIONS: {"nvmlInit_v2": print},
    }
    for name, value in (stored | names).items():
        setattr(module, name, value)
    return module


def test_the_installed_pynvml_keeps_its_library_where_we_look_for_it() -> None:
    assert hasattr(pynvml, unload.LIBRARY)
    assert isinstance(getattr(pynvml, unload.FUNCTIONS), dict)
    assert isinstance(ctypes.CDLL("libm.so.6")._handle, int)


def test_a_new_major_version_is_not_taken_unseen() -> None:
    specifier = required()["nvidia-ml-py"].specifier
    assert specifier.contains("13.615.71")
    assert not specifier.contains("14.0.0")


def test_the_library_and_its_functions_are_forgotten() -> None:
    module = binding()
    functions = getattr(module, unload.FUNCTIONS)
    assert unload.unload(module)
    assert getattr(module, unload.LIBRARY) is None
    assert functions == {}


@pytest.mark.parametrize(
    "names", [{unload.LIBRARY: None}, {unload.LIBRARY: object()}, {unload.FUNCTIONS: None}]
)
def test_another_way_to_keep_them_changes_nothing_and_is_logged_once(
    names: dict[str, object], caplog: pytest.LogCaptureFixture
) -> None:
    unload._log_unknown.cache_clear()
    module = binding(**names)
    before = dict(vars(module))
    with caplog.at_level(logging.ERROR):
        assert not unload.unload(module)
        assert not unload.unload(module)
    assert vars(module) == before
    assert [record.message.count("Restart the agent") for record in caplog.records] == [1]
