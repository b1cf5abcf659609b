"""The two calm sets of colours, for dark and for light terminals."""

from __future__ import annotations

from collections.abc import Mapping

from textual.theme import Theme

DARK = Theme(
    name="swarmtui-dark",
    dark=True,
    primary="#7aa7e0",
    secondary="#7fc1b5",
    accent="#e3b566",
    success="#8fc27a",
    warning="#e09a5b",
    error="#e07a7a",
    foreground="#cdd3dd",
    background="#12161d",
    surface="#181d26",
    panel="#222936",
    variables={
        "border": "#e3b566",
        "border-blurred": "#364053",
        "text-muted": "#8a95a8",
        "text-disabled": "#5b6679",
        "line-cursor": "#263043",
        "line-cursor-blurred": "#1b212c",
        "scrollbar": "#364053",
        "scrollbar-hover": "#4a566d",
        "scrollbar-active": "#e3b566",
        "scrollbar-background": "#12161d",
    },
)

LIGHT = Theme(
    name="swarmtui-light",
    dark=False,
    primary="#2f66ad",
    secondary="#1f7a6c",
    accent="#945f00",
    success="#3d7a24",
    warning="#b35309",
    error="#b3373c",
    foreground="#262d38",
    background="#fbfaf7",
    surface="#f3f1ec",
    panel="#e8e5de",
    variables={
        "border": "#945f00",
        "border-blurred": "#c9c5bb",
        "text-muted": "#667080",
        "text-disabled": "#9aa1ac",
        "line-cursor": "#e6e1d3",
        "line-cursor-blurred": "#f1eee6",
        "scrollbar": "#cfcbc1",
        "scrollbar-hover": "#b5b0a5",
        "scrollbar-active": "#945f00",
        "scrollbar-background": "#fbfaf7",
    },
)


def fitting(environment: Mapping[str, str]) -> str:
    """Return the name of the theme that fits the terminal; dark unless COLORFGBG says that its background is light."""
    background = environment.get("COLORFGBG", "").rpartition(";")[2]
    return LIGHT.name if background in ("7", "15") else DARK.name
