"""Whether a model fits: the sum by hand, on machines and in containers of any size."""

import pytest

from swarmtui.llm import memory, models
from swarmtui.llm.machine import EngineSettings
from swarmtui.llm.memory import Memory, Shape
from swarmtui.llm.model import ModelError
from tests.llm.gguf_files import gguf

GB = 10**9
LLAMA = {
    "llama.block_count": 32,
    "llama.embedding_length": 4096,
    "llama.attention.head_count": 32,
    "llama.attention.head_count_kv": 8,
}


def test_the_cache_of_a_token():
    # 32 layers × 8 heads × (128 + 128) numbers of 2 bytes.
    assert memory.shape("llama", LLAMA, {}).cell == 131_072
    assert memory.shape("llama", LLAMA | {"llama.attention.key_length": 64}, {}).cell == 32 * 8 * (64 + 128) * 2
    per_layer = LLAMA | {"llama.attention.head_count_kv": [8] * 16 + [0] * 16}
    assert memory.shape("llama", per_layer, {}).cell == 65_536
    assert memory.shape("llama", {}, {"tokenizer.ggml.tokens": 7}) == Shape(cell=0, vocabulary=7)


@pytest.mark.parametrize("odd", [-1, 1 << 60, "many", 1.5, True, None])
def test_senseless_figures_count_as_silence(odd):
    assert memory.shape("llama", LLAMA | {"llama.block_count": odd}, {}).cell == 0


def test_the_sum():
    shape = Shape(cell=131_072, vocabulary=128_000)
    here = Memory(total=8 * GB, free=6 * GB)
    usual = memory.fit(4 * GB, shape, 8_192, None, here)
    assert usual.cache == 131_072 * memory.cells(memory.SLOTS, 2_048)
    assert usual.needs == 4 * GB + usual.cache + 2 * 256 * 4 * 128_000 + memory.PROGRAM
    assert usual.verdict == "tight"
    assert "this machine has 8.0 GB, 6.0 GB free now" in usual.in_words()
    small = memory.fit(4 * GB, shape, 8_192, EngineSettings(slots=1, context=512), here)
    assert small.cache == 131_072 * (512 * (1 + memory.EXPRESS) + memory.PINS * memory.PIN_TOKENS)
    assert small.verdict == "fits"
    assert memory.fit(4 * GB, shape, 1_024, None, here).cache == 131_072 * memory.cells(memory.SLOTS, 1_024)
    assert memory.fit(7 * GB, shape, 8_192, None, here).verdict == "too large"
    assert memory.fit(7 * GB, shape, 8_192, EngineSettings(gpu_layers=-1), here).verdict == "fits"
    assert memory.fit(7 * GB, shape, 8_192, None, Memory(total=0, free=0)).verdict == "fits"


def test_containers_have_less_than_their_machine(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "total_memory", lambda: 16 * GB)
    proc, groups = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n")
    assert memory.memory(proc, groups) == Memory(total=16 * GB, free=8_000_000 * 1024)
    (proc / "self/cgroup").write_text("0::/user/box\n")
    box = groups / "user/box"
    box.mkdir(parents=True)
    (groups / "user/memory.max").write_text(f"{4 * GB}\n")
    (groups / "user/memory.current").write_text(f"{3 * GB}\n")
    (groups / "user/memory.stat").write_text(f"anon {GB}\ninactive_file {GB}\n")
    (box / "memory.max").write_text("max\n")
    assert memory.memory(proc, groups) == Memory(total=4 * GB, free=2 * GB)
    (proc / "self/cgroup").write_text("4:memory:/old\n3:cpu:/old\n")
    (groups / "memory/old").mkdir(parents=True)
    (groups / "memory/old/memory.limit_in_bytes").write_text(f"{2 * GB}\n")
    (groups / "memory/old/memory.usage_in_bytes").write_text(f"{GB}\n")
    assert memory.memory(proc, groups) == Memory(total=2 * GB, free=GB)


def test_what_cant_fit_is_refused_with_the_sum_and_a_remedy(tmp_path, monkeypatch):
    monkeypatch.setattr(models, "bundled_path", lambda: None)
    monkeypatch.setattr(memory, "memory", lambda: Memory(total=GB, free=GB))
    numbers = {key.partition(".")[2]: value for key, value in LLAMA.items()}
    file = models.inspect(gguf(tmp_path / "big.gguf", numbers=numbers))
    with pytest.raises(ModelError, match=r"big is too large for this machine: it needs 2\.\d GB") as caught:
        models.require_memory(file)
    assert "llm.slots or llm.context lower" in caught.value.remedy
    assert models.require_memory(file, EngineSettings(slots=1, context=512)).verdict == "fits"
    with pytest.raises(ModelError, match="no model found"):
        models.choose("auto", tmp_path, env={}, home=tmp_path)
