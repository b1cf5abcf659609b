"""Addresses of model servers, as people write them: `http://host:port/v1#model`."""

from __future__ import annotations

import ipaddress
from urllib.parse import unquote, urlsplit

import msgspec

from swarmtui.llm.model import ModelError

EXAMPLE = "http://127.0.0.1:8080/v1"
MAX_ADDRESS = 500
_SCHEMES = ("http://", "https://")


class Address(msgspec.Struct, frozen=True):
    """Where a model server is, and which of its models is meant."""

    base: str
    """The API's address without a slash at its end: 'http://127.0.0.1:8080/v1'."""
    model: str
    """The model's name there; '' for the only one."""
    host: str
    secure: bool
    """https."""
    here: bool
    """On this machine."""

    @property
    def place(self) -> str:
        """Host and port, for messages."""
        return urlsplit(self.base).netloc

    @property
    def root(self) -> str:
        """The server itself, where llama.cpp's servers offer more than the API."""
        return self.base.removesuffix("/v1")

    @property
    def leaves(self) -> str:
        """What a person should know about where their texts go; '' if they stay here."""
        if self.here:
            return ""
        how = "encrypted" if self.secure else "in the clear: whoever sees that network can read them"
        return f"Goals, drafts and results leave this machine: they're sent to {self.host}, {how}."


def is_address(spec: str) -> bool:
    """Whether a model's name means a server."""
    return spec.strip().lower().startswith(_SCHEMES)


def parse(spec: str) -> Address:
    """Read an address.

    Raises:
        ModelError: it's none; with what one looks like.
    """
    spec = spec.strip()
    remedy = f"write it like {EXAMPLE} or {EXAMPLE}#model"
    try:
        parts = urlsplit(spec)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ModelError(f"that isn't an address of a model server: {error}", remedy) from None
    if not host or not is_address(spec) or len(spec) > MAX_ADDRESS or any(c <= " " for c in spec):
        raise ModelError("that isn't an address of a model server", remedy)
    if parts.username is not None or parts.password is not None:
        # Addresses are shown on the screen and stand in the log.
        raise ModelError(
            f"a password in the address of {host} would be seen by others",
            "put the key into the environment variable that llm.key_variable names",
        )
    if parts.query:
        raise ModelError(f"the address of {host} has a part with '?', which no model server uses", remedy)
    shown = f"[{host}]" if ":" in host else host
    path = parts.path.rstrip("/") or "/v1"
    scheme = parts.scheme.lower()
    base = f"{scheme}://{shown}{f':{port}' if port is not None else ''}{path}"
    return Address(base, unquote(parts.fragment), host, scheme == "https", _is_here(host))


def _is_here(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host.partition("%")[0]).is_loopback
    except ValueError:
        return False
