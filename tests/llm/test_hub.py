"""Getting models from the hub: what is offered, what is chosen, and every way in which a transfer may end."""

import json
import os
import shutil
import signal
import subprocess
import sys
from types import SimpleNamespace

import pytest
from huggingface_hub import constants

from swarmtui.llm import hub, hub_fetch, models
from swarmtui.llm.hub import HubFile, Offer, Repository
from swarmtui.llm.memory import Memory
from swarmtui.llm.model import ModelError
from tests.llm.gguf_files import gguf
from tests.llm.hub_server import running

GB = 10**9
TOKEN = "hf_very_secret"
ROOMY = Memory(total=64 * GB, free=60 * GB)


@pytest.fixture(autouse=True)
def anonymous(monkeypatch, tmp_path):
    monkeypatch.setattr(models, "bundled_path", lambda: None)
    for name in ("HF_TOKEN", "HF_ENDPOINT", "HF_HUB_OFFLINE", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    """The library hands its data on in pieces of 10 MB: more than these files have."""
    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 10_000)


@pytest.fixture
def here():
    with running() as made:
        yield made


@pytest.fixture
def model(tmp_path):
    """The bytes of a small model that can't be told from a real one by its header."""
    return gguf(tmp_path / "source.gguf", data=64, words=["word"] * 60_000).read_bytes()


def fetch(here, folder, name="ada/tiny-GGUF", label="", progress=lambda *_: None):
    found = hub.look(name, here.url)
    return hub_fetch.fetch(found, hub.choose(found, label, None, ROOMY), folder, progress, here.url)


# What is meant


@pytest.mark.parametrize(
    ("spec", "parsed"),
    [
        ("Qwen/Qwen3-4B-GGUF", ("Qwen/Qwen3-4B-GGUF", "")),
        ("Qwen/Qwen3-4B-GGUF:Q4_K_M", ("Qwen/Qwen3-4B-GGUF", "Q4_K_M")),
        ("https://huggingface.co/Qwen/Qwen3-4B-GGUF/tree/main", ("Qwen/Qwen3-4B-GGUF", "")),
        ("hf.co/a/b:Q8_0", ("a/b", "Q8_0")),
    ],
)
def test_names_of_repositories(spec, parsed):
    assert hub.parse(spec) == parsed


@pytest.mark.parametrize("spec", ["qwen", "a/b/c", "../etc", "a/..", "/a/b c", "", "http://evil/a/b/c"])
def test_what_is_no_repository(spec):
    with pytest.raises(ModelError, match="isn't the name") as caught:
        hub.parse(spec)
    assert "Qwen/Qwen3-4B-GGUF" in caught.value.remedy


def repository(**sizes):
    offers = [Offer(label, (HubFile(f"m-{label}.gguf", size, ""),)) for label, size in sizes.items()]
    return Repository("ada/m", "main", tuple(sorted(offers, key=lambda each: each.size)))


@pytest.mark.parametrize(
    ("sizes", "total", "free", "label"),
    [
        ({"Q2_K": 3, "Q4_K_M": 5, "Q8_0": 9, "F16": 16}, 64, 60, "Q4_K_M"),
        ({"Q2_K": 3, "Q3_K_M": 4, "Q4_K_M": 5, "Q8_0": 9}, 7, 6.5, "Q3_K_M"),
        ({"Q4_K_M": 5, "Q4_0": 4.8, "Q2_K": 3}, 8, 7.0, "Q4_0"),
        ({"Q2_K": 3, "Q4_K_M": 5}, 8, 2, "Q4_K_M"),
        ({"Q4_K_M": 0.4, "Q8_0": 0.8}, 64, 60, "Q8_0"),
        ({"odd": 5, "odder": 4}, 64, 60, "odder"),
    ],
)
def test_the_sensible_quantisation_is_taken(sizes, total, free, label):
    offered = repository(**{name: int(size * GB) for name, size in sizes.items()})
    here = Memory(total=int(total * GB), free=int(free * GB))
    assert hub.choose(offered, "", None, here).label == label


def test_one_can_be_named_and_what_is_too_large_is_said():
    offered = repository(Q4_K_M=50 * GB, Q4_K_S=40 * GB, IQ1_S=20 * GB)
    assert hub.choose(offered, "iq1_s", None, ROOMY).label == "IQ1_S"
    small = Memory(total=8 * GB, free=7 * GB)
    assert hub.choose(offered, "q4_k_m", None, small).label == "Q4_K_M"
    for label, reason in (("Q9", "has no Q9"), ("q4", "has several q4"), ("", "nothing of ada/m fits")):
        with pytest.raises(ModelError, match=reason) as caught:
            hub.choose(offered, label, None, small)
        assert "IQ1_S" in caught.value.remedy or "Q4_K_S" in caught.value.remedy


def test_what_a_repository_offers(here):
    data = dict.fromkeys(
        (
            "README.md",
            "tiny-Q4_K_M.gguf",
            "tiny.Q8_0.gguf",
            "mmproj-tiny-F16.gguf",
            "F16/tiny-F16-00001-of-00002.gguf",
            "F16/tiny-F16-00002-of-00002.gguf",
            "half-Q2_K-00001-of-00003.gguf",
            "UD-Q2_K_XL/tiny-UD-Q2_K_XL.gguf",
            "../../evil-Q6_K.gguf",
            "evil\x1b]0;title\x07-Q5_K_M.gguf",
            "evil\u202e-Q5_K_S.gguf",
            "plain.gguf",
        ),
        b"x",
    )
    here.repositories["ada/tiny-GGUF"] = data
    offers = hub.look("ada/tiny-GGUF", here.url).offers
    assert {each.label: len(each.files) for each in offers} == {
        "Q4_K_M": 1,
        "Q8_0": 1,
        "F16": 2,
        "UD-Q2_K_XL": 1,
        "plain": 1,
    }
    here.repositories["ada/twins"] = {"a-Q4_0.gguf": b"1", "b-Q4_0.gguf": b"22"}
    assert [each.label for each in hub.look("ada/twins", here.url).offers] == ["a-Q4_0", "b-Q4_0"]


# Transfers


def test_a_model_is_got_and_usable_by_name(here, tmp_path, model):
    here.repositories["ada/tiny-GGUF"] = {"tiny-Q4_K_M.gguf": model}
    heard = []
    found = fetch(here, tmp_path / "own", progress=lambda *each: heard.append(each))
    assert found.path.read_bytes() == model
    assert [what for what, *_ in heard][:: len(heard) - 1] == ["getting", "checking"]
    assert heard[-1] == ("checking", len(model), len(model))
    assert [each.name for each in found.path.parent.iterdir()] == ["tiny-Q4_K_M.gguf"]
    assert models.choose("tiny", tmp_path / "own", env={}, home=tmp_path).path == found.path
    # Once it's there nothing is got again.
    count = len(here.transfers())
    assert fetch(here, tmp_path / "own").path == found.path
    assert len(here.transfers()) == count


def test_all_parts_of_a_split_model(here, tmp_path, model):
    parts = {f"big-Q4_0-0000{i}-of-00002.gguf": model + bytes(i) for i in (1, 2)}
    here.repositories["ada/tiny-GGUF"] = parts
    heard = []
    found = fetch(here, tmp_path, progress=lambda *each: heard.append(each[1:]))
    assert (found.parts, found.problem, found.size) == (2, "", sum(map(len, parts.values())))
    assert heard[-1] == (found.size, found.size)


@pytest.mark.parametrize("ranges", [True, False])
def test_an_interrupted_transfer_goes_on(here, tmp_path, model, ranges):
    here.repositories["ada/tiny-GGUF"] = {"tiny-Q4_K_M.gguf": model}
    here.hold_after, here.ranges = 100_000, ranges

    def interrupt(what, done, total):
        if done >= 50_000:
            here.go_on.set()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(here, tmp_path, progress=interrupt)
    (part,) = (tmp_path / "ada--tiny-GGUF").iterdir()
    have = part.stat().st_size
    assert part.name.endswith(".part")
    assert 0 < have < len(model)
    here.hold_after = 0
    heard = []
    assert fetch(here, tmp_path, progress=lambda *each: heard.append(each)).path.read_bytes() == model
    assert here.transfers()[-1]["range"] == f"bytes={have}-"
    assert heard[0] == ("getting", have, len(model)) or not ranges
    assert max(done for _, done, _ in heard) == len(model)


def test_a_connection_that_breaks_is_taken_up_again(here, tmp_path, model):
    here.repositories["ada/tiny-GGUF"] = {"tiny-Q4_K_M.gguf": model}
    here.break_after = 100_000
    assert fetch(here, tmp_path).path.read_bytes() == model
    assert len(here.transfers()) == 2


def test_a_part_of_another_version_isnt_used(here, tmp_path, model):
    here.repositories["ada/tiny-GGUF"] = {"tiny-Q4_K_M.gguf": model}
    folder = tmp_path / "ada--tiny-GGUF"
    folder.mkdir()
    (folder / "tiny-Q4_K_M.gguf.0123456789ab.part").write_bytes(b"old" * 1000)
    assert fetch(here, tmp_path).path.read_bytes() == model
    assert "range" not in here.transfers()[0]


@pytest.mark.parametrize(("sha", "revision"), [("/../../evil", "main"), ("", "/../../evil")])
def test_what_the_hub_calls_a_version_leads_nowhere(tmp_path, sha, revision):
    found = Repository("ada/tiny-GGUF", revision, ())
    part = hub_fetch._Download(found, HubFile("tiny.gguf", 1, sha), tmp_path, None)._part
    assert (part.parent, part.suffix) == (tmp_path, ".part")


def test_what_was_damaged_on_its_way_is_thrown_away(here, tmp_path, model):
    here.repositories["ada/tiny-GGUF"] = {"tiny-Q4_K_M.gguf": model}
    here.wrong_hash = True
    with pytest.raises(ModelError, match="damaged on its way: its hash is wrong") as caught:
        fetch(here, tmp_path)
    assert caught.value.remedy == "get it again"
    assert not list((tmp_path / "ada--tiny-GGUF").iterdir())


def test_what_isnt_a_model_is_said(here, tmp_path):
    here.repositories["ada/tiny-GGUF"] = {"tiny-Q4_K_M.gguf": b"hello" * 100}
    with pytest.raises(ModelError, match="was got, but can't be used: not a GGUF file"):
        fetch(here, tmp_path)


def test_a_disk_without_room_is_told_before(here, tmp_path, model, monkeypatch):
    here.repositories["ada/tiny-GGUF"] = {"tiny-Q4_K_M.gguf": model}
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=1_000_000))
    with pytest.raises(ModelError, match=r"needs 0\.3 GB more on the disk .* 0\.0 GB are free") as caught:
        fetch(here, tmp_path)
    assert "llm.folder" in caught.value.remedy
    assert not here.transfers()


def test_a_disk_that_fills_up_is_told(here, tmp_path, model, monkeypatch):
    here.repositories["ada/tiny-GGUF"] = {"tiny-Q4_K_M.gguf": model}

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelError, match="is full") as caught:
        fetch(here, tmp_path)
    assert "goes on from what there is" in caught.value.remedy


def test_a_folder_that_cant_be_written_is_told(here, tmp_path, model):
    here.repositories["ada/tiny-GGUF"] = {"tiny-Q4_K_M.gguf": model}
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError, match="can't be written: Not a directory") as caught:
        fetch(here, tmp_path / "file")
    assert "llm.folder" in caught.value.remedy


def test_two_at_once_dont_spoil_each_other(here, tmp_path, model):
    here.repositories["ada/tiny-GGUF"] = {"tiny-Q4_K_M.gguf": model}

    def second(what, done, total):
        with pytest.raises(ModelError, match="another swarmtui is getting"):
            fetch(here, tmp_path)

    fetch(here, tmp_path, progress=second)


def test_refusals_say_what_to_do(here, tmp_path, model, monkeypatch):
    here.repositories["ada/tiny-GGUF"] = {"tiny-Q4_K_M.gguf": model}
    here.repositories["ada/none"] = {"README.md": b"x"}
    here.gated.add("ada/tiny-GGUF")
    for name, reason, remedy in (
        ("ada/missing", "there is no repository ada/missing", "HF_TOKEN"),
        ("ada/none", "has no GGUF files", "none-GGUF"),
        ("ada/tiny-GGUF", "accept its terms", "https://huggingface.co/ada/tiny-GGUF"),
    ):
        with pytest.raises(ModelError, match=reason) as caught:
            fetch(here, tmp_path, name)
        assert remedy in caught.value.remedy
    here.failing = 404
    with pytest.raises(ModelError, match="the hub answered 404"):
        fetch(here, tmp_path)


def test_a_hub_that_isnt_there_is_told(tmp_path):
    with pytest.raises(ModelError, match="the hub can't be reached"):
        hub.look("ada/x", "http://127.0.0.1:9")  # discard: nobody listens


def test_without_the_library_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ModelError, match="isn't installed") as caught:
        hub.look("ada/x")
    assert "swarmtui[get]" in caught.value.remedy


def test_a_token_goes_to_the_hub_alone(here, tmp_path, model, monkeypatch, capfd):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    here.repositories["ada/tiny-GGUF"] = {"tiny-Q4_K_M.gguf": model}
    here.break_after = 1_000
    fetch(here, tmp_path)
    sent = {path.split("/")[1]: headers.get("authorization") for _, path, headers in here.asked}
    assert sent == {"api": f"Bearer {TOKEN}", "ada": f"Bearer {TOKEN}", "store": None}
    # Neither it nor the store's signed address is printed, though a connection broke.
    assert capfd.readouterr() == ("", "")


# The command


def command(here, tmp_path, *arguments):
    env = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    env |= {"HF_ENDPOINT": here.url, "HF_TOKEN": TOKEN, "HF_HOME": str(tmp_path / "hf"), "HOME": str(tmp_path)}
    return subprocess.Popen(
        [sys.executable, "-m", "swarmtui", "models", *arguments, "--set", f"llm.folder={tmp_path / 'own'}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )


def test_the_command_stops_cleanly_goes_on_and_tells_the_name(here, tmp_path, model):
    here.repositories["ada/tiny-GGUF"] = {"tiny-Q8_0.gguf": model, "tiny-F16.gguf": model + bytes(10)}
    here.hold_after = 100_000
    child = command(here, tmp_path, "get", "ada/tiny-GGUF")
    try:
        assert here.held.wait(60)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=150)
    finally:
        child.kill()
    assert (child.returncode, out) == (130, "")
    assert "interrupted; what came is kept" in err
    assert "Traceback" not in err
    assert "*  Q8_0" in err
    here.go_on.set()
    here.hold_after = 0
    child = command(here, tmp_path, "get", "ada/tiny-GGUF:q8_0")
    out, err = child.communicate(timeout=150)
    assert child.returncode == 0, err
    assert out.strip() == str(tmp_path / "own/ada--tiny-GGUF/tiny-Q8_0.gguf")
    assert "use it: swarmtui --model tiny-Q8_0" in err
    assert TOKEN not in out + err
    child = command(here, tmp_path, "--json", "--model", "tiny-q8")
    facts = json.loads(child.communicate(timeout=150)[0])
    assert [(each["name"], each["source"]) for each in facts["models"] if each["chosen"]] == [
        ("tiny-Q8_0", "own folder")
    ]


def test_the_command_lists_and_fails_in_one_line(here, tmp_path, model):
    here.repositories["ada/tiny-GGUF"] = {"tiny-Q8_0.gguf": model}
    child = command(here, tmp_path, "get", "--list", "ada/tiny-GGUF")
    out, err = child.communicate(timeout=150)
    assert child.returncode == 0, err
    assert err.splitlines()[1].split() == ["*", "Q8_0", "0.5", "GB"] or "Q8_0" in err
    assert not here.transfers()
    child = command(here, tmp_path, "get", "ada/missing")
    out, err = child.communicate(timeout=150)
    assert (child.returncode, out) == (1, "")
    assert len(err.splitlines()) == 1
    assert "there is no repository ada/missing" in err
