"""huggingface_hub, which speaks to the hub: it knows the API, finds a person's token and follows the hub's redirects.

It's an optional extra (`get`). No message here repeats a header or an address that the hub redirects to: they may
hold keys.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from swarmtui.files import reason_of
from swarmtui.llm.model import ModelError

INSTALL = "pip install 'swarmtui[get]' (in a checkout: .venv/bin/pip install 'huggingface_hub>=2,<3')"
SILENT = 100
"""Above all of logging's levels."""


@contextmanager
def library() -> Iterator[Any]:
    """huggingface_hub, silent.

    Raises:
        ModelError: it isn't installed.
    """
    try:
        import huggingface_hub
        from huggingface_hub.utils import logging
    except ImportError:
        raise ModelError("huggingface_hub isn't installed", INSTALL) from None
    # It logs the addresses that it's redirected to, which are signed.
    logging.get_logger("huggingface_hub").disabled = True
    logging.set_verbosity(SILENT)
    logging.get_logger("huggingface_hub.file_download").disabled = True
    yield huggingface_hub


@contextmanager
def explained(name: str, folder: Path | None = None) -> Iterator[None]:
    """Turn what the library, the network and the disk raise into a line for people."""
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        raise _in_words(error, name, folder) from None


def _in_words(error: Exception, name: str, folder: Path | None) -> ModelError:
    import httpx2
    from huggingface_hub import errors

    again = "the same command goes on from what there is"
    if isinstance(error, errors.GatedRepoError):
        return ModelError(
            f"{name} is for those who accept its terms",
            f"accept them at https://huggingface.co/{name}, then log in with `hf auth login` or set HF_TOKEN",
        )
    if isinstance(error, errors.RepositoryNotFoundError):
        return ModelError(
            f"there is no repository {name}, or not for you",
            "check the name; if it's private, log in with `hf auth login` or set HF_TOKEN",
        )
    if isinstance(error, errors.OfflineModeIsEnabled):
        return ModelError("HF_HUB_OFFLINE says that the hub isn't to be asked", "unset it")
    if isinstance(error, errors.HfHubHTTPError):
        status = error.response.status_code
        if status in (401, 403):
            return ModelError(f"the hub refuses {name} ({status})", "log in with `hf auth login` or set HF_TOKEN")
        return ModelError(f"the hub answered {status} for {name}", "try again later: " + again)
    if isinstance(error, httpx2.HTTPError | ConnectionError | errors.FileMetadataError):
        return ModelError("the hub can't be reached", f"check the network (HF_ENDPOINT, proxies): {again}")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ModelError(f"the disk of {folder} is full", f"free some space: {again}")
    if isinstance(error, OSError) and error.errno:
        return ModelError(f"{folder} can't be written: {reason_of(error)}", "set llm.folder to another folder")
    if isinstance(error, OSError):
        # The library's word for a transfer that ended early.
        return ModelError(f"the transfer of {name} broke off", f"try again: {again}")
    return ModelError(f"{name} couldn't be got: {type(error).__name__}", "please report this")
