"""Models on the Hugging Face hub: what a repository offers, and which quantisation suits this machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

import msgspec

from swarmtui.llm import memory, models
from swarmtui.llm.hub_library import explained, library
from swarmtui.llm.machine import EngineNumbers
from swarmtui.llm.model import ModelError
from swarmtui.llm.places import PART
from swarmtui.plaintext import one_line

SMALL = 1_000_000_000
"""Bytes below which a model is got as Q8_0: small ones lose most by coarser packing, and gain least."""
MAX_FILES = 10_000

LIKED = (
    "Q4_K_M",
    "UD-Q4_K_XL",
    "Q4_K_S",
    "Q4_0",
    "IQ4_XS",
    "IQ4_NL",
    "MXFP4",
    "Q5_K_M",
    "Q5_K_S",
    "Q6_K",
    "Q8_0",
    "Q4_1",
    "Q3_K_L",
    "Q3_K_M",
    "IQ3_M",
    "Q3_K_S",
    "IQ3_XXS",
    "Q2_K",
    "IQ2_M",
    "F16",
    "BF16",
)
"""Quantisations from the most sensible on: about 4 bits lose little and run fast."""


class HubFile(msgspec.Struct, frozen=True):
    """A file of a repository."""

    name: str
    """Its path there."""
    size: int
    sha256: str
    """'' if the hub doesn't tell."""


class Offer(msgspec.Struct, frozen=True):
    """A model of a repository: one file, or all its parts."""

    label: str
    """What a person names it by, mostly its quantisation."""
    files: tuple[HubFile, ...]

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files)

    def fit(self, numbers: EngineNumbers | None, here: memory.Memory) -> memory.Fit:
        """Whether it'll fit, by its size alone (the rest stands in the file)."""
        return memory.fit(self.size, memory.Shape(cell=self.size // 40_000), 0, numbers, here)


class Repository(msgspec.Struct, frozen=True):
    """What a repository has."""

    name: str
    revision: str
    offers: tuple[Offer, ...]
    """The smallest first."""


def parse(spec: str) -> tuple[str, str]:
    """(repository, quantisation or '') of 'owner/name', 'owner/name:Q4_K_M', or the repository's address.

    Raises:
        ModelError: it's none.
    """
    spec = re.sub(r"^(https?://)?(www\.)?(huggingface\.co|hf\.co)/", "", spec.strip())
    name, _, label = spec.partition(":")
    parts = name.strip("/").split("/")
    if len(parts) > 2 and parts[2] in ("tree", "blob", "resolve"):
        parts = parts[:2]
    if len(parts) != 2 or not all(re.fullmatch(r"[A-Za-z0-9][\w.\-]{0,95}", part) for part in parts):
        raise ModelError(
            f"{one_line(spec)[:80]} isn't the name of a repository",
            "write it like Qwen/Qwen3-4B-GGUF, or with a quantisation: Qwen/Qwen3-4B-GGUF:Q4_K_M",
        )
    return "/".join(parts), label.strip()


def look(name: str, endpoint: str | None = None) -> Repository:
    """Ask the hub what a repository has.

    Args:
        name: 'owner/name'.
        endpoint: of another hub; None: huggingface.co, or what HF_ENDPOINT says.

    Raises:
        ModelError: it isn't there, isn't for everybody, has no GGUF, or the hub can't be reached.
    """
    with library() as hub, explained(name):
        found = hub.HfApi(endpoint=endpoint).model_info(name, files_metadata=True)
    files = []
    for each in (found.siblings or [])[:MAX_FILES]:
        sha = getattr(each.lfs, "sha256", "") if each.lfs else ""
        if _safe(each.rfilename) and isinstance(each.size, int):
            files.append(HubFile(each.rfilename, each.size, sha or ""))
    offers = _offers(files)
    if not offers:
        raise ModelError(f"{name} has no GGUF files", f"look for one called {name.partition('/')[2]}-GGUF on the hub")
    return Repository(name, found.sha or "main", offers)


def _safe(path: str) -> bool:
    """A GGUF of a model, whose path can be shown and can't lead elsewhere when it's written here."""
    if not path.isprintable():
        return False
    name = PurePosixPath(path)
    plain = all(re.fullmatch(r"[^/\\\0:*?\"<>|]{1,200}", part) and part != ".." for part in name.parts)
    low = name.name.lower()
    return plain and not name.is_absolute() and low.endswith(".gguf") and not low.startswith(("mmproj", "imatrix"))


def _offers(files: Sequence[HubFile]) -> tuple[Offer, ...]:
    groups: dict[str, list[HubFile]] = {}
    for file in sorted(files, key=lambda each: each.name):
        part = PART.search(file.name)
        groups.setdefault(file.name[: part.start()] if part else file.name[: -len(".gguf")], []).append(file)
    whole = {stem: group for stem, group in groups.items() if _all_parts(group)}
    labels = {stem: models.quantisation_in(stem) or PurePosixPath(stem).name for stem in whole}
    doubled = {label for label in labels.values() if list(labels.values()).count(label) > 1}
    offers = [
        Offer(PurePosixPath(stem).name if labels[stem] in doubled else labels[stem], tuple(group))
        for stem, group in whole.items()
    ]
    return tuple(sorted(offers, key=lambda each: (each.size, each.label)))


def _all_parts(group: Sequence[HubFile]) -> bool:
    part = PART.search(group[0].name)
    return len(group) == (int(part[2]) if part else 1)


def choose(
    repository: Repository, label: str, numbers: EngineNumbers | None = None, here: memory.Memory | None = None
) -> Offer:
    """The quantisation that's meant, or without a label the one that suits this machine.

    Raises:
        ModelError: there's no such, or none fits.
    """
    offers, here = repository.offers, here or memory.memory()
    if label:
        wanted = label.casefold().removesuffix(".gguf")
        close = [each for each in offers if each.label.casefold() == wanted]
        close = close or [each for each in offers if wanted in each.label.casefold()]
        if len(close) == 1:
            return close[0]
        names = ", ".join(each.label for each in (close or offers)[:12])
        raise ModelError(f"{repository.name} has {'several' if close else 'no'} {one_line(label)}", f"it has: {names}")
    fitting = [each for each in offers if each.fit(numbers, here).verdict == "fits"]
    fitting = fitting or [each for each in offers if each.fit(numbers, here).verdict == "tight"]
    if not fitting:
        least = offers[0]
        raise ModelError(
            f"nothing of {repository.name} fits this machine: the smallest, {least.label}, is "
            f"{memory.gigabytes(least.size)}, and there are {memory.gigabytes(here.total)} of memory",
            f"get a smaller model, or that one all the same: swarmtui models get {repository.name}:{least.label}",
        )
    small = [each for each in fitting if each.label == "Q8_0" and each.size <= SMALL]
    return small[0] if small else min(fitting, key=_liking)


def _liking(offer: Offer) -> tuple[int, int]:
    return (LIKED.index(offer.label) if offer.label in LIKED else len(LIKED), offer.size)
