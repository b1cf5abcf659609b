"""The forms of agents, policy and export: their entries and checks, without any screen in them."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from swarmtui.files import WriteError, check_writable, expanded
from swarmtui.plaintext import one_line
from swarmtui.plan.ops import DEFAULT_SKILL, QUORUMS, InvalidOp, Policy, check_policy, need_of
from swarmtui.ui.screens.dialogs import Field
from swarmtui.view import PlanView

_NUMBERS = ("rivals", "rounds", "max_depth", "pass_mark", "patience_s", "lease_s", "attempts")


def agent_fields(role: str) -> tuple[Field, ...]:
    """Return the entries for a new agent of this role."""
    fields = [Field("name", "name", hint="a name is chosen if this is empty")]
    if role == "decomposer":
        fields.append(Field("angle", "angle", hint="how it splits, e.g. by place, by time, by risk"))
    fields.append(Field("model", "model", kind="model", hint="the swarm's model"))
    fields.append(Field("skills", "skills", hint=f"{DEFAULT_SKILL}; several with commas between"))
    return tuple(fields)


def check_agent(values: Mapping[str, str]) -> str:
    """Say what is wrong with a new agent's entries."""
    if len(values["name"].strip()) > 40:
        return "The name may have 40 characters."
    if len(values.get("angle", "")) > 200:
        return "The angle may have 200 characters."
    if any(len(skill) > 40 for skill in skills(values)):
        return "A skill may have 40 characters."
    return ""


def skills(values: Mapping[str, str]) -> tuple[str, ...]:
    """Return the skills of a comma-separated entry."""
    return tuple(dict.fromkeys(one_line(part) for part in values["skills"].split(",") if part.strip()))


def policy_fields(policy: Policy) -> tuple[Field, ...]:
    """Return the entries for a policy."""
    low, high = policy.fan_out
    merge = (("the whole plan", "root"), ("every branch", "all"), ("nothing", "none"))
    return (
        Field("need", "approvals needed", str(policy.need), hint="a number, majority, two-thirds or all"),
        Field("rivals", "rival drafts a task", str(policy.rivals)),
        Field("rounds", "refinements", str(policy.rounds)),
        Field("fan_out", "steps a draft", f"{low}-{high}"),
        Field("max_depth", "levels deep", str(policy.max_depth)),
        Field("pass_mark", "pass mark", str(policy.pass_mark)),
        Field("patience_s", "settle after, s", str(policy.patience_s)),
        Field("lease_s", "take over after, s", str(policy.lease_s)),
        Field("attempts", "attempts a task", str(policy.attempts)),
        Field("synthesis", "merge results of", policy.synthesis, "choice", options=merge),
    )


def read_need(text: str, scorers: int) -> int:
    """Turn 'majority', 'two-thirds', 'all' or a number into a number of approvals.

    Raises:
        ValueError: with a sentence for the person.
    """
    text = text.strip().casefold()
    if text in QUORUMS:
        return need_of(text, scorers)
    if not re.fullmatch(r"[0-9]{1,4}", text):
        raise ValueError("Approvals needed: give a number, majority, two-thirds or all.")
    return int(text)


def read_policy(values: Mapping[str, str], old: Policy, scorers: int) -> Policy:
    """Make a policy of the entries.

    Args:
        values: The entries.
        old: The policy in force, for what has no entry.
        scorers: How many scorers there are.

    Raises:
        ValueError: with a sentence that names the entry.
    """
    need = read_need(values["need"], scorers)
    fan = re.fullmatch(r"\s*([0-9]+)\s*(?:-|–|to)\s*([0-9]+)\s*", values["fan_out"])
    if fan is None:
        raise ValueError("Steps a draft: give two numbers, e.g. 2-6.")
    labels = {field.name: field.label for field in policy_fields(old)}
    numbers: dict[str, int] = {}
    for name in _NUMBERS:
        if not re.fullmatch(r"[0-9]{1,6}", values[name].strip()):
            raise ValueError(f"{labels[name].capitalize()}: give a whole number.")
        numbers[name] = int(values[name])
    made = msgspec.structs.replace(
        old,
        need=need,
        of=max(need, scorers, 1),
        fan_out=(int(fan[1]), int(fan[2])),
        synthesis=values["synthesis"],
        **numbers,
    )
    try:
        policy = msgspec.convert(msgspec.to_builtins(made), Policy)
        check_policy(policy)
    except msgspec.ValidationError as error:
        where = re.search(r"\$\.(\w+)", str(error))
        label = labels.get(where[1], where[1]) if where else "policy"
        raise ValueError(f"{label.capitalize()}: {str(error).split(' - ')[0]}.") from None
    except InvalidOp as error:
        raise ValueError(f"{error}.") from None
    return policy


def check_policy_with(old: Policy, scorers: int) -> Callable[[Mapping[str, str]], str]:
    """Return a check for the policy form."""

    def check(values: Mapping[str, str]) -> str:
        try:
            read_policy(values, old, scorers)
        except ValueError as error:
            return str(error)
        return ""

    return check


def export_fields(plan: PlanView, folder: Path) -> tuple[Field, ...]:
    """Return the entries for an export."""
    return (
        Field("path", "file", str(folder / f"{slug(plan.title)}.md")),
        Field("format", "format", "markdown", "choice", options=(("Markdown", "markdown"), ("JSON", "json"))),
        Field(
            "tasks",
            "tasks as",
            "headings",
            "choice",
            options=(("headings with results", "headings"), ("a checklist", "boxes")),
        ),
        Field(
            "appendix",
            "how it was decided",
            "yes",
            "choice",
            options=(("included, as an appendix", "yes"), ("left out", "no")),
        ),
    )


def included(values: Mapping[str, str]) -> dict[str, bool]:
    """Return what a Markdown export shall hold, as arguments of `to_markdown`."""
    return {"appendix": values["appendix"] == "yes", "checklist": values["tasks"] == "boxes"}


def check_export(values: Mapping[str, str]) -> str:
    """Say what is wrong with the path of an export."""
    typed = values["path"].strip()
    if not typed:
        return "Give the name of a file."
    if typed.endswith(os.sep):
        return f"{typed} is a folder: add the name of a file."
    try:
        check_writable(export_path(values), force=True)
    except WriteError as error:
        text = f"{error}."
        return text[0].upper() + text[1:]
    return ""


def export_path(values: Mapping[str, str]) -> Path:
    """Return the file to write; a name without an ending gets the one of its format."""
    path = expanded(values["path"].strip()).absolute()
    ending = ".json" if values["format"] == "json" else ".md"
    if os.path.exists(path) and not os.path.isfile(path):
        return path
    if not path.suffix or (path.suffix in (".json", ".md") and path.suffix != ending):
        path = path.with_suffix(ending)
    return path


def slug(title: str) -> str:
    """Return a plain file name for a title: letters, digits and hyphens only."""
    words = re.findall(r"\w+", one_line(title).casefold())
    return "-".join(words)[:60].strip("-_") or "plan"
