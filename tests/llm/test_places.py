"""Where other programs keep their models: their real layouts, on each system, and folders that are in no good state."""

import json
import os
from pathlib import Path

import pytest

from swarmtui.llm import models, places
from swarmtui.llm.places import Place
from tests.llm.gguf_files import gguf

HOME = Path("/home/ada")
DIGEST = "ab" * 32


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    monkeypatch.setattr(models, "bundled_path", lambda: None)


def found(home, own=None, env=None):
    return {each.name: each.source for each in models.find(own, env=env or {}, home=home)}


def ollama_manifest(root, name, digest=f"sha256:{DIGEST}"):
    path = root / "manifests" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": digest}
    template = {"mediaType": "application/vnd.ollama.image.template", "digest": f"sha256:{'cd' * 32}"}
    path.write_text(json.dumps({"schemaVersion": 2, "layers": [template, layer]}))
    return path


def hub_file(hub, repo, name, blob="1234"):
    """A file as the hub's library keeps it: a blob, and a link to it in a snapshot."""
    folder = hub / f"models--{repo.replace('/', '--')}"
    target = gguf(folder / "blobs" / blob, name=name)
    link = folder / "snapshots" / "9f3a" / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(os.path.relpath(target, link.parent))
    return link


def test_all_the_usual_places(tmp_path):
    home = tmp_path / "home"
    gguf(home / ".cache/llama.cpp/one.gguf")
    gguf(home / ".lmstudio/models/people/two/two.gguf")
    hub_file(home / ".cache/huggingface/hub", "p/three", "three.gguf")
    hub_file(home / ".cache/huggingface/hub", "p/three", "mmproj-three.gguf", "5678")
    gguf(tmp_path / "own/four.gguf")
    gguf(tmp_path / "own/deeper/four.gguf", name="another")
    gguf(home / f".ollama/models/blobs/sha256-{DIGEST}")
    ollama_manifest(home / ".ollama/models", "registry.ollama.ai/library/five/latest")
    assert found(home, tmp_path / "own") == {
        "four": "own folder",
        "four#2": "own folder",
        "one": "llama.cpp",
        "two": "LM Studio",
        "five:latest": "Ollama",
        "three": "Hugging Face",
    }


@pytest.mark.parametrize(
    ("env", "platform", "folder"),
    [
        ({}, "linux", "/home/ada/.cache/llama.cpp"),
        ({}, "darwin", "/home/ada/Library/Caches/llama.cpp"),
        ({"LOCALAPPDATA": "/c/Local"}, "win32", "/c/Local/llama.cpp"),
        ({"XDG_CACHE_HOME": "/fast"}, "linux", "/fast/llama.cpp"),
        ({"XDG_CACHE_HOME": "relative"}, "linux", "/home/ada/.cache/llama.cpp"),
        ({"LLAMA_CACHE": "/models", "XDG_CACHE_HOME": "/fast"}, "linux", "/models"),
        ({"LLAMA_CACHE": "~/models"}, "darwin", "/home/ada/models"),
    ],
)
def test_where_llama_cpp_keeps_models(env, platform, folder):
    assert places.llama_cpp_cache(env, HOME, platform) == Path(folder)


@pytest.mark.parametrize(
    ("env", "folder"),
    [
        ({}, "/home/ada/.cache/huggingface/hub"),
        ({"XDG_CACHE_HOME": "/fast"}, "/fast/huggingface/hub"),
        ({"HF_HOME": "/hf", "XDG_CACHE_HOME": "/fast"}, "/hf/hub"),
        ({"HF_HUB_CACHE": "/cache", "HF_HOME": "/hf"}, "/cache"),
        ({"HUGGINGFACE_HUB_CACHE": "/old"}, "/old"),
        ({"HF_HOME": "~/hf"}, "/home/ada/hf/hub"),
    ],
)
def test_where_the_hubs_library_keeps_models(env, folder):
    assert places.hugging_face_cache(env, HOME) == Path(folder)


def test_where_ollama_keeps_models(monkeypatch):
    assert places.ollama_folders({"OLLAMA_MODELS": "/big"}, HOME, "linux") == [Path("/big")]
    assert places.ollama_folders({}, HOME, "darwin") == [HOME / ".ollama/models"]
    monkeypatch.setattr(Path, "home", lambda: HOME)
    assert places.ollama_folders({}, HOME, "darwin") == [HOME / ".ollama/models"]
    linux = places.ollama_folders({}, HOME, "linux")
    assert linux[:2] == [HOME / ".ollama/models", Path("/usr/share/ollama/.ollama/models")]


def test_lm_studios_settings_say_where(tmp_path):
    base, downloads = tmp_path / "elsewhere/lmstudio", tmp_path / "disk2"
    gguf(base / "models/a/b/one.gguf")
    gguf(downloads / "a/b/two.gguf")
    (tmp_path / ".lmstudio-home-pointer").write_text(f"{base}\n")
    (base / "settings.json").write_text(json.dumps({"downloadsFolder": str(downloads)}))
    gguf(tmp_path / ".cache/lm-studio/models/a/b/old.gguf")
    assert found(tmp_path) == dict.fromkeys(("one", "two", "old"), "LM Studio")
    (base / "settings.json").write_text("[1,")
    assert set(found(tmp_path)) == {"one", "old"}


def test_ollamas_names(tmp_path):
    root = tmp_path / ".ollama/models"
    for i, name in enumerate(
        ("registry.ollama.ai/library/qwen3/4b", "registry.ollama.ai/ada/mine/v1", "hf.co/bart/Llama-GGUF/Q4_K_M")
    ):
        digest = f"{i:064x}"
        gguf(root / f"blobs/sha256-{digest}")
        ollama_manifest(root, name, f"sha256:{digest}")
    assert set(found(tmp_path)) == {"qwen3:4b", "ada/mine:v1", "hf.co/bart/Llama-GGUF:Q4_K_M"}
    assert models.choose("qwen3", env={}, home=tmp_path).path.name == f"sha256-{0:064x}"


@pytest.mark.parametrize("digest", ["../../../../etc/passwd", "sha256:../x", 7, None])
def test_no_manifest_leads_out_of_the_blobs(tmp_path, digest):
    root = tmp_path / ".ollama/models"
    ollama_manifest(root, "registry.ollama.ai/library/evil/latest", digest)
    (root / "manifests/registry.ollama.ai/library/evil/broken").write_text("{")
    (root / "manifests/registry.ollama.ai/library/evil/list").write_text("[]")
    assert found(tmp_path) == {}


def test_an_ollama_model_without_its_blob_says_so(tmp_path):
    ollama_manifest(tmp_path / ".ollama/models", "registry.ollama.ai/library/gone/latest")
    (only,) = models.find(env={}, home=tmp_path)
    assert (only.name, only.problem) == ("gone:latest", "its file is gone (a broken link)")


def test_broken_links_are_shown_and_loops_end(tmp_path):
    own = tmp_path / "own"
    gguf(own / "good.gguf")
    (own / "again").symlink_to(own)
    (own / "gone.gguf").symlink_to(tmp_path / "nowhere.gguf")
    (own / "self.gguf").symlink_to(own / "self.gguf")
    (own / "twice.gguf").symlink_to(own / "good.gguf")
    files = models.find(own, env={}, home=tmp_path)
    assert [each.name for each in files] == ["gone", "good", "self"]
    assert files[0].problem == "its file is gone (a broken link)"
    assert not files[1].problem
    assert files[2].problem


def test_folders_behind_links_are_looked_at(tmp_path):
    gguf(tmp_path / "disk2/models/far.gguf")
    (tmp_path / "own").mkdir()
    (tmp_path / "own/more").symlink_to(tmp_path / "disk2/models")
    assert set(found(tmp_path, tmp_path / "own")) == {"far"}


def test_what_cant_be_read_is_told_and_hides_nothing_else(tmp_path, monkeypatch):
    own = tmp_path / "own"
    gguf(own / "good.gguf")
    (own / "secret").mkdir()
    scandir = os.scandir

    def refuse(folder):
        if Path(folder).name == "secret":
            raise PermissionError(13, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    survey = models.survey(own, env={}, home=tmp_path)
    assert [each.name for each in survey.files] == ["good"]
    assert survey.notes == [f"{own / 'secret'} can't be read: Permission denied"]


def test_an_unreadable_file_is_no_end(tmp_path, monkeypatch):
    path = gguf(tmp_path / "a.gguf")

    def refuse(self, *args, **kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert models.inspect(path).problem == "Permission denied"


def test_huge_and_deep_folders_are_left_in_time(tmp_path, monkeypatch):
    own = tmp_path / "own"
    for i in range(30):
        gguf(own / f"{i:02}.gguf")
    gguf(own.joinpath(*["deep"] * (places.MAX_DEPTH + 1)) / "too-deep.gguf")
    assert len(found(tmp_path, own)) == 30
    for limit, said in (("MAX_FILES", "only the first 10 models"), ("MAX_ENTRIES", "over 10 files")):
        with monkeypatch.context() as changed:
            changed.setattr(places, limit, 10)
            survey = models.survey(own, env={}, home=tmp_path)
            assert len(survey.files) <= 10
            assert any(said in note for note in survey.notes)


def test_a_split_model_is_one(tmp_path):
    for i in (1, 2, 3):
        gguf(tmp_path / f"own/Big-Q4_K_M-0000{i}-of-00003.gguf", file_type=99)
    gguf(tmp_path / "own/Half-00002-of-00002.gguf")
    files = models.find(tmp_path / "own", env={}, home=tmp_path)
    assert [(each.name, each.parts, each.problem) for each in files] == [
        ("Big-Q4_K_M", 3, ""),
        ("Half", 2, "1 of its 2 parts is missing"),
    ]
    assert files[0].quantisation == "Q4_K_M"
    assert files[0].path.name == "Big-Q4_K_M-00001-of-00003.gguf"
    assert models.choose("big", tmp_path / "own", env={}, home=tmp_path).path == files[0].path


def test_a_place_that_isnt_there_is_nothing(tmp_path):
    notes: list[str] = []
    assert not list(places.candidates(Place(tmp_path / "none", "x"), notes))
    (tmp_path / "file").write_text("")
    assert not list(places.candidates(Place(tmp_path / "file", "x"), notes))
    assert not notes
