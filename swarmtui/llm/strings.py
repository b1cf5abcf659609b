"""Reading text out of the bytes that a model samples, one token at a time, never trusting them."""

from __future__ import annotations

import codecs
import unicodedata

ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "", "f": "", "n": "\n", "r": "", "t": "\t"}


def clean(text: str) -> str:
    """Without control characters; line breaks and tabs stay."""
    kept = "".join(each for each in text if each in "\n\t" or unicodedata.category(each) not in ("Cc", "Cs"))
    return kept.replace("\N{REPLACEMENT CHARACTER}", "")


class Reader:
    """Collects the inside of a JSON string (`quoted`) or free text; byte-wise, as tokens may split a character.

    `text` is what was read so far, without control characters; `ended` turns true at the closing quote (or a line
    break, in a single line, or at `most` characters).
    """

    def __init__(self, most: int, *, quoted: bool = True, single_line: bool = False) -> None:
        self.text = ""
        self.ended = False
        self.full = False
        """The limit ended it, not the model."""
        self._most = most
        self._quoted = quoted
        self._single_line = single_line
        self._escape = ""
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")

    def copy(self) -> Reader:
        """A second reader that stands where this one stands (to try a token)."""
        twin = Reader(self._most, quoted=self._quoted, single_line=self._single_line)
        twin.text, twin.ended, twin.full, twin._escape = self.text, self.ended, self.full, self._escape
        twin._bytes.setstate(self._bytes.getstate())
        return twin

    def feed(self, piece: bytes) -> str:
        """Take a token's bytes; returns the part of them that counts (up to the end, as sampled)."""
        counted = ""
        for each in self._bytes.decode(piece):
            if self.ended:
                break
            self._take(each)
            if not self.ended or self.full:
                counted += each
        return counted

    def _take(self, char: str) -> None:
        if self._escape:
            self._escaped(char)
        elif self._quoted and char == '"':
            self.ended = True
        elif self._quoted and char == "\\":
            self._escape = char
        elif char == "\n" and self._single_line:
            # Leading line breaks are noise, later ones the end.
            self.ended = bool(self.text.strip())
        else:
            self._add(char)

    def _escaped(self, char: str) -> None:
        self._escape += char
        if self._escape[1] == "u":
            if len(self._escape) == 6 or (len(self._escape) > 2 and char not in "0123456789abcdefABCDEF"):
                digits, self._escape = self._escape[2:], ""
                try:
                    self._add(chr(int(digits, 16)))
                except ValueError:
                    # No four hex digits: what stands there, taken as it is.
                    self._add(digits.rstrip('"'))
                    self.ended = self.ended or char == '"'
            return
        self._escape = ""
        plain = ESCAPES.get(char, char)
        if plain == "\n" and self._single_line:
            plain = " "
        self._add(plain)

    def _add(self, text: str) -> None:
        room = self._most - len(self.text)
        text = clean(text)
        self.text += text[:room]
        if self.text.endswith("\n\n\n\n"):
            # Nothing but blank lines follows: a model that has lost its way.
            self.ended = True
        if len(self.text) >= self._most:
            self.ended = self.full = True


def shorten(text: str) -> str:
    """Cut at the last blank of a text that a limit ended, if there's one near its end."""
    at = max(text.rfind(" "), text.rfind("\n"))
    return text[:at].rstrip(" ,;:-") if at > len(text) * 3 // 4 else text
