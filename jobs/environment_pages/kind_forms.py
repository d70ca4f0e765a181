"""The words of the form for each kind of environment."""

from __future__ import annotations

from dataclasses import dataclass

from environments.states import EnvironmentKind


@dataclass(frozen=True)
class KindForm:
    """`tab`: the name of the kind among the others; `introduction`: what happens with the source; `label`,
    `help` and `placeholder`: those of the field for the source; `accept`: which files can be chosen, `files`:
    what to call them."""

    tab: str
    introduction: str
    label: str
    help: str
    placeholder: str
    accept: str
    files: str = "a file"


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
            "--extra-index-url name other indexes; ${NAME} in one stands for a secret of the workspace. Or "
            "the text of a pyproject.toml, of it and its uv.lock, or of a pylock.toml."
        ),
        placeholder="numpy==2.1.0",
        accept=".txt,.in,.lock,.toml,text/plain",
        files="a file: requirements.txt, pyproject.toml (with uv.lock) or pylock.toml",
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
    EnvironmentKind.IMAGE: KindForm(
        tab="Container image",
        introduction=(
            "The hub asks the registry which image the reference means now, and keeps its digest: every run "
            "starts in exactly that image, whatever the tag means later. Nodes get it through the hub."
        ),
        label="Image",
        help=(
            "A reference as for docker pull, for linux/amd64: a name of Docker Hub, or registry/name:tag, "
            "perhaps with @sha256:…. For GPUs take an image with CUDA."
        ),
        placeholder="pytorch/pytorch:2.9.0-cuda12.8-cudnn9-runtime",
        accept="",
    ),
    EnvironmentKind.DOCKERFILE: KindForm(
        tab="Dockerfile",
        introduction=(
            "A node builds the image once, and the hub keeps it: every run starts in exactly that image, "
            "which nodes get from the hub."
        ),
        label="Dockerfile",
        help=(
            "There is no folder beside it: COPY and ADD of local files are refused; code belongs into the "
            "run's source folder. For GPUs build on an image with CUDA. ENTRYPOINT and CMD are ignored: runs "
            "start their own command."
        ),
        placeholder="FROM python:3.11-slim",
        accept=".dockerfile,text/plain",
        files="a file: Dockerfile",
    ),
}
