"""The addresses from which the ranks of an attempt read data themselves: made before they start, and renewed
while they run.

The credentials of the store stay in this process and in the one that makes addresses."""

from __future__ import annotations

import os
import time

from trainhub_launch.data.addresses import make_uri
from trainhub_launch.data.downloads import DataDownload
from trainhub_launch.data.probe_work import LIST, SIGN
from trainhub_launch.data.store_signing import LIFE_S, RENEWAL_S
from trainhub_launch.data.stores import SignIn
from trainhub_launch.processes.inputs import FILES_SUFFIX, PREFIX, addresses_name, reference_name
from trainhub_node.data.library_process import LibraryProcess, require_library
from trainhub_node.supervisor import rank
from trainhub_node.supervisor.gang import PreparationFailed, StopRequested
from trainhub_node.untrusted import removal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import NoReturn

    from trainhub_node.data.account_process import Record
    from trainhub_node.supervisor.gang import Gang

# Entered by the account of the run, which knows the names in it.
PASSAGE = 0o711


def prepare_references(gang: Gang) -> None:
    """Sets `gang.references`. Raises PreparationFailed, and StopRequested."""
    require_library(gang)
    # That of an earlier child of this attempt.
    removal.remove_tree(gang.folder.references)
    os.mkdir(gang.folder.references, 0o700)
    os.chmod(gang.folder.references, PASSAGE)
    items = [_Reference(gang, name, item) for name, item in sorted(gang.order["references"].items())]
    gang.references = References(gang, items)
    for reference in items:
        gang.check_stop()
        reference.prepare()


class References:
    """`values`: what the plan leaves open about them, by `launch:NAME`."""

    def __init__(self, gang: Gang, items: list[_Reference]) -> None:
        self.values: Mapping[str, str] = {
            name: value for item in items for name, value in item.values.items()
        }
        self._gang = gang
        self._items = [item for item in items if item.needs_credentials]
        self._next_at = time.monotonic() + RENEWAL_S

    def renew_if_due(self) -> None:
        """Starts a process that makes the addresses anew, as a child of this one."""
        if not self._items or time.monotonic() < self._next_at:
            return
        self._next_at = time.monotonic() + RENEWAL_S
        try:
            pid = os.fork()
        except OSError as error:
            self._gang.log(f"The addresses of data could not be renewed: {error.strerror}.")
            return
        if pid == 0:
            self._renew()

    def _renew(self) -> NoReturn:
        try:
            # It may be ended like the ranks.
            rank.reset_signals()
            for item in self._items:
                item.renew()
        except StopRequested:
            pass
        except BaseException as error:
            self._gang.log(f"The addresses of data could not be renewed: {error!r:.500}")
        finally:
            # After a fork nothing may return into the code of the parent.
            os._exit(0)

    def remove(self) -> None:
        """To be called when no rank needs them any more."""
        removal.remove_tree(self._gang.folder.references)


class _Reference:
    """One input by reference. `values`: as of References."""

    def __init__(self, gang: Gang, name: str, item: Record) -> None:
        download = DataDownload.from_json(item)
        self._gang = gang
        self._name = name
        self._item = item
        self._secret = gang.secrets.get(download.secret_key, "")
        self._path = f"{gang.folder.references}/{name}.jsonl"
        self._manifest = gang.folder.manifest(download.manifest or f"reference-{name}")
        self._is_file = download.is_file
        self.needs_credentials = download.store.sign_in != SignIn.NONE
        self.values = {
            f"launch:{reference_name(name)}": make_uri(download.store, download.path),
            f"launch:{addresses_name(name)}": self._path,
        }

    def prepare(self) -> None:
        """Lists the files unless their list is known, and makes their addresses."""
        if not self._item.get("manifest"):
            os.makedirs(os.path.dirname(self._manifest), mode=0o700, exist_ok=True)
            listed = self._work({"work": LIST, "output": self._manifest, "folder": self._gang.folder.path})
            self._is_file = listed["is_file"]
        self._sign()
        variable = f"${PREFIX}{self._name.upper()}{FILES_SUFFIX}"
        validity = (
            f"each is valid for {LIFE_S // 3600} hours, and they are renewed every {RENEWAL_S // 60} minutes"
            if self.needs_credentials
            else "they need no credentials"
        )
        self._gang.log(f"Input {self._name}: the script reads it by the addresses in {variable}; {validity}.")

    def renew(self) -> None:
        try:
            self._sign()
        except PreparationFailed as error:
            self._gang.log(f"The addresses were not renewed, which is tried again. {error.sentence}")

    def _sign(self) -> None:
        account = self._gang.terms["account"]
        owner = [account["uid"], account["gid"]] if account is not None else None
        sign = {"manifest": self._manifest, "is_file": self._is_file, "output": self._path, "owner": owner}
        self._work({"work": SIGN, **sign})

    def _work(self, work: Record) -> Record:
        """Returns what the process has done. Raises PreparationFailed, and StopRequested."""
        result: Record = {}
        common = {"store": self._item["store"], "path": self._item["path"], "secret": self._secret}
        request = {**common, "options": {}, **work}
        last_words = LibraryProcess(self._gang, "probe", request, result.update).run()
        if "done" not in result:
            sentence = result.get("error") or f"its addresses could not be made: {last_words:.500}"
            node = self._gang.terms["node"]
            raise PreparationFailed("data", f"Input {self._name} on node {node}: {sentence}")
        done: Record = result["done"]
        return done
