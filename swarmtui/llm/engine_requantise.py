"""Writes a model with another quantisation, in a process of its own.

Started as `python -m swarmtui.llm.engine_requantise IN OUT TYPE`. What llama.cpp prints goes to stderr. Ends with 0 if
the file is whole and on disk.
"""

from __future__ import annotations

import ctypes
import os
import sys

import llama_cpp

from swarmtui.llm.machine import physical_cores


def requantise(source: str, target: str, kind: str) -> int:
    """Write `target`; returns llama.cpp's code, 0 for success."""
    params = llama_cpp.llama_model_quantize_default_params()
    params.ftype = getattr(llama_cpp, f"LLAMA_FTYPE_MOSTLY_{kind}")
    params.allow_requantize = True
    params.nthread = physical_cores()
    code = int(llama_cpp.llama_model_quantize(os.fsencode(source), os.fsencode(target), ctypes.byref(params)))
    if code == 0:
        with open(target, "rb") as file:
            os.fsync(file.fileno())
    return code


def main() -> int:
    """Do it with the command line's arguments."""
    llama_cpp.llama_backend_init()
    return requantise(*sys.argv[1:4])


if __name__ == "__main__":
    sys.exit(main())
