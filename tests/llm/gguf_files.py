"""Makes GGUF files for tests: tiny ones, and others out of a real one."""

import struct
from pathlib import Path

from swarmtui.llm.gguf import _Reader


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def gguf(
    path,
    *,
    architecture="llama",
    name="Test",
    context=4096,
    template="{{x}}",
    file_type=15,
    data=64,
    rows=16,
    kind="model",
    words=("a", "b"),
    numbers=None,
):
    """A small GGUF of one tensor (`rows` F32 numbers) and `data` bytes of it; `numbers` are further keys."""
    keys = [
        text("general.architecture") + struct.pack("<I", 8) + text(architecture),
        text("general.name") + struct.pack("<I", 8) + text(name),
        text("general.file_type") + struct.pack("<II", 4, file_type),
        text(f"{architecture}.context_length") + struct.pack("<II", 4, context),
        text("general.type") + struct.pack("<I", 8) + text(kind),
        text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, len(words)) + b"".join(map(text, words)),
        text("tokenizer.ggml.scores") + struct.pack("<IIQ2f", 9, 6, 2, 0.0, 1.0),
    ]
    for key, value in (numbers or {}).items():
        if isinstance(value, list):
            keys.append(text(f"{architecture}.{key}") + struct.pack(f"<IIQ{len(value)}I", 9, 4, len(value), *value))
        else:
            keys.append(text(f"{architecture}.{key}") + struct.pack("<II", 4, value))
    if template:
        keys.append(text("tokenizer.chat_template") + struct.pack("<I", 8) + text(template))
    tensor = text("output.weight") + struct.pack("<IQIQ", 1, rows, 0, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(keys)) + b"".join(keys) + tensor
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + b"\0" * data)
    return path


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
