"""`swarmtui models`: what's on this machine, what fits in its memory, and which is used; and gets others."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from swarmtui.cli import options
from swarmtui.cli.failure import EXIT_INTERRUPTED, Failure, Terminated
from swarmtui.cli.progress import Download

if TYPE_CHECKING:
    from swarmtui.config import Config
    from swarmtui.llm.hub import Offer, Repository
    from swarmtui.llm.memory import Fit
    from swarmtui.llm.models import ModelFile, Survey
    from swarmtui.llm.remote.meeting import Met

EXAMPLES = """\b
Examples:
  swarmtui models
  swarmtui models --model qwen
  swarmtui models --json

\b
The folders of llama.cpp, LM Studio, Ollama and the Hugging Face cache are looked through, and your own
(llm.folder). MEMORY is the weights, the KV cache at the configured slots and context, and room to compute in.
"""


GET_EXAMPLES = """\b
Examples:
  swarmtui models get Qwen/Qwen3-4B-GGUF
  swarmtui models get Qwen/Qwen3-4B-GGUF:Q8_0
  swarmtui models get Qwen/Qwen3-4B-GGUF --list

\b
Without a quantisation the one is taken that suits this machine: about 4 bits a weight (8 for models under 1 GB) if
that fits in memory. Interrupted, the same command goes on from there. A token for private models is taken from
HF_TOKEN or `hf auth login`. The files come into the folder of your own models (swarmtui paths).
"""


@click.group(invoke_without_command=True, epilog=EXAMPLES, subcommand_metavar="[get REPO[:QUANT]]")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@click.option("--paths", "show_paths", is_flag=True, help="Where each file lies.")
@options.common
@click.pass_context
def models(ctx: click.Context, as_json: bool, show_paths: bool) -> None:
    """List the models found on this machine; the one that would be used is marked with *."""
    if ctx.invoked_subcommand is not None:
        return
    from swarmtui.llm.models import survey

    settings = options.config()
    found = survey(settings.models_dir)
    chosen, server, problem = _chosen(settings)
    if as_json:
        click.echo(json.dumps(_facts(settings, found, chosen, server, problem), ensure_ascii=False))
    else:
        _print(settings, found, chosen, server, show_paths)
    if problem:
        raise Failure(problem)


def _chosen(settings: Config) -> tuple[ModelFile | None, Met | None, str]:
    """(the file that's meant, or the server, why there's neither)."""
    from swarmtui.llm.model import ModelError
    from swarmtui.llm.models import SCRIPTED, choose, require_memory
    from swarmtui.llm.remote.address import is_address
    from swarmtui.llm.remote.meeting import meet

    llm = settings.llm
    try:
        if settings.model == SCRIPTED:
            return None, None, ""
        if is_address(settings.model):
            return None, meet(settings.model, settings.key(), llm.key_variable, llm.slots), ""
        file = choose(settings.model, settings.models_dir)
        require_memory(file, llm)
    except ModelError as error:
        return None, None, str(Failure(error, error.remedy))
    return file, None, ""


def _same(file: ModelFile, chosen: ModelFile | None) -> bool:
    return chosen is not None and file.path.resolve() == chosen.path.resolve()


def _facts(
    settings: Config, found: Survey, chosen: ModelFile | None, server: Met | None, problem: str
) -> dict[str, Any]:
    import msgspec

    from swarmtui.llm.memory import memory

    here = memory()
    listed = []
    for file in found.files:
        fit = file.fit(settings.llm, here)
        listed.append(
            {
                "name": file.name,
                "path": str(file.path),
                "source": file.source,
                "size": file.size,
                "parts": file.parts,
                "title": file.title,
                "architecture": file.architecture,
                "quantisation": file.quantisation,
                "context": file.context,
                "template": file.template,
                "problem": file.problem,
                "chosen": _same(file, chosen),
                "memory": {"verdict": fit.verdict, "needs": fit.needs, "weights": fit.weights, "cache": fit.cache},
            }
        )
    return {
        "models": listed,
        "chosen": str(chosen.path) if chosen else settings.model if not problem else None,
        "server": msgspec.to_builtins(server),
        "problem": problem,
        "memory": {"total": here.total, "free": here.free},
        "notes": found.notes,
    }


def _print(settings: Config, found: Survey, chosen: ModelFile | None, server: Met | None, show_paths: bool) -> None:
    from swarmtui.llm.memory import CONTEXT, SLOTS, cells, gigabytes, memory
    from swarmtui.llm.models import SCRIPTED
    from swarmtui.plaintext import one_line

    here = memory()
    rows = [["", "NAME", "SIZE", "QUANT", "CONTEXT", "TEMPLATE", "MEMORY", "FOUND IN"]]
    below: list[str] = [""]
    for file in found.files:
        fit = file.fit(settings.llm, here)
        rows.append(
            [
                "*" if _same(file, chosen) else "!" if file.problem or fit.verdict == "too large" else "",
                one_line(file.name),
                gigabytes(file.size) if file.size else "?",
                one_line(file.quantisation) or "?",
                f"{file.context:,}" if file.context else "?",
                "yes" if file.template else "no",
                "" if file.problem else _in_words(fit),
                file.source + (f", {file.parts} parts" if file.parts > 1 else ""),
            ]
        )
        told = [f"can't be used: {one_line(file.problem)}"] if file.problem else []
        told += [str(file.path)] if show_paths or file.problem else []
        told += [f"used as a faster {copy.quantisation} copy: {copy.path}"] if (copy := _copy(file, settings)) else []
        below.append("\n".join(f"    {line}" for line in told))
    if chosen is not None and not any(_same(file, chosen) for file in found.files):
        click.echo(f"* {chosen.path}")
    if server is not None:
        click.echo(f"* {server.in_words()}  ({settings.model})")
        for notice in server.notices:
            click.echo(f"  {notice}")
    if settings.model == SCRIPTED:
        click.echo("* scripted  (no model: canned answers)")
    if found.files:
        for line in _table(rows, below):
            click.echo(line)
        if not all(file.template or file.problem for file in found.files):
            click.echo("No template: the model is used by plain completion; one made for chat mostly does better.")
        tokens = cells(settings.llm.slots or SLOTS, settings.llm.context or CONTEXT)
        free = f"{gigabytes(here.free)} of {gigabytes(here.total)} free" if here.free else gigabytes(here.total)
        click.echo(f"Memory: {free}; MEMORY is reckoned with a KV cache of {tokens:,} tokens.")
    else:
        click.echo(f"none found; put a GGUF file into {settings.models_dir}, or: swarmtui models get REPO", err=True)
    for note in found.notes:
        click.echo(f"! {one_line(note)}", err=True)


def _copy(file: ModelFile, settings: Config) -> ModelFile | None:
    """The copy that's used instead of this file."""
    from swarmtui.llm import swift
    from swarmtui.paths import swift_models_dir

    return swift.find(file, settings.llm, swift_models_dir())


@models.command(epilog=GET_EXAMPLES)
@click.argument("repo", metavar="REPO[:QUANT]")
@click.option("--list", "only_list", is_flag=True, help="Show what the repository has, and get nothing.")
@options.common
def get(repo: str, only_list: bool) -> int:
    """Get a model from the Hugging Face hub: REPO is a repository with GGUF files, as owner/name."""
    from swarmtui.cli.running import ends_raise
    from swarmtui.llm import hub, hub_fetch
    from swarmtui.llm.model import ModelError

    settings = options.config()
    progress = Download(sys.stderr)
    try:
        with ends_raise():
            name, label = hub.parse(repo)
            repository = hub.look(name)
            offer = None
            try:
                offer = hub.choose(repository, label, settings.llm)
            finally:
                if only_list or not label or offer is None:
                    _offers(settings, repository, offer)
            if only_list:
                return 0
            found = hub_fetch.fetch(repository, offer, settings.models_dir, progress)
            progress.clear()
    except ModelError as error:
        progress.clear()
        raise Failure(error, error.remedy) from error
    except (KeyboardInterrupt, Terminated) as error:
        progress.clear()
        click.echo("swarmtui: interrupted; what came is kept, the same command goes on from there", err=True)
        return error.exit_code if isinstance(error, Terminated) else EXIT_INTERRUPTED
    click.echo(f"{found.path}")
    click.echo(f"use it: swarmtui --model {found.name}", err=True)
    return 0


def _offers(settings: Config, repository: Repository, chosen: Offer | None) -> None:
    """List what there is; the one that's taken is marked."""
    from swarmtui.llm.memory import gigabytes, memory
    from swarmtui.plaintext import one_line

    here = memory()
    rows = [["", "QUANT", "SIZE", "MEMORY, ABOUT"]]
    for offer in repository.offers:
        mark = "*" if offer is chosen else ""
        rows.append([mark, one_line(offer.label), gigabytes(offer.size), _in_words(offer.fit(settings.llm, here))])
    for line in _table(rows, [""] * len(rows)):
        click.echo(line, err=True)


def _in_words(fit: Fit) -> str:
    """Memory needed, and what speaks against it."""
    from swarmtui.llm.memory import gigabytes

    return gigabytes(fit.needs) + {"fits": "", "tight": " (tight now)", "too large": " (too large)"}[fit.verdict]


def _table(rows: list[list[str]], below: list[str]) -> list[str]:
    """Lines of a table whose columns are as wide as their widest cell; `below` stands under a row, if not empty."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row, more in zip(rows, below, strict=True):
        cells = [cell + " " * (width - cell_len(cell)) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
        lines += [more] if more else []
    return lines
