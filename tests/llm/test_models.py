"""Finding GGUF files and reading their headers, whatever they contain."""

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from swarmtui.llm import models
from swarmtui.llm.gguf import NotGguf, read_header
from swarmtui.llm.model import ModelError
from tests.llm.gguf_files import gguf


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setattr(models, "bundled_path", lambda: None)


def test_what_a_file_says(tmp_path):
    found = models.inspect(gguf(tmp_path / "tiny.gguf"))
    assert (found.architecture, found.title, found.quantisation, found.context) == ("llama", "Test", "Q4_K_M", 4096)
    assert found.template
    assert not found.problem
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
    assert models.inspect(first).problem == "1 of its 3 parts is missing"
    gguf(tmp_path / "big-00003-of-00003.gguf")
    whole = models.inspect(first)
    assert (whole.name, whole.problem, whole.parts) == ("big", "", 3)
    assert whole.size == 3 * first.stat().st_size
    last = tmp_path / "big-00003-of-00003.gguf"
    last.write_bytes(last.read_bytes()[:-9])
    assert models.inspect(first).problem == "part 3 of 3 is truncated"
    first.unlink()
    assert models.inspect(tmp_path / "big-00002-of-00003.gguf").problem == "1 of its 3 parts is missing"


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ({"context": 256}, "its context of 256 tokens is too small (512 are needed)"),
        ({"kind": "adapter"}, "an adapter, not a whole model"),
        ({"architecture": "bert"}, "not a model that writes text"),
        ({"architecture": ""}, "says nothing of its architecture"),
    ],
)
def test_a_model_that_cant_plan_is_told_by_its_header(tmp_path, keys, problem):
    assert models.inspect(gguf(tmp_path / "a.gguf", **keys)).problem == problem
    with pytest.raises(ModelError, match="can't be used") as caught:
        models.choose(str(tmp_path / "a.gguf"))
    assert caught.value.remedy


def test_a_changed_file_is_read_again(tmp_path):
    path = gguf(tmp_path / "a.gguf")
    assert not models.inspect(path).problem
    path.write_bytes(path.read_bytes()[:-1])
    assert models.inspect(path).problem == "truncated"
    path.unlink()
    assert models.inspect(path).problem == "its file is gone (a broken link)"
    path.mkdir()
    assert models.inspect(path).problem == "not a file"
    with pytest.raises(ModelError, match="is a folder"):
        models.choose(str(path))


def test_large_vocabularies_are_skipped_wherever_the_chunks_end(tmp_path, monkeypatch):
    words = ["x" * (i % 40) for i in range(3_000)]
    path = gguf(tmp_path / "a.gguf", words=words)
    whole = read_header(path)
    assert whole.lengths["tokenizer.ggml.tokens"] == 3_000
    for chunk in (1, 7, 64, 4_096):
        monkeypatch.setattr("swarmtui.llm.gguf.CHUNK", chunk)
        assert read_header(path) == whole


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
