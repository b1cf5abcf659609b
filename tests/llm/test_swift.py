"""The faster copy of the bundled model: made once, by one program, whole or not at all."""

import os
import shutil
import sys
from collections import namedtuple

import msgspec
import pytest
import trio

from swarmtui.llm import models, swift
from swarmtui.llm.machine import EngineSettings
from tests.llm import gguf_files

CPU = EngineSettings()
Usage = namedtuple("Usage", "total used free")


@pytest.fixture
def original(tmp_path):
    path = gguf_files.gguf(tmp_path / "Tiny.Q4_1.gguf", file_type=3)
    return models.inspect(path, source="bundled")


@pytest.fixture
def writer(tmp_path):
    """A command that copies instead of requantising, and counts how often."""
    script = tmp_path / "writer.py"
    script.write_text(
        "import shutil, sys, pathlib\n"
        "count = pathlib.Path(__file__).with_name('count')\n"
        "with count.open('a') as file: file.write('x')\n"
        "shutil.copy(sys.argv[1], sys.argv[2])\n"
    )
    return [sys.executable, str(script)]


def count(tmp_path):
    file = tmp_path / "count"
    return len(file.read_text()) if file.exists() else 0


async def prepare(original, folder, command):
    with trio.fail_after(60):
        return await swift.prepare(original, CPU, folder, command)


async def test_it_is_made_once_and_found_again(original, writer, tmp_path):
    folder = tmp_path / "cache" / "models"
    assert swift.find(original, CPU, folder) is None
    made = await prepare(original, folder, writer)
    assert made.trouble == ""
    assert made.file.path.parent == folder
    assert (made.file.name, made.file.source) == (original.name, "bundled")
    assert await prepare(original, folder, writer) == made
    assert swift.find(original, CPU, folder) == made.file
    assert count(tmp_path) == 1
    assert not list(folder.glob("*.part"))


async def test_of_several_programs_at_once_one_makes_it(original, writer, tmp_path):
    found = []

    async def one():
        found.append(await prepare(original, tmp_path / "models", writer))

    async with trio.open_nursery() as nursery:
        for _ in range(4):
            nursery.start_soon(one)
    assert len({each.file.path for each in found}) == 1
    assert not any(each.trouble for each in found)
    assert count(tmp_path) == 1


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("import sys; sys.exit('no space left')", "no space left"),
        ("import os; os.kill(os.getpid(), 9)", "SIGKILL"),
        ("import sys; open(sys.argv[2], 'wb').write(b'GGUF')", "isn't whole"),
        ("pass", "isn't whole"),
    ],
)
async def test_what_fails_leaves_nothing_and_the_original_is_used(original, tmp_path, script, said):
    command = [sys.executable, "-c", script]
    made = await prepare(original, tmp_path / "models", command)
    assert made.file == original
    assert said in made.trouble
    assert [each.suffix for each in (tmp_path / "models").iterdir()] == [".lock"]


async def test_a_full_disk_is_seen_before(original, writer, tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(100, 100, 0))
    made = await prepare(original, tmp_path / "models", writer)
    assert made.file == original
    assert "0 MiB free" in made.trouble
    assert count(tmp_path) == 0


async def test_a_folder_that_cant_be_made(original, writer, tmp_path):
    (tmp_path / "file").write_text("")
    made = await prepare(original, tmp_path / "file" / "models", writer)
    assert made.file == original
    assert "directory" in made.trouble.lower()


async def test_interrupted_it_begins_anew(original, writer, tmp_path):
    folder = tmp_path / "models"
    slow = [sys.executable, "-c", "import sys, time; open(sys.argv[2], 'wb').write(b'half'); time.sleep(600)"]
    with trio.move_on_after(60) as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(swift.prepare, original, CPU, folder, slow)
            while not list(folder.glob("*.part")):
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
    assert not scope.cancelled_caught
    # One that was killed outright leaves its part behind.
    target = swift.place(original, swift.FASTER["Q4_1"], folder)
    target.with_suffix(".part").write_bytes(b"half")
    (folder / "Tiny.Q4_1-as-Q5_1-0123456789ab.gguf").write_bytes(b"of a file that's gone")
    made = await prepare(original, folder, writer)
    assert made.file.path == target
    assert sorted(each.suffix for each in folder.iterdir()) == [".gguf", ".lock"]


async def test_a_damaged_copy_is_made_again(original, writer, tmp_path):
    made = await prepare(original, tmp_path / "models", writer)
    os.truncate(made.file.path, 30)
    assert swift.find(original, CPU, tmp_path / "models") is None
    again = await prepare(original, tmp_path / "models", writer)
    assert again == made
    assert count(tmp_path) == 2


def test_only_the_bundled_model_and_only_on_the_processor(original):
    assert swift.wanted(original, CPU) == swift.FASTER["Q4_1"]
    assert swift.wanted(original, EngineSettings(gpu_layers=-1)) == ""
    assert swift.wanted(msgspec.structs.replace(original, source="own"), CPU) == ""
    assert swift.wanted(msgspec.structs.replace(original, quantisation="Q8_0"), CPU) == ""


@pytest.mark.model
async def test_the_bundled_model_is_requantised(bundled, tmp_path):
    original = models.choose("auto")
    made = await swift.prepare(original, CPU, tmp_path)
    assert made.trouble == ""
    assert made.file.quantisation == swift.FASTER[original.quantisation]
    assert made.file.template and made.file.context == original.context
