"""Parses a form of many files while it arrives. Each file is written to a blob directly, so memory is
bounded."""

from __future__ import annotations

from python_multipart.exceptions import FormParserError, MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header

from registry.errors import RegistryError
from registry.file_paths import FilePaths
from registry.registration import File
from workspaces.stored_files import blob_gc, blobs
from workspaces.stored_files.blob_writer import BlobWriter

MAX_FIELD_BYTES = 256 * 1024
MAX_HEADER_BYTES = 16 * 1024


class FilesForm:
    """A form that is being received. Call `write` for each piece of the body, then `end`; then read `files`
    and `fields`. `drop` discards everything.

    The path of a file is its name in the form with folders, as browsers send it for a chosen folder.
    """

    def __init__(self, content_type: str) -> None:
        kind, options = parse_options_header(content_type)
        boundary = options.get(b"boundary", b"")
        if kind != b"multipart/form-data" or not boundary:
            raise RegistryError(
                "files", "must come as a form: multipart/form-data, one part called 'files' per file"
            )
        self.files: list[File] = []
        self.fields: dict[str, str] = {}
        # SHA-256 -> when it was stored, for blobs that this form has made: others stay when the form is
        # refused.
        self._new: dict[str, float] = {}
        self._paths = FilePaths()
        self._header = b""
        self._value = b""
        self._disposition = b""
        self._field: tuple[str, bytearray] | None = None
        self._file: tuple[str, BlobWriter] | None = None
        try:
            self._parser = MultipartParser(
                boundary,
                {
                    "on_part_begin": self._begin,
                    "on_header_field": self._name,
                    "on_header_value": self._append_data,
                    "on_header_end": self._header_end,
                    "on_headers_finished": self._headers,
                    "on_part_data": self._data,
                    "on_part_end": self._part_end,
                },
            )
        except FormParserError as error:
            raise RegistryError(
                "files", f"come as a form that cannot be read ({error}); choose a shorter boundary"
            ) from error

    def write(self, piece: bytes) -> None:
        """Parses a piece of the body. Raises RegistryError."""
        try:
            self._parser.write(piece)
        except MultipartParseError as error:
            raise RegistryError("files", f"the form cannot be read ({error}); send it again") from error

    def end(self) -> None:
        """Ends the form. Raises RegistryError if it is cut off or contains no files."""
        try:
            self._parser.finalize()
        except MultipartParseError as error:
            raise _broken_off() from error
        # The parser's finalize() does not notice a body that ends within a part; a part that is still open
        # shows it.
        if self._file is not None or self._field is not None:
            raise _broken_off()
        if not self.files:
            raise RegistryError("files", "is empty; choose at least one file")

    def drop(self) -> None:
        """Deletes all files received, except blobs that something else has named in the meantime."""
        if self._file is not None:
            self._file[1].__exit__(None, None, None)
        # By when each was stored: what somebody else has kept since then may be about to be named.
        blob_gc.free(self._new)

    def _begin(self) -> None:
        self._header = self._value = self._disposition = b""

    def _name(self, data: bytes, start: int, end: int) -> None:
        # The parser passes a header on in several pieces if the body's pieces cut it.
        self._header = _grown(self._header, data[start:end])

    def _append_data(self, data: bytes, start: int, end: int) -> None:
        self._value = _grown(self._value, data[start:end])

    def _header_end(self) -> None:
        if self._header.lower() == b"content-disposition":
            self._disposition = self._value
        self._header = self._value = b""

    def _headers(self) -> None:
        _, options = parse_options_header(self._disposition)
        name, filename = options.get(b"name", b""), options.get(b"filename")
        if filename is None:
            self._field = name.decode(errors="replace"), bytearray()
            return
        self._file = self._paths.add(_decoded(filename)), BlobWriter()

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file[1].write(data[start:end])
        elif self._field is not None:
            self._field[1].extend(data[start:end])
            if len(self._field[1]) > MAX_FIELD_BYTES:
                raise RegistryError(self._field[0] or "files", f"is longer than {MAX_FIELD_BYTES} bytes")

    def _part_end(self) -> None:
        if self._field is not None:
            self.fields[self._field[0]] = self._field[1].decode(errors="replace")
            self._field = None
        if self._file is not None:
            path, writer = self._file
            self._file = None
            with writer:
                # Before `finish`, which gives the blob its name: afterwards it exists in any case.
                was_there = blobs.exists(writer.sha256)
                sha256 = writer.finish()
            self.files.append(File(path, writer.size, sha256))
            if not was_there:
                self._new[sha256] = writer.published_at


def _grown(header: bytes, more: bytes) -> bytes:
    if len(header) + len(more) > MAX_HEADER_BYTES:
        raise RegistryError("files", "a header of the form is too long")
    return header + more


def _decoded(filename: bytes) -> str:
    try:
        return filename.decode()
    except UnicodeDecodeError as error:
        raise RegistryError("files", "a file's name is not UTF-8; rename it") from error


def _broken_off() -> RegistryError:
    return RegistryError("files", "the form broke off in the middle; nothing of it was kept, send it again")
