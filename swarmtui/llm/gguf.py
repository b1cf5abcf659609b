"""A small reader of GGUF headers: what a file says of itself, and whether all of it is there.

Files come from anywhere: no size that stands in one is believed before it's been compared with what can be, nothing is
read beyond the limits below, and no tensor data is touched.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

MAX_HEADER = 128 * 1024 * 1024
"""Bytes read of any file (vocabularies take a few MiB)."""
MAX_KEYS = 4_096
MAX_ITEMS = 4_000_000
MAX_TENSORS = 65_536
MAX_KEPT = 256 * 1024
"""Longer texts are skipped, not kept."""
MAX_LIST = 1_024
"""Longer lists are skipped: a vocabulary is of no interest, what differs from layer to layer is."""
CHUNK = 256 * 1024
"""Bytes that are read at once."""

_SIMPLE = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
_LENGTH = struct.Struct("<Q")

TENSOR_TYPES = {
    0: (1, 4),
    1: (1, 2),
    2: (32, 18),
    3: (32, 20),
    6: (32, 22),
    7: (32, 24),
    8: (32, 34),
    9: (32, 36),
    10: (256, 84),
    11: (256, 110),
    12: (256, 144),
    13: (256, 176),
    14: (256, 210),
    15: (256, 292),
    16: (256, 66),
    17: (256, 74),
    18: (256, 98),
    19: (256, 50),
    20: (32, 18),
    21: (256, 110),
    22: (256, 82),
    23: (256, 136),
    24: (1, 1),
    25: (1, 2),
    26: (1, 4),
    27: (1, 8),
    28: (1, 8),
    29: (256, 56),
    30: (1, 2),
    34: (256, 54),
    35: (256, 66),
    39: (32, 17),
}
"""ggml type: (weights in a block, bytes of a block)."""

FILE_TYPES = {
    0: "F32",
    1: "F16",
    2: "Q4_0",
    3: "Q4_1",
    7: "Q8_0",
    8: "Q5_0",
    9: "Q5_1",
    10: "Q2_K",
    11: "Q3_K_S",
    12: "Q3_K_M",
    13: "Q3_K_L",
    14: "Q4_K_S",
    15: "Q4_K_M",
    16: "Q5_K_S",
    17: "Q5_K_M",
    18: "Q6_K",
    19: "IQ2_XXS",
    20: "IQ2_XS",
    21: "Q2_K_S",
    22: "IQ3_XS",
    23: "IQ3_XXS",
    24: "IQ1_S",
    25: "IQ4_NL",
    26: "IQ3_S",
    27: "IQ3_M",
    28: "IQ2_S",
    29: "IQ2_M",
    30: "IQ4_XS",
    31: "IQ1_M",
    32: "BF16",
    36: "TQ1_0",
    37: "TQ2_0",
    38: "MXFP4",
}
"""general.file_type: its usual name."""


class NotGguf(Exception):
    """The file isn't a GGUF that can be read; `str()` says why in a few words."""


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """What a GGUF says of itself."""

    metadata: dict[str, Any]
    """Plain values, short texts, and short lists of numbers."""
    lengths: dict[str, int] = {}
    """How many items the lists have, also those that were skipped."""
    needs: int
    """Bytes that the file must have for its tensors; 0 if it can't be told."""


class _Reader:
    """Reads forward through a file, a chunk at a time."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self._chunk = b""
        self._offset = 0
        """Where in the chunk the next byte is."""
        self.at = 0

    def take(self, count: int) -> bytes:
        self._check(count)
        while len(self._chunk) - self._offset < count:
            self._refill(count)
        data = self._chunk[self._offset : self._offset + count]
        self._offset += count
        self.at += count
        return data

    def skip(self, count: int) -> None:
        self._check(count)
        left = len(self._chunk) - self._offset
        if count <= left:
            self._offset += count
        else:
            self._file.seek(count - left, 1)
            self._chunk, self._offset = b"", 0
        self.at += count

    def _refill(self, count: int) -> None:
        rest = self._chunk[self._offset :]
        more = self._file.read(max(CHUNK, count - len(rest)))
        if not more:
            raise NotGguf("truncated")
        self._chunk, self._offset = rest + more, 0

    def _check(self, count: int) -> None:
        if self.at + count > self._size:
            raise NotGguf("truncated")
        if self.at + count > MAX_HEADER:
            raise NotGguf("its header is too large")

    def number(self, code: str) -> Any:
        layout = struct.Struct("<" + code)
        return layout.unpack(self.take(layout.size))[0]

    def text(self) -> str:
        length = self.number("Q")
        if length > MAX_KEPT:
            self.skip(length)
            return ""
        return str(self.take(length).decode("utf-8", "replace"))

    def value(self, kind: int) -> Any:
        """The next value; None for a list that's too long to keep."""
        return self.sized(kind)[0]

    def sized(self, kind: int) -> tuple[Any, int]:
        """The next value, and how many items it has if it's a list (else -1)."""
        if kind in _SIMPLE:
            return self.number(_SIMPLE[kind]), -1
        if kind == _STRING:
            return self.text(), -1
        if kind == _ARRAY:
            return self._array()
        raise NotGguf("damaged")

    def _array(self) -> tuple[list[Any] | None, int]:
        kind, count = self.number("I"), self.number("Q")
        if kind in _SIMPLE:
            if count <= MAX_LIST:
                layout = struct.Struct(f"<{count}{_SIMPLE[kind]}")
                return list(layout.unpack(self.take(layout.size))), count
            self.skip(count * struct.calcsize("<" + _SIMPLE[kind]))
        elif kind == _STRING and count <= MAX_ITEMS:
            self._skip_texts(count)
        else:
            raise NotGguf("damaged")
        return None, count

    def _skip_texts(self, count: int) -> None:
        """Go past a list of texts: a vocabulary has 50,000 to 250,000, so this is where the time goes."""
        unpack = _LENGTH.unpack_from
        while count:
            chunk, start = self._chunk, self._offset
            here, last = start, len(chunk) - _LENGTH.size
            while count and here <= last:
                end = here + _LENGTH.size + unpack(chunk, here)[0]
                if end > len(chunk):
                    break
                here, count = end, count - 1
            self._check(here - start)
            self.at += here - start
            self._offset = here
            if count:
                self.skip(self.number("Q"))
                count -= 1


def read_header(path: Path) -> Header:
    """Read the metadata and the list of tensors.

    Raises:
        NotGguf: no GGUF, damaged, or truncated within its header.
        OSError: the file can't be read.
    """
    with path.open("rb") as file:
        size = path.stat().st_size
        reader = _Reader(file, size)
        if size < 24 or reader.take(4) != b"GGUF":
            raise NotGguf("not a GGUF file")
        version = reader.number("I")
        if version not in (2, 3):
            raise NotGguf(f"GGUF version {version} isn't supported")
        tensors, keys = reader.number("Q"), reader.number("Q")
        if tensors > MAX_TENSORS or keys > MAX_KEYS:
            raise NotGguf("damaged")
        metadata: dict[str, Any] = {}
        lengths: dict[str, int] = {}
        for _ in range(keys):
            key = reader.text()
            value, length = reader.sized(reader.number("I"))
            if length >= 0:
                lengths[key] = length
            if value is not None:
                metadata[key] = value
        end = max((_tensor_end(reader) for _ in range(tensors)), default=0)
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 0 < alignment <= 65_536:
            raise NotGguf("damaged")
        start = (reader.at + alignment - 1) // alignment * alignment
        return Header(metadata=metadata, lengths=lengths, needs=start + end if tensors else 0)


def _tensor_end(reader: _Reader) -> int:
    """Where a tensor's data end, from the start of all data; 0 for a type that isn't known here."""
    reader.text()
    dimensions = reader.number("I")
    if dimensions > 8:
        raise NotGguf("damaged")
    count = 1
    for _ in range(dimensions):
        count *= reader.number("Q")
    kind, offset = reader.number("I"), int(reader.number("Q"))
    if kind not in TENSOR_TYPES or count >= 1 << 60 or offset >= 1 << 60:
        return 0
    block, size = TENSOR_TYPES[kind]
    return offset + (count + block - 1) // block * size
