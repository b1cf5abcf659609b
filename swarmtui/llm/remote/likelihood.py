"""Reading likelihoods from a server, where it offers a way. Three are tried when it's met; each must first show that
its figures make sense, since servers that ignore a field or shift the figures by a token exist.

forced: llama.cpp's servers (llama-server, llama_cpp.server). The continuation is *written* under a grammar that allows
nothing else, its own tokens made likely so that it's cut into the usual ones, and the log probabilities that come back
are those before grammar and bias. The prefix is read once, whatever comes after it.

echo: the completions API as OpenAI had it (vLLM and others): the prompt comes back with the log probability of each of
its tokens.

none: everything else (also Ollama). Scorers then ask for written marks.
"""

from __future__ import annotations

import json
from typing import Any, Literal, TypeAlias

from swarmtui.llm.model import ModelError
from swarmtui.llm.remote.http import EndpointError, Line

Way: TypeAlias = Literal["forced", "echo", "none"]
BIAS = 30.0
"""Added to the logits of the continuation's own tokens: more than a model's preferences differ, far less than
overflows."""
SENSE = 4.0
"""Nats per token by which a sentence's third coming has to be likelier than odd words, or a way's figures mean
nothing. (The bundled model: 10.)"""
SURE = -2.0
"""It's likelier than this by any model (the bundled one: -0.5); figures shifted by a token give about -12."""
_SENTENCE = "The red fox sleeps by the river."
_TWICE = f"{_SENTENCE} {_SENTENCE} The red fox"
_LIKELY, _ODD = " sleeps by the river.", " lamp of two chairs"

_OF_LLAMA_CPP_PYTHON = "/extras/tokenize"
NO_LIKELIHOODS = "this server offers no likelihoods"


class Likelihoods:
    """How to read them from one server."""

    def __init__(self, line: Line, model: str) -> None:
        self._line = line
        self._model = model
        self._tokenise: tuple[str, str] = ("", "")
        """Where texts become tokens, and what the text is called there."""
        self.way: Way = "none"

    @property
    def by_llama_cpp_python(self) -> bool:
        """Whether the way is one that only llama_cpp.server has."""
        return self._tokenise[0].endswith(_OF_LLAMA_CPP_PYTHON)

    async def find_way(self) -> Way:
        """Try the ways; what the server can't do is no error. Connection troubles are.

        Raises:
            EndpointError: the server can't be reached any more.
        """
        root = self._line.address.root
        ways: list[tuple[Way, tuple[str, str]]] = [
            ("forced", (f"{root}/tokenize", "content")),
            ("forced", (f"{root}{_OF_LLAMA_CPP_PYTHON}", "input")),
            ("echo", ("", "")),
        ]
        for way, where in ways:
            self.way, self._tokenise = way, where
            try:
                good, bad = await self.mean(_TWICE, _LIKELY), await self.mean(_TWICE, _ODD)
            except EndpointError as error:
                if not error.status and error.again:
                    raise
                continue
            except ModelError:
                continue
            if good - bad >= SENSE and SURE < good < 0:
                return way
        self.way, self._tokenise = "none", ("", "")
        return self.way

    async def mean(self, prefix: str, continuation: str) -> float:
        """Mean log probability per token of a continuation.

        Raises:
            ModelError: the server didn't say it.
        """
        if self.way == "forced":
            found = await self._forced(prefix, continuation)
        elif self.way == "echo":
            found = await self._echoed(prefix, continuation)
        else:
            raise ModelError(NO_LIKELIHOODS)
        if not found:
            raise ModelError("the server gave no likelihoods for a text")
        return sum(found) / len(found)

    async def _forced(self, prefix: str, continuation: str) -> list[float]:
        where, name = self._tokenise
        answer = await self._line.post(where, {name: continuation, "add_special": False, "model": self._model})
        tokens = answer.get("tokens") if isinstance(answer, dict) else None
        if not isinstance(tokens, list) or not tokens or not all(isinstance(each, int) for each in tokens):
            raise ModelError("the server doesn't tell a text's tokens")
        body = {
            "model": self._model,
            "prompt": prefix,
            "grammar": f"root ::= {json.dumps(continuation, ensure_ascii=False)}",
            "logit_bias": {str(token): BIAS for token in tokens},
            "logprobs": 1,
            "temperature": 0.0,
            "max_tokens": len(continuation.encode()) + 1,
            "cache_prompt": True,
        }
        choice = _choice(await self._line.post(f"{self._line.address.base}/completions", body))
        if choice.get("text") != continuation:
            raise ModelError("the server doesn't keep to a grammar")
        return _figures(choice.get("logprobs"), continuation)

    async def _echoed(self, prefix: str, continuation: str) -> list[float]:
        body = {
            "model": self._model,
            "prompt": prefix + continuation,
            "echo": True,
            "logprobs": 1,
            "temperature": 0.0,
            "max_tokens": 1,
        }
        choice = _choice(await self._line.post(f"{self._line.address.base}/completions", body))
        logprobs = choice.get("logprobs")
        if not isinstance(logprobs, dict):
            raise ModelError("the server gives no likelihoods of a prompt")
        offsets, values = logprobs.get("text_offset"), logprobs.get("token_logprobs")
        if not isinstance(offsets, list) or not isinstance(values, list) or len(offsets) != len(values):
            raise ModelError("the server gives no likelihoods of a prompt")
        ends = [*offsets[1:], len(prefix) + len(continuation) + 1]
        inside = [
            value
            for start, end, value in zip(offsets, ends, values, strict=True)
            # A token that begins before the boundary and ends behind it belongs to the continuation.
            if isinstance(start, int) and start < len(prefix) + len(continuation) and end > len(prefix)
        ]
        return [float(value) for value in inside if isinstance(value, int | float)]


def _choice(answer: Any) -> dict[str, Any]:
    try:
        choice = answer["choices"][0]
    except (LookupError, TypeError):
        choice = None
    if not isinstance(choice, dict):
        raise ModelError("the server's answer has no text in it")
    return choice


def _figures(logprobs: Any, text: str) -> list[float]:
    """The log probabilities of the tokens that make up a text, whichever form the server has for them."""
    if not isinstance(logprobs, dict):
        return []
    content = logprobs.get("content")
    if isinstance(content, list):
        items = [each for each in content if isinstance(each, dict)]
        # The token that ends the answer has no bytes.
        found = [each.get("logprob") for each in items if each.get("bytes") or each.get("token")]
    else:
        values = logprobs.get("token_logprobs")
        found = values if isinstance(values, list) else []
    if len(found) > len(text.encode()):
        return []
    return [float(each) for each in found if isinstance(each, int | float)]
