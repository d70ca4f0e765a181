"""The words of the form for each kind of environment."""

from __future__ import annotations

from dataclasses import dataclass

from environments.states import EnvironmentKind


@dataclass(frozen=True)
class KindForm:
    """`tab`: the name of the kind among the others; `introduction`: what happens with the source; `label`,
    `help` and `placeholder`: those of the field for the source; `accept`: which files can be chosen."""

    tab: str
    introduction: str
    label: str
    help: str
    placeholder: str
    accept: str


KIND_FORMS = {
    EnvironmentKind.PIP: KindForm(
        tab="Requirements",
        introduction=(
            "The hub finds versions of all packages that fit together, and locks them with their hashes: "
            "each node then installs exactly the same."
        ),
        label="Requirements",
        help=(
            "One package on each line, as in a requirements file. Lines with --index-url and "
            "--extra-index-url name other indexes."
        ),
        placeholder="numpy==2.1.0",
        accept=".txt,.in,.lock,text/plain",
    ),
    EnvironmentKind.CONDA: KindForm(
        tab="Conda",
        introduction=(
            "The hub solves the file for Linux (x86-64) and locks every package with its hash, also those "
            "below pip. Nodes install exactly these, and need no conda."
        ),
        label="Conda environment",
        help=(
            "YAML with channels and dependencies, as conda and Azure ML read it, with packages for pip below "
            "“pip:”. Name and prefix in it are ignored. For packages with CUDA, add “- __cuda=12.4” with the "
            "version that the nodes' drivers support."
        ),
        placeholder="dependencies:",
        accept=".yml,.yaml,application/yaml,text/plain",
    ),
}
