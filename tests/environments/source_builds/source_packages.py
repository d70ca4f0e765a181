"""Source distributions that a build of the test's own compiles in a moment."""

from __future__ import annotations

import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

# A build backend that needs nothing but a C compiler (PEP 517). It stands in the archive itself.
BACKEND = """
import os, subprocess, sysconfig, zipfile

def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    import {requirement}
    {extra}
    open("started", "w").close()
    include = sysconfig.get_paths()["include"]
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    subprocess.run(["cc", "-shared", "-fPIC", "-I", include, "-o", "{name}" + suffix, "{name}.c"], check=True)
    tag = "cp" + sysconfig.get_config_var("py_version_nodot")
    name = f"{name}-{version}-{{tag}}-{{tag}}-linux_x86_64.whl"
    info = "{name}-{version}.dist-info"
    with zipfile.ZipFile(os.path.join(wheel_directory, name), "w") as wheel:
        wheel.write("{name}" + suffix)
        wheel.writestr(info + "/METADATA", open("PKG-INFO").read())
        text = "Wheel-Version: 1.0\\nRoot-Is-Purelib: false\\nTag: " + tag + "-" + tag + "-linux_x86_64\\n"
        wheel.writestr(info + "/WHEEL", text)
        wheel.writestr(info + "/RECORD", "")
    return name
"""
EXTENSION = """
#include <Python.h>
static PyObject *answer(PyObject *self, PyObject *none) {{ return PyLong_FromLong({answer}); }}
static PyMethodDef methods[] = {{{{"answer", answer, METH_NOARGS, ""}}, {{0}}}};
static struct PyModuleDef module = {{PyModuleDef_HEAD_INIT, "{name}", "", -1, methods}};
PyMODINIT_FUNC PyInit_{name}(void) {{ return PyModule_Create(&module); }}
"""


def make_source(
    folder: Path,
    name: str,
    version: str = "1.0",
    *,
    answer: str = "42",
    needs: str = "",
    requirement: str = "base",
    extra: str = "",
) -> str:
    """Makes a source distribution of a module in C, and returns its SHA-256. `answer`: what it returns, as C;
    `needs`: a package that it needs when it runs; `requirement`: one that its build imports; `extra`: a line
    of Python that its build runs."""
    files = source_files(name, version, answer=answer, needs=needs, requirement=requirement, extra=extra)
    return write_source(folder, f"{name}-{version}", files)


def source_files(
    name: str,
    version: str = "1.0",
    *,
    answer: str = "42",
    needs: str = "",
    requirement: str = "base",
    extra: str = "",
) -> dict[str, str]:
    """Returns the texts of the files of such a source, by their names."""
    metadata = f"Metadata-Version: 2.2\nName: {name}\nVersion: {version}\n"
    metadata += f"Requires-Dist: {needs}\n" if needs else ""
    words = {"name": name, "version": version, "requirement": requirement, "extra": extra or "pass"}
    return {
        "PKG-INFO": metadata,
        "pyproject.toml": (
            f'[build-system]\nrequires = ["{requirement}"]\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        ),
        "backend.py": BACKEND.format(**words),
        f"{name}.c": EXTENSION.format(name=name, answer=answer),
    }


def write_source(folder: Path, stem: str, files: Mapping[str, str]) -> str:
    path = folder / f"{stem}.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"{stem}/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return hashlib.sha256(path.read_bytes()).hexdigest()
