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

_SIMPLE = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9

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
    """Plain values and short texts; lists are left out."""
    needs: int
    """Bytes that the file must have for its tensors; 0 if it can't be told."""


class _Reader:
    def __init__(self, file: BinaryIO, size: int) -> None:
        self._file = file
        self._size = size
        self.at = 0

    def take(self, count: int) -> bytes:
        self._check(count)
        data = self._file.read(count)
        if len(data) < count:
            raise NotGguf("truncated")
        self.at += count
        return data

    def skip(self, count: int) -> None:
        self._check(count)
        self._file.seek(count, 1)
        self.at += count

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
        if kind in _SIMPLE:
            return self.number(_SIMPLE[kind])
        if kind == _STRING:
            return self.text()
        if kind == _ARRAY:
            self._array()
            return None
        raise NotGguf("damaged")

    def _array(self) -> None:
        kind, count = self.number("I"), self.number("Q")
        if kind in _SIMPLE:
            self.skip(count * struct.calcsize("<" + _SIMPLE[kind]))
        elif kind == _STRING:
            if count > MAX_ITEMS:
                raise NotGguf("damaged")
            for _ in range(count):
                self.skip(self.number("Q"))
        else:
            raise NotGguf("damaged")


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
        for _ in range(keys):
            key = reader.text()
            value = reader.value(reader.number("I"))
            if value is not None:
                metadata[key] = value
        end = max((_tensor_end(reader) for _ in range(tensors)), default=0)
        alignment = metadata.get("general.alignment", 32)
        if not isinstance(alignment, int) or not 0 < alignment <= 65_536:
            raise NotGguf("damaged")
        start = (reader.at + alignment - 1) // alignment * alignment
        return Header(metadata=metadata, needs=start + end if tensors else 0)


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
