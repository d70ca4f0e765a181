"""Reads the address of a git repository as pip's requirements have it:
`name @ git+https://host/owner/name@v1.0#subdirectory=python`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from environments.indexes.index_address import IndexCredentials, read_index_address

PREFIX = "git+"
DEFAULT_BRANCH = "HEAD"
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
EXAMPLE = "name @ git+https://host/owner/name@v1.0"
SSH_FORM = (
    "store the deploy key as a secret at /settings/secrets/, and write ssh://${NAME}@host/owner/name with "
    "the secret's name"
)
_OTHER_SCHEMES = re.compile(r"(hg|svn|bzr)\+|ssh://|git://|git@[\w.-]+:|git\+(?!https?://)")
# As git itself, without what has a meaning in its commands.
_REF = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._/+-]{0,198}[A-Za-z0-9_+-])?\Z")
_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*(/[A-Za-z0-9_][A-Za-z0-9._-]*){0,9}\Z")
_NAMED = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(\[[^\]]*\])?\s*@\s*(?P<url>\S+)")


@dataclass(frozen=True)
class Repository:
    """`url`: its https:// or ssh:// address without a login. `ref`: the tag, branch or whole commit, or
    "HEAD". `subdirectory`: the folder of it that is meant, "" for all of it. `credentials`: the secrets with
    which the hub signs in, or None."""

    url: str
    ref: str
    subdirectory: str = ""
    credentials: IndexCredentials | None = None

    def address(self, ref: str = "") -> str:
        """Returns the address as pip reads it, without a login. `ref`: instead of the one that is named."""
        ref = ref or self.ref
        fragment = f"#subdirectory={self.subdirectory}" if self.subdirectory else ""
        return f"{PREFIX}{self.url}{'' if ref == DEFAULT_BRANCH else f'@{ref}'}{fragment}"


def with_package_name(text: str) -> str:
    """Returns a line `git+https://…#egg=name` in the form `name @ git+https://…`, any other line as it is.
    Raises ValueError with a sentence for a repository without a name."""
    match = _NAMED.match(text)
    address = match["url"] if match else text
    if _OTHER_SCHEMES.match(address) or _OTHER_SCHEMES.match(text):
        raise ValueError(
            f"of repositories only git+https:// is possible here; write {EXAMPLE}, and for a private one "
            "git+https://${TOKEN}@host/owner/name@v1.0 with a secret of the workspace (/settings/secrets/)"
        )
    if match or not text.startswith(PREFIX):
        return text
    address, separator, fragment = text.partition("#")
    fields = dict(parse_qsl(fragment))
    name = fields.pop("egg", "")
    if not separator or not name:
        raise ValueError(f"the repository needs the name of its package; write {EXAMPLE}")
    rest = "&".join(f"{key}={value}" for key, value in fields.items())
    return f"{name} @ {address}{f'#{rest}' if rest else ''}"


def read_repository(address: str) -> Repository:
    """Returns the repository at an address that begins with `git+`. Raises ValueError with a sentence."""
    text, _, fragment = address.removeprefix(PREFIX).partition("#")
    subdirectory = _read_fragment(fragment)
    scheme, separator, rest = text.partition("://")
    place, slash, path = rest.partition("/")
    path, at, ref = path.rpartition("@") if "@" in path else (path, "", "")
    url, credentials = read_repository_url(f"{scheme}{separator}{place}{slash}{path}", EXAMPLE)
    if at:
        check_ref(ref)
    return Repository(url, ref or DEFAULT_BRANCH, subdirectory, credentials)


def read_repository_url(text: str, example: str) -> tuple[str, IndexCredentials | None]:
    """Returns the address of a repository without a login, and the login that stands in it. `example`: how it
    is written. Raises ValueError with a sentence."""
    url, credentials = read_index_address(text, "a repository")
    parts = urlsplit(url)
    if parts.scheme == "http" and parts.hostname not in LOOPBACK_HOSTS:
        raise ValueError("a repository must have an https:// address; http:// is for this machine alone")
    if not parts.path.strip("/") or parts.query:
        raise ValueError(f"the address of a repository names its path and no '?'; write {example}")
    return url, credentials


def read_ssh_url(text: str) -> tuple[str, IndexCredentials]:
    """Returns the ssh:// address of a repository without a login, and the login that stands in it: a user,
    and as password the secret that has the deploy key. Raises ValueError with a sentence."""
    user_info, separator, _ = urlsplit(text).netloc.rpartition("@")
    if not separator or "$" not in user_info:
        raise ValueError(f"a repository is fetched over SSH with a deploy key alone: {SSH_FORM}")
    url, credentials = read_index_address(text, "a repository", schemes=("ssh",), remedy=SSH_FORM)
    parts = urlsplit(url)
    if credentials is None or not parts.path.strip("/") or parts.query:
        raise ValueError(f"the address of a repository names its path and no '?'; {SSH_FORM}")
    if not credentials.password:
        # The servers of all large hosts know this user alone.
        return url, IndexCredentials("git", credentials.username)
    return url, credentials


def check_ref(ref: str) -> None:
    """Raises ValueError with a sentence for what cannot name a tag, a branch or a commit."""
    if not _REF.match(ref) or ".." in ref or "//" in ref:
        raise ValueError(f"{ref!r:.60} is no tag, branch or commit; write one as in v1.0 or main")


def check_subdirectory(path: str) -> None:
    """Raises ValueError with a sentence for what cannot be a folder of a repository."""
    if not _FOLDER.match(path):
        raise ValueError(f"{path!r:.60} is no folder of a repository; write it as in python/package")


def _read_fragment(fragment: str) -> str:
    fields = dict(parse_qsl(fragment, keep_blank_values=True))
    subdirectory = fields.pop("subdirectory", "").strip("/")
    fields.pop("egg", None)
    if fields:
        raise ValueError(
            f"'#{next(iter(fields)):.40}=' has no meaning here; there are subdirectory= and egg="
        )
    if subdirectory:
        check_subdirectory(subdirectory)
    return subdirectory
