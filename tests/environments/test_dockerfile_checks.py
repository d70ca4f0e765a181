"""What a Dockerfile may contain, and how one is written from a base image and packages."""

from __future__ import annotations

import pytest

from environments.dockerfiles.checks import read_dockerfile
from environments.dockerfiles.source import (
    DockerfileSource,
    join_dockerfile,
    login_registry,
    read_dockerfile_source,
    split_dockerfile,
)
from environments.dockerfiles.written import write_dockerfile
from environments.kinds.dockerfile import DockerfileKind
from trainhub_launch.errors import SpecError
from trainhub_launch.fields import Fields

STAGES = """# A comment
ARG TAG=3.11
FROM python:3.11-slim AS build
# a comment
RUN pip install --no-cache-dir \\
# between lines
    numpy==2.1.0 && \\

    true
FROM python:${TAG}
COPY --from=build /usr/local /usr/local
COPY --from=ghcr.io/astral-sh/uv:0.5 /uv /bin/
RUN --mount=type=bind,from=build,target=/x true
RUN --mount=type=cache,target=/root/.cache --network=none true
HEALTHCHECK --interval=5s CMD true
ENTRYPOINT ["python"]
CMD ["-V"]
"""


def test_stages_documents_and_comments_are_understood() -> None:
    content = read_dockerfile(STAGES)
    assert content.bases == ("python:3.11-slim", "python:3.11")
    assert [item.line for item in content.instructions if item.name == "FROM"] == [3, 10]
    assert content.instructions[2].rest == "pip install --no-cache-dir  numpy==2.1.0 &&  true"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no FROM: begin with the image"),
        ("ARG A=1\n", "has no FROM"),
        ("RUN true\n", "line 1: FROM comes first"),
        ("FROM a\nCOPY . /src\n", "line 2: COPY has no files to copy"),
        ("FROM a\nCOPY --from=other /x /y\nCOPY --from=A_b / /\n", "line 3: 'A_b' has capitals"),
        ("FROM a\nADD https://example.org/x /\n", "fetch files in a RUN line"),
        # What engines would read from the node itself, and lines that only some of them see.
        ("ARG X=dir:/etc\nFROM $X\n", "line 2: dir: names files of the node"),
        ("FROM oci-archive:x\n", "oci-archive: names files of the node"),
        ("FROM containers-storage:[overlay@/x+/y]z\n", "containers-storage: names files"),
        ("FROM a\nCOPY --from=dir:/etc / /\n", "dir: names files"),
        ("FROM a\nRUN --mount=type=bind,from=dir:/etc,target=/x true\n", "dir: names files"),
        ("FROM a\nRUN --mount=from=$X,target=/x true\n", "takes no variables"),
        ("FROM ${http_proxy}\n", "line 1: $http_proxy has no plain default"),
        ("ARG A=a\nFROM ${A:-b}\n", "FROM understands only $NAME"),
        ("ARG A=a\nARG A=dir:x\nFROM $A\n", "ARG A has several defaults"),
        ("ARG A=$B\nFROM $A\n", "has no plain default"),
        ("FROM a\nRUN <<EOF\nFROM dir:/etc\nEOF\n", "line 2: documents (<<EOF)"),
        ("# escape=`\nFROM a\n", "line 1: # escape= is not supported"),
        ("FROM a\nRUN x \\\\\nFROM dir:/etc\n", "line 2: ends with two backslashes"),
        ("FROM a\nRUN x \\\n  # y\nFROM dir:/etc\n", "line 3: is a comment within"),
        ("FROM a\nRUN x \\\u2028\nFROM dir:/etc\n", "which cannot be seen; remove it"),
        ("# syntax=docker/dockerfile:1\nFROM a\n", "line 1: # syntax= would load a frontend"),
        ("FROM a\nINSTALL x\n", "line 2: 'INSTALL' is no instruction; use one of ARG, CMD"),
        ("FROM a\nONBUILD RUN x\n", "line 2: ONBUILD has no effect"),
        ("FROM a\nRUN --mount=type=secret,id=x true\n", "a build gets no secrets"),
        ("FROM a\nRUN --mount=type=ssh true\n", "a build gets no secrets"),
        ("FROM a\nRUN --mount=type=bind,source=/,target=/x true\n", "needs from=STAGE"),
        ("FROM a\nRUN --security=insecure true\n", "line 2: --security=insecure is not supported"),
        ("FROM a\nRUN --network=host true\n", "line 2: --network=host would let"),
        ("FROM --platform=linux/arm64 a\n", "nodes run linux/amd64"),
        ("FROM A_B\n", "line 1: 'A_B' has capitals"),
        ("FROM a as\n", "write FROM IMAGE"),
        ("FROM a\nRUN\n", "RUN needs something after it"),
        (f"FROM a\n{'#' * 70_000}", "use at most 65,536"),
        ("FROM a\n" + "RUN true\n" * 300, "use at most 200"),
    ],
)
def test_what_cannot_be_built_is_refused_by_line_with_a_remedy(text: str, words: str) -> None:
    with pytest.raises(SpecError) as refused:
        read_dockerfile(text)
    assert refused.value.field == "dockerfile"
    assert words in refused.value.message


def test_the_login_of_a_registry_is_for_one_registry_and_does_not_move_the_lines() -> None:
    kind = DockerfileKind()
    body = {"dockerfile": "FROM ghcr.io/a/b\nCOPY --from=python:3.11 /a /b\n", "registry_secret": "GHCR"}
    source = kind.read_body(Fields(body))
    assert split_dockerfile(source) == DockerfileSource(body["dockerfile"], "GHCR")
    kind.check(source)
    assert login_registry(read_dockerfile_source(source)) == "ghcr.io"
    assert login_registry(read_dockerfile("FROM team/private\n")) == "docker.io"
    # A Dockerfile that was downloaded has the name of the secret in its first line.
    assert kind.read_body(Fields({"dockerfile": source})) == source
    for text, secret, field, words in (
        ("FROM a\nRUM x\n", "GHCR", "dockerfile", "line 2: 'RUM' is no instruction"),
        ("FROM a.io/b AS x\nFROM c.io/d\n", "GHCR", "registry_secret", "images from a.io, c.io; copy"),
        ("FROM scratch\n", "GHCR", "registry_secret", "has no use"),
        ("FROM a\n", "a b", "registry_secret", "the name of a secret"),
    ):
        with pytest.raises(SpecError) as refused:
            kind.check(join_dockerfile(text, secret))
        assert (refused.value.field, words in refused.value.message) == (field, True)


def test_a_dockerfile_is_written_from_a_base_image_and_packages() -> None:
    text = write_dockerfile("python:3.11", ["numpy==2.1.0", "pandas>=2,<3"], ["git", "libgl1=1.6.0-1"])
    assert text == (
        "FROM python:3.11\n"
        "RUN apt-get update \\\n"
        "    && apt-get install -y --no-install-recommends git libgl1=1.6.0-1 \\\n"
        "    && rm -rf /var/lib/apt/lists/*\n"
        "RUN python3 -m pip install --no-cache-dir numpy==2.1.0 'pandas>=2,<3'\n"
    )
    assert read_dockerfile(text).bases == ("python:3.11",)
    body = {"base_image": "a", "debian_packages": ["git"]}
    assert DockerfileKind().read_body(Fields(body)).startswith("FROM a\nRUN apt-get update")


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({}, "dockerfile", "is required"),
        ({"dockerfile": "FROM a", "base_image": "b"}, "dockerfile", "give either"),
        ({"base_image": "https://a"}, "base_image", "leave out https://"),
        ({"base_image": "a", "pip_packages": ["-e ."]}, "pip_packages", "line 1"),
        (
            {"base_image": "a", "pip_packages": ["--index-url https://i.example.org", "x"]},
            "pip_packages",
            "RUN",
        ),
        ({"base_image": "a", "debian_packages": ["git; rm"]}, "debian_packages", "'git;' is no package"),
        ({"base_image": "a", "debian_packages": "git"}, "debian_packages", "must be a list"),
    ],
)
def test_a_body_without_a_dockerfile_is_refused_by_field(
    body: dict[str, object], field: str, words: str
) -> None:
    with pytest.raises(SpecError) as refused:
        DockerfileKind().read_body(Fields(body))
    assert refused.value.field == field
    assert words in refused.value.message
