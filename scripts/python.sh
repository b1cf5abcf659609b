#!/bin/sh
# Prints the path of a Python that is new enough; else one line that says what to install, and exit 1.
# PYTHON=… chooses one.
set -u
probe='import sys; sys.exit(sys.version_info < (3, 11))'
for candidate in ${PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
    if "$candidate" -c "$probe" >/dev/null 2>&1; then
        "$candidate" -c 'import sys; print(sys.executable)'
        exit 0
    fi
done
echo "swarmtui needs Python 3.11 or newer, and none was found: install one (Debian, Ubuntu: apt install python3 python3-venv python3-dev; macOS: brew install python@3.12), or name it with PYTHON=…" >&2
exit 1
