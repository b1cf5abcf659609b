"""A request as the model's chat template wants it, in tokens: standing instructions first, to be reused."""

from __future__ import annotations

from typing import Protocol

SYSTEM = "SWARMTUIxSYSTEM"
PROMPT = "SWARMTUIxPROMPT"
"""Stand-ins for the two texts: the template is rendered around them, so that nothing in the texts is ever read as
template or as special tokens."""


class TemplateVocabulary(Protocol):
    """What is needed of the model's tokens."""

    add_start: bool
    start: int

    @property
    def end(self) -> int: ...
    def tokens(self, text: str) -> list[int]: ...
    def template_tokens(self, text: str) -> list[int]: ...
    def text_of(self, token: int) -> str: ...


class Chat:
    """Turns (system, prompt) into (prefix tokens, further tokens)."""

    def __init__(self, template: str, vocabulary: TemplateVocabulary) -> None:
        self._vocabulary = vocabulary
        self.notices: list[str] = []
        self._parts = ("", "\n\n", "\n\n")
        if not template:
            self.notices.append("the model has no chat template: it's used by plain completion")
            return
        # Joined in one message where the template knows no system role.
        for joined in (False, True):
            text = self._render(template, joined)
            if text is not None:
                before, rest = text.split(SYSTEM)
                between, after = rest.split(PROMPT)
                self._parts = (before, between, after)
                break
        else:
            self.notices.append("the model's chat template can't be used: it's used by plain completion")

    def tokens(self, system: str, prompt: str) -> tuple[list[int], list[int]]:
        """The tokens that all requests with these instructions share, and the rest."""
        before, between, after = self._parts
        words = self._vocabulary
        start = [words.start] if words.add_start else []
        head = words.template_tokens(before)
        if start and head[:1] == start:
            start = []
        prefix = start + head + words.tokens(system.strip() or "You help.") + words.template_tokens(between)
        return prefix, words.tokens(prompt.strip()) + words.template_tokens(after)

    def raw(self, text: str) -> list[int]:
        """A text by itself, as it would stand at the start of a document."""
        words = self._vocabulary
        return ([words.start] if words.add_start else []) + words.tokens(text)

    def _render(self, template: str, joined: bool) -> str | None:
        """The template around the stand-ins; None if it doesn't work that way."""
        from llama_cpp.llama_chat_format import Jinja2ChatFormatter

        words = self._vocabulary
        messages = (
            [{"role": "user", "content": f"{SYSTEM}\n\n{PROMPT}"}]
            if joined
            else [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]
        )
        try:
            formatter = Jinja2ChatFormatter(template, words.text_of(words.end), words.text_of(words.start))
            text = str(formatter(messages=messages, enable_thinking=False).prompt)  # type: ignore[arg-type]
        except Exception:
            # The template is a program that came with the file: whatever it raises means that it can't be used.
            return None
        good = text.count(SYSTEM) == 1 and text.count(PROMPT) == 1 and text.index(SYSTEM) < text.index(PROMPT)
        return text if good else None
