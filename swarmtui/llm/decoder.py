"""From logits to text: a walk through a schema (or free text) turned into tokens to feed. Knows no llama.cpp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from swarmtui.llm import grammar
from swarmtui.llm.grammar import Choice, Filler, Fixed, Number, Text, Walk
from swarmtui.llm.sampler import Logits, Sampler
from swarmtui.llm.strings import Reader, shorten

TRIES = 8
"""How often a token that can't stand is drawn again before the easy way out is taken."""
FREE_TEXT = 32_000
"""Characters of an answer without a schema."""


class Vocabulary(Protocol):
    """What a decoder needs to know of a model's tokens."""

    def tokens(self, text: str) -> list[int]:
        """Tokens of text that goes on after other text (no special tokens are read out of it)."""
        ...

    def piece(self, token: int) -> bytes:
        """The bytes that a token stands for; b'' for a control token."""
        ...


class Decoder:
    """One answer in the making. Feed the model what `take_tokens` gives, hand the last one's logits to `sample`.

    Never asks for more than `max_tokens` tokens: when they're used up the value is closed as the schema allows and
    `cut` is set.
    """

    def __init__(
        self, vocabulary: Vocabulary, sampler: Sampler, schema: dict[str, Any] | None, max_tokens: int
    ) -> None:
        self._vocabulary = vocabulary
        self._sampler = sampler
        self._max_tokens = max_tokens
        self._queue: list[int] = []
        self._pending = ""
        self._stream: list[str] = []
        self._ask: Choice | Text | Number | None = None
        self._reader = Reader(0)
        self._digits = ""
        self._options: dict[int, list[int]] = {}
        self._at = 0
        self.count = 0
        """Tokens written, fixed ones included."""
        self.done = False
        self.cut = False
        self.value: Any = None
        self._filler = Filler()
        self._walk: Walk | None = None
        if schema is None:
            self._reader = Reader(FREE_TEXT, quoted=False)
        else:
            grammar.check(schema)
            self._walk = self._filler.fill(schema)
            self._advance(None)

    @property
    def text(self) -> str:
        """The whole answer, once done: JSON in one line, or the free text."""
        return self._reader.text.strip() if self._walk is None else grammar.dumps(self.value)

    def take_tokens(self) -> list[int]:
        """The tokens to feed next, before the next `sample`."""
        tokens, self._queue = self._queue, []
        return tokens

    def take_stream(self) -> str:
        """The text that came since the last call (of a value that's cut, it may hold a bit more than the answer)."""
        text, self._stream = "".join(self._stream), []
        return text

    def sample(self, logits: Logits) -> None:
        """Go on by the logits that follow the last token fed."""
        while not self.done and not self._queue:
            self._step(logits)

    def _step(self, logits: Logits) -> None:
        if self.count >= self._max_tokens:
            self._close()
        elif self._walk is None:
            self._free_text(logits)
        elif isinstance(self._ask, Text):
            self._string(logits, self._ask)
        elif isinstance(self._ask, Number):
            self._number(logits, self._ask)
        else:
            self._choice(logits)

    def _advance(self, answer: Any) -> None:
        """Walk on to the next thing that needs sampling."""
        assert self._walk is not None
        try:
            while True:
                ask = self._walk.send(answer)
                answer = None
                if not isinstance(ask, Fixed):
                    break
                self._pending += ask.text
                self._stream.append(ask.text)
        except StopIteration as end:
            self.value, self.done, self._ask = end.value, True, None
            return
        self._ask = ask
        if isinstance(ask, Choice):
            self._options = dict(enumerate(self._vocabulary.tokens(self._pending + each) for each in ask.options))
            self._pending = ""
            self._at = 0
            self._narrow()
            return
        self._digits = ""
        if isinstance(ask, Text):
            self._reader = Reader(ask.most, single_line=ask.single_line)
        pending, self._pending = self._pending, ""
        if not self._push(self._vocabulary.tokens(pending)):
            self._close()
        elif isinstance(ask, Text) and ask.most == 0:
            self._finish_text()

    def _push(self, tokens: Sequence[int]) -> bool:
        """Queue tokens, if the budget has them; else False."""
        if self.count + len(tokens) > self._max_tokens:
            return False
        self._queue += tokens
        self.count += len(tokens)
        return True

    def _close(self) -> None:
        """The budget has ended."""
        self.cut = True
        self.count -= len(self._queue)
        self._queue = []
        if self._walk is None:
            self.done = True
            return
        self._filler.cut = True
        self._advance(shorten(self._reader.text) if isinstance(self._ask, Text) else None)

    # Free text and strings

    def _free_text(self, logits: Logits) -> None:
        token = self._sampler.pick(logits)
        piece = self._vocabulary.piece(token)
        before = len(self._reader.text)
        self._reader.feed(piece)
        self._stream.append(self._reader.text[before:])
        self._sampler.accept(token)
        if not piece or self._reader.ended:
            self.done, self.cut = True, self._reader.full
        elif not self._push([token]):
            self._close()

    def _string(self, logits: Logits, ask: Text) -> None:
        banned: set[int] = set()
        while True:
            token = self._sampler.pick(logits, banned)
            piece = self._vocabulary.piece(token)
            reader = self._reader.copy()
            counted = reader.feed(piece)
            ended = not piece or reader.ended
            short = len(reader.text) < ask.least or (ask.least > 0 and not reader.text.strip())
            if not ended or not short or len(banned) >= TRIES:
                break
            banned.add(token)
        grown = reader.text[len(self._reader.text) :]
        self._stream.append(grammar.dumps(grown)[1:-1])
        self._reader = reader
        if ended:
            self._pending = counted
            self._finish_text()
            return
        self._sampler.accept(token)
        if not self._push([token]):
            self._close()

    def _finish_text(self) -> None:
        self._pending += '"'
        self._stream.append('"')
        text = self._reader.text
        self._advance(shorten(text) if self._reader.full else text.strip() if text.strip() else text)

    # Numbers and choices

    def _number(self, logits: Logits, ask: Number) -> None:
        """Write one more digit, if one must or may stand here and the model wants it."""
        digits = {tokens[0]: i for i in range(10) if len(tokens := self._vocabulary.tokens(str(i))) == 1}
        allowed = [token for token, digit in digits.items() if self._digits != "0" and self._fits(digit, ask)]
        must = not self._digits or int(self._digits) < ask.least
        token = self._sampler.among(logits, allowed) if must and allowed else self._sampler.pick(logits)
        if token in allowed:
            digit = str(digits[token])
            self._digits += digit
            self._stream.append(digit)
            if not self._push([token]):
                self._close()
            return
        if not self._digits:
            # A vocabulary without plain digits.
            self._digits = self._pending = str(ask.least)
            self._stream.append(self._digits)
        self._advance(int(self._digits))

    def _fits(self, digit: int, ask: Number) -> bool:
        """Whether the number can still come to lie in its range with this digit next."""
        low = high = int(f"{self._digits}{digit}")
        while high < ask.least and low:
            low, high = low * 10, high * 10 + 9
        return low <= ask.most and high >= ask.least

    def _choice(self, logits: Logits) -> None:
        """Take one step down the tree of the options' tokens."""
        ahead = {tokens[self._at]: index for index, tokens in self._options.items() if len(tokens) > self._at}
        complete = [index for index, tokens in self._options.items() if len(tokens) == self._at]
        if complete:
            # One option is the start of another: does the model go on with the longer one, or with something else?
            token = self._sampler.pick(logits)
            if token not in ahead:
                self._chosen(complete[0])
                return
        else:
            token = self._sampler.among(logits, list(ahead))
        self._options = {i: each for i, each in self._options.items() if each[self._at : self._at + 1] == [token]}
        self._narrow()

    def _narrow(self) -> None:
        """Queue the tokens on which all options left agree; done if there's one."""
        options = list(self._options.values())
        shared = len(options[0])
        for other in options[1:]:
            agree = 0
            while agree < min(shared, len(other)) and other[agree] == options[0][agree]:
                agree += 1
            shared = agree
        if not self._push(options[0][self._at : shared]):
            self._close()
            return
        self._at = shared
        if len(options) == 1:
            self._chosen(next(iter(self._options)))

    def _chosen(self, index: int) -> None:
        assert isinstance(self._ask, Choice)
        self._stream.append(self._ask.options[index])
        self._advance(index)
