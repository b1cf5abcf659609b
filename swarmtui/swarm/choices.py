"""The models that a person can choose from, as the screen shows them: the list of `swarmtui models`."""

from __future__ import annotations

from swarmtui.config import Config
from swarmtui.llm import memory, models
from swarmtui.llm.remote.address import is_address
from swarmtui.view import ModelChoice


def choices(config: Config) -> tuple[ModelChoice, ...]:
    """What can be chosen, and what can't with the reason. Reads folders and headers; blocks for as long."""
    here = memory.memory()
    given = dict.fromkeys((config.model, *(config.model_of(role) for role in ("decomposer", "scorer", "executor"))))
    found = [_file(file, config, here) for file in models.survey(config.models_dir).files]
    # A server that the configuration names is one of the choices; others can be typed.
    servers = [ModelChoice(spec=spec, name=spec, source="server") for spec in given if is_address(spec)]
    scripted = ModelChoice(
        spec=models.SCRIPTED, name=models.SCRIPTED, source="no model", note="canned answers, for trying the screen"
    )
    return (*found, *servers, scripted)


def _file(file: models.ModelFile, config: Config, here: memory.Memory) -> ModelChoice:
    fit = file.fit(config.llm, here)
    problem, note = file.problem, ""
    if not problem and fit.verdict == "too large":
        problem = f"too large: needs {memory.gigabytes(fit.needs)} of {memory.gigabytes(here.total)}"
    elif fit.verdict == "tight":
        note = f"only {memory.gigabytes(here.free)} free now"
    elif not file.template:
        note = "no chat template"
    return ModelChoice(
        spec=str(file.path),
        name=file.name,
        size=memory.gigabytes(file.size) if file.size else "",
        quantisation=file.quantisation,
        context=file.context,
        needs="" if file.problem else memory.gigabytes(fit.needs),
        source=file.source,
        problem=problem,
        note=note,
    )
