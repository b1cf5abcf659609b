"""The options of an export, and the text that they ask for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

if TYPE_CHECKING:
    from swarmtui.plan.export import AgentFacts
    from swarmtui.plan.views import PlanView

Command = TypeVar("Command", bound=Callable[..., Any])
Form = Literal["md", "json"]


def export_options(command: Command) -> Command:
    """Give a command the options `form`, `appendix` and `checklist`."""
    for option in (
        click.option("--checklist", is_flag=True, help="Tasks as check boxes instead of headings."),
        click.option("--appendix/--no-appendix", default=True, help="How the plan was decided."),
        click.option(
            "--format", "form", type=click.Choice(["md", "json"]), help="Default: by the file's ending, else md."
        ),
    ):
        command = option(command)
    return command


def as_text(
    plan: PlanView,
    agents: Sequence[AgentFacts],
    form: Form | None,
    file: Path | None,
    appendix: bool,
    checklist: bool,
) -> str:
    """Return the document in the form that was asked for, or that the file's ending says."""
    from swarmtui.plan.export import to_json, to_markdown

    form = form or ("json" if file is not None and file.suffix.lower() == ".json" else "md")
    if form == "json":
        return to_json(plan, agents)
    return to_markdown(plan, agents=agents, appendix=appendix, checklist=checklist)
