"""Small ways to drive the wizard as a browser would."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from jobs.models import Draft
from jobs.wizard import drafts, steps
from jobs.wizard.forms import Raw
from jobs.wizard.parts import Parts
from tests.jobs.builders import snapshot, zipped
from workspaces.access import Principal

FILES = {"train.py": "print('hello')\n", "README.md": "read me\n"}


def typed(step: str, **fields: str | list[str]) -> Raw:
    """A step's form at its defaults, with these fields typed over."""
    raw = steps.raw_of(Parts())[step]
    return raw | {name: value if isinstance(value, list) else [value] for name, value in fields.items()}


def with_code(who: Principal, **fields: str) -> Draft:
    """A draft whose source is a small snapshot with train.py, ready to submit."""
    draft = drafts.start(who)
    drafts.put(
        draft,
        "source",
        **({"source": f"snapshot:{snapshot(who, FILES).sha256}", "script": "train.py"} | fields),
    )
    return draft


def address(draft: Draft, step: str, *more: str) -> str:
    return f"/runs/new/{draft.pk}/{step}/{''.join(f'{part}/' for part in more)}"


def post(client: Client, draft: Draft, step: str, go: str = "next", **fields: Any) -> Any:
    return client.post(address(draft, step), typed(step, **fields) | {"go": [go]})


def preview(client: Client, draft: Draft, step: str, **fields: Any) -> str:
    answer = client.post(address(draft, step, "preview"), typed(step, **fields))
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def upload(client: Client, url: str, files: Mapping[str, str | bytes], **headers: str) -> Any:
    content = zipped(files).getvalue()
    return client.post(
        url, {"file": SimpleUploadedFile("code.zip", content, "application/zip")}, headers=headers
    )


def under(page: str, field: str) -> str:
    """What stands under a form field, as text."""
    found = re.search(rf'<div id="finding-{field}"[^>]*>(.*?)</div>', page, re.DOTALL)
    assert found is not None, f"no place for findings of {field}"
    return " ".join(re.sub(r"<[^>]+>", " ", found[1]).split())
