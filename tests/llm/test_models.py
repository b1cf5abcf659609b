"""Finding GGUF files and reading their headers, whatever they contain."""

import json
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtui.llm import models
from swarmtui.llm.gguf import NotGguf, read_header
from swarmtui.llm.model import ModelError


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def gguf(path, *, architecture="llama", name="Test", context=4096, template="{{x}}", file_type=15, data=64, rows=16):
    """A small GGUF of one tensor (`rows` F32 numbers) and `data` bytes of it."""
    keys = [
        text("general.architecture") + struct.pack("<I", 8) + text(architecture),
        text("general.name") + struct.pack("<I", 8) + text(name),
        text("general.file_type") + struct.pack("<II", 4, file_type),
        text(f"{architecture}.context_length") + struct.pack("<II", 4, context),
        text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b"),
        text("tokenizer.ggml.scores") + struct.pack("<IIQ2f", 9, 6, 2, 0.0, 1.0),
    ]
    if template:
        keys.append(text("tokenizer.chat_template") + struct.pack("<I", 8) + text(template))
    tensor = text("output.weight") + struct.pack("<IQIQ", 1, rows, 0, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, len(keys)) + b"".join(keys) + tensor
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(head + b"\0" * (-len(head) % 32) + b"\0" * data)
    return path


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setattr(models, "bundled_path", lambda: None)


def test_what_a_file_says(tmp_path):
    found = models.inspect(gguf(tmp_path / "tiny.gguf"))
    assert (found.architecture, found.title, found.quantisation, found.context) == ("llama", "Test", "Q4_K_M", 4096)
    assert found.template
    assert not found.problem
    assert found.fits
    assert not models.inspect(gguf(tmp_path / "plain.gguf", template="")).template


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda data: data[:-1], "truncated"),
        (lambda data: data[:100], "truncated"),
        (lambda data: data[:10], "not a GGUF file"),
        (lambda data: b"", "not a GGUF file"),
        (lambda data: b"ELF!" + data[4:], "not a GGUF file"),
        (lambda data: data[:4] + struct.pack("<I", 9) + data[8:], "GGUF version 9 isn't supported"),
        (lambda data: data[:8] + struct.pack("<Q", 1 << 62) + data[16:], "damaged"),
        (lambda data: data[:16] + struct.pack("<Q", 1 << 62) + data[24:], "damaged"),
        (lambda data: data[:24] + struct.pack("<Q", 1 << 63) + data[32:], "truncated"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, change, problem):
    path = gguf(tmp_path / "a.gguf")
    path.write_bytes(change(path.read_bytes()))
    assert models.inspect(path).problem == problem
    with pytest.raises(ModelError) as caught:
        models.check(path)
    assert caught.value.remedy


def test_other_kinds_of_model_are_told_apart(tmp_path):
    assert "writes text" in models.inspect(gguf(tmp_path / "eye.gguf", architecture="clip")).problem
    first = gguf(tmp_path / "big-00001-of-00003.gguf")
    gguf(tmp_path / "big-00002-of-00003.gguf")
    assert models.inspect(first).problem == "1 of its parts are missing"
    gguf(tmp_path / "big-00003-of-00003.gguf")
    whole = models.inspect(first)
    assert not whole.problem
    assert whole.size == 3 * first.stat().st_size


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_bytes_make_the_reader_do_anything_but_refuse(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("hostile")
    good = gguf(folder / "a.gguf").read_bytes()
    at = data.draw(st.integers(0, len(good) - 1))
    junk = data.draw(st.binary(min_size=1, max_size=16))
    bad = folder / "b.gguf"
    bad.write_bytes(good[:at] + junk + good[at + len(junk) :])
    try:
        read_header(bad)
    except NotGguf:
        pass
    models.inspect(bad)


def test_all_the_usual_places(tmp_path):
    home = tmp_path / "home"
    gguf(home / ".cache/llama.cpp/one.gguf")
    gguf(home / ".lmstudio/models/people/two/two.gguf")
    gguf(home / ".cache/huggingface/hub/models--p--three/snapshots/abc/three.gguf")
    gguf(home / ".cache/huggingface/hub/models--p--three/snapshots/abc/mmproj-three.gguf")
    gguf(tmp_path / "own/four.gguf")
    gguf(tmp_path / "own/deeper/four.gguf", name="another")
    digest = "ab" * 32
    gguf(home / f".ollama/models/blobs/sha256-{digest}")
    manifest = home / ".ollama/models/manifests/registry.ollama.ai/library/five/latest"
    manifest.parent.mkdir(parents=True)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"}
    manifest.write_text(json.dumps({"layers": [{"mediaType": "x", "digest": "y"}, layer]}))
    (manifest.parent / "evil").write_text(json.dumps({"layers": [layer | {"digest": "../../../etc/passwd"}]}))
    (manifest.parent / "broken").write_text("{")
    found = {each.name: each.source for each in models.find(tmp_path / "own", env={}, home=home)}
    assert found == {
        "four": "own",
        "four#2": "own",
        "one": "llama.cpp",
        "two": "LM Studio",
        "five:latest": "Ollama",
        "three": "Hugging Face",
    }


def test_choosing(tmp_path):
    home, own = tmp_path / "home", tmp_path / "own"
    with pytest.raises(ModelError, match="no model found"):
        models.choose("auto", own, env={}, home=home)
    small, large = gguf(own / "small-1b.gguf"), gguf(own / "large-7b.gguf", data=640)
    gguf(own / "broken.gguf", rows=1 << 20)
    pick = lambda spec: models.choose(spec, own, env={}, home=home).path  # noqa: E731
    assert pick("auto") == large
    assert pick("SMALL") == pick("small-1b.gguf") == pick(str(small)) == small
    for spec, reason in [
        ("broken", "truncated"),
        ("none", "no model called none"),
        (str(own / "x.gguf"), "no model file"),
    ]:
        with pytest.raises(ModelError, match=reason) as caught:
            pick(spec)
        assert caught.value.remedy
    gguf(own / "small-2b.gguf")
    with pytest.raises(ModelError, match="several"):
        pick("small")
