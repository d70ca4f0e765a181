"""Lines of requirements files: those that are taken, and how others are refused by their number."""

from __future__ import annotations

import pytest

from environments import requirement_list
from environments.requirement_list import read_requirements
from trainhub_launch.errors import SpecError

HASH = "sha256:" + "0" * 64


def refusal(text: str) -> str:
    with pytest.raises(SpecError) as error:
        read_requirements(text)
    assert error.value.field == "requirements"
    return error.value.message


class TestTaken:
    def test_comments_blank_lines_and_conditions(self) -> None:
        parsed = read_requirements("# ours\n\nnumpy==2.1.0  # fast\ntorch[opt]>=2 ; python_version > '3.8'\n")
        assert parsed.requirements == ("numpy==2.1.0", "torch[opt]>=2 ; python_version > '3.8'")

    def test_indexes(self) -> None:
        text = (
            "--index-url https://a/simple\n-i=x\n".replace("-i=x\n", "")
            + "--extra-index-url=http://b:81/s\nx"
        )
        parsed = read_requirements(text)
        assert (parsed.index_url, parsed.extra_index_urls) == ("https://a/simple", ("http://b:81/s",))
        assert parsed.index_lines == ("--index-url https://a/simple", "--extra-index-url http://b:81/s")

    def test_repositories(self) -> None:
        parsed = read_requirements(
            "Some_Name[a] @ git+https://me:${TOKEN}@host:8443/o/x.git@v1#subdirectory=python/x\n"
            "git+https://host/o/@b@feature/y#egg=other\nlast@git+https://host/last\n"
        )
        first, second, last = parsed.repositories.values()
        assert [*parsed.repositories] == ["some-name", "other", "last"]
        assert (first.url, first.ref, first.subdirectory) == ("https://host:8443/o/x.git", "v1", "python/x")
        assert first.credentials is not None
        assert first.credentials.secret_names == {"TOKEN"}
        assert (second.url, second.ref, last.ref) == ("https://host/o/@b", "feature/y", "HEAD")
        assert parsed.requirements == (
            "Some_Name[a] @ git+https://host:8443/o/x.git@v1#subdirectory=python/x",
            "other @ git+https://host/o/@b@feature/y",
            "last @ git+https://host/last",
        )

    def test_hashes_over_several_lines(self) -> None:
        parsed = read_requirements(f"Tiny_Lib==1.0 \\\n    --hash={HASH} \\\n    --hash={HASH[:-1]}1\nx\n")
        assert parsed.requirements == ("Tiny_Lib==1.0", "x")
        assert parsed.hashes == {"tiny-lib": frozenset({HASH, f"{HASH[:-1]}1"})}

    def test_a_lock_that_the_hub_itself_has_made(self) -> None:
        text = f"--index-url http://a/simple\ntinylib==1.0 \\\n    --hash={HASH}\n    # via -r x\n"
        assert read_requirements(text).requirements == ("tinylib==1.0",)


class TestRefused:
    @pytest.mark.parametrize(
        ("line", "words"),
        [
            ("-e .", "-e is not possible here: remove the line. A run imports what lies beside its script"),
            ("--editable=.", "--editable is not possible here"),
            ("-r other.txt", "-r is not possible here: copy the lines of that file to this place"),
            ("-rother.txt", "-r is not possible here"),
            ("-c limits.txt", "such as numpy<2"),
            ("--find-links /wheels", "name an index with --index-url"),
            ("--no-binary :all:", "name packages: --no-binary horovod"),
            ("--no-binary other", "--no-binary names other, which no line asks for; add the line other"),
            ("--pre", "name the version, such as torch==2.14.0rc1"),
            ("--trusted-host x", "https://"),
            ("--use-everything", "--use-everything is not an option of this list; remove it"),
            ("./mine", "a file or folder is not on the hub"),
            ("/srv/mine.whl", "a file or folder is not on the hub"),
            ("mine-1.0.tar.gz", "a file or folder is not on the hub"),
            ("git+ssh://git@host/x.git", "only git+https:// is possible here; write name @ git+https://"),
            ("x @ git+ssh://git@host/x.git", "and for a private one git+https://${TOKEN}@host"),
            ("git@host:owner/x.git", "only git+https:// is possible here"),
            ("x @ git+file:///srv/x", "only git+https:// is possible here"),
            ("x @ hg+https://host/x", "only git+https:// is possible here"),
            ("git+https://host/x.git", "the repository needs the name of its package; write name @"),
            ("x @ git+http://host/x", "must have an https:// address"),
            ("x @ git+https://me:hunter2@host/x", "the address of a repository must not hold a password"),
            ("x @ git+https://host/x@--upload-pack=x", "is no tag, branch or commit"),
            ("x @ git+https://host/x@a:b", "is no tag, branch or commit"),
            ("x @ git+https://host", "names its path"),
            ("x @ git+https://host/x#subdirectory=../y", "is no folder of a repository"),
            ("x @ git+https://host/x#branch=y", "'#branch=' has no meaning here"),
            ("x @ git+https://host/x ; python_version > '3'", "without a condition"),
            (f"x @ git+https://host/x --hash={HASH}", "write its whole commit"),
            ("x @ https://host/x-1.0-py3-none-any.whl", "an address of a file cannot be installed here"),
            ("x @ file:///srv/x.whl", "an address of a file cannot be installed here"),
            ("dependencies:", "this is the YAML of conda; make an environment of kind conda of it"),
            ("nothing like this", "is not a requirement; name a package and its version"),
            (f"x --hash=md5:{'0' * 32}", "is not a hash"),
            ("--index-url https://me:hunter2@host/simple", "store it as a secret of the workspace"),
            ("--index-url ftp://host/simple", "must be an http:// or https:// address"),
            ("--extra-index-url", "must be an http:// or https:// address"),
            ("--index-url https://host/simple extra", "plain characters"),
        ],
    )
    def test_with_the_number_of_the_line_and_a_remedy(self, line: str, words: str) -> None:
        message = refusal(f"numpy\n# nothing\n{line}\n")
        assert message.startswith("line 3: ")
        assert words in message
        assert "hunter2" not in message

    def test_a_second_main_index(self) -> None:
        assert "write --extra-index-url" in refusal("-i http://a/s\n-i http://b/s\nx")

    def test_an_empty_list(self) -> None:
        assert refusal("# nothing\n\n").startswith("name at least one package")

    def test_too_much(self) -> None:
        assert "at most 512 KiB" in refusal("x" * (requirement_list.MAX_BYTES + 1))
        many = "\n".join(f"x{number}" for number in range(requirement_list.MAX_REQUIREMENTS + 1))
        assert "at most 1000 packages" in refusal(many)
        indexes = "\n".join(["--extra-index-url http://a/s"] * (requirement_list.MAX_INDEXES + 1))
        assert "more than 10 indexes" in refusal(indexes)

    def test_a_nul_character(self) -> None:
        assert "NUL" in refusal("num\x00py")
