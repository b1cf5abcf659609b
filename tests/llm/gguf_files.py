"""Makes GGUF files for tests out of a real one."""

import struct
from pathlib import Path

from swarmtui.llm.gguf import _Reader


def rewritten(source: Path, target: Path, *, drop=(), replace=None) -> Path:
    """A copy with metadata keys left out, or with other texts in them."""
    data = source.read_bytes()
    with source.open("rb") as file:
        reader = _Reader(file, len(data))
        reader.skip(8)
        tensors, keys = reader.number("Q"), reader.number("Q")
        kept = []
        alignment = 32
        for _ in range(keys):
            start = reader.at
            key = reader.text()
            kind = reader.number("I")
            value = reader.value(kind)
            if key == "general.alignment":
                alignment = value
            if key in (replace or {}):
                text = replace[key].encode()
                name = key.encode()
                kept.append(struct.pack("<Q", len(name)) + name + struct.pack("<IQ", 8, len(text)) + text)
            elif key not in drop:
                kept.append(data[start : reader.at])
        infos_at = reader.at
        for _ in range(tensors):
            reader.text()
            for _ in range(reader.number("I")):
                reader.number("Q")
            reader.number("I"), reader.number("Q")
        infos = data[infos_at : reader.at]
        body = data[(reader.at + alignment - 1) // alignment * alignment :]
    head = data[:8] + struct.pack("<QQ", tensors, len(kept)) + b"".join(kept) + infos
    target.write_bytes(head + b"\0" * (-len(head) % alignment) + body)
    return target
