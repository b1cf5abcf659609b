"""How many answers go on in one step: by figures, and not by noise."""

from pathlib import Path

import pytest

from swarmtui.llm import tuning
from swarmtui.llm.machine import EngineSettings
from swarmtui.llm.tuning import Measured, Notebook, choose_width, in_words
from swarmtui.llm.wire import Speed


@pytest.mark.parametrize(
    ("speeds", "width"),
    [
        ([(1, 50, 0.01), (2, 90, 0.01), (4, 150, 0.01)], 4),  # a GPU, or weights that come from memory
        ([(1, 50, 0.01), (2, 51, 0.01), (4, 52, 0.01)], 1),  # reckoning is what takes time
        ([(1, 50, 0.01), (2, 70, 0.01), (4, 71, 0.01)], 2),  # more than two is no faster
        ([(1, 50, 0.01), (2, 40, 0.01), (4, 30, 0.01)], 1),
        ([(1, 50, 0.2), (2, 60, 0.2), (4, 65, 0.2)], 1),  # may well be noise
        ([(1, 50, 0.01), (2, 45, 0.01), (4, 80, 0.01)], 4),
        ([(1, 50, 0.0)], 1),
        ([], 6),  # too slow to be measured: the weights' way is what takes long, and all share it
    ],
)
def test_wider_only_if_it_is_faster_beyond_the_noise(speeds, width):
    assert choose_width([Speed(w, r, s) for w, r, s in speeds], 6) == width


def test_the_decision_is_told_with_its_figures():
    speeds = [Speed(1, 50, 0.01), Speed(4, 150, 0.02)]
    assert (
        in_words(speeds, 4)
        == "4 answers a step, 3.0 × as fast as one (tokens/s by answers a step: 1: 50 ±1%, 4: 150 ±2%)"
    )
    assert in_words(speeds, 1).startswith("one answer at a time is fastest")
    assert "too slow" in in_words([], 4)


def test_figures_are_kept_by_model_settings_and_machine(tmp_path):
    notebook = Notebook(tmp_path / "a" / "b.json")
    file = tmp_path / "model.gguf"
    file.write_bytes(b"1")
    key = tuning.key(file, EngineSettings())
    measured = Measured(100.0, (Speed(1, 5.0, 0.1),))
    assert notebook.read(key) is None
    notebook.write(key, measured)
    assert notebook.read(key) == measured
    assert tuning.key(file, EngineSettings(slots=2)) != key
    file.write_bytes(b"12")
    assert tuning.key(file, EngineSettings()) != key
    assert tuning.key(Path("nowhere.gguf"), EngineSettings())


def test_a_notebook_that_cant_be_used_costs_nothing(tmp_path):
    file = tmp_path / "measured.json"
    file.write_text('{"key": 7}')
    assert Notebook(file).read("key") is None
    blocked = Notebook(file / "below a file.json")
    blocked.write("key", Measured(1.0, ()))
    assert blocked.read("key") is None


def test_a_notebook_forgets_the_oldest(tmp_path):
    notebook = Notebook(tmp_path / "measured.json")
    for i in range(tuning.REMEMBERED + 3):
        notebook.write(str(i), Measured(float(i), ()))
    assert notebook.read("2") is None
    assert notebook.read("3") == Measured(3.0, ())
    assert [each.name for each in tmp_path.iterdir()] == ["measured.json"]
