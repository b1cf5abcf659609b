"""A Hugging Face hub on loopback: the API, the files with their ETags and ranges, the redirect to a store elsewhere."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SHA = "0123456789abcdef0123456789abcdef01234567"


class Hub:
    """What the server has, and what it was asked."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, bytes]] = {}
        self.gated: set[str] = set()
        self.wrong_hash = False
        self.break_after = 0
        """Bytes after which a transfer is cut off, once; 0: never."""
        self.hold_after = 0
        """Bytes after which a transfer waits for `go_on`; 0: never."""
        self.held, self.go_on = threading.Event(), threading.Event()
        self.elsewhere = True
        """Files lie in a store of another name, as on the real hub."""
        self.ranges = True
        self.failing = 0
        """Status that everything is answered with; 0: none."""
        self.asked: list[tuple[str, str, dict[str, str]]] = []
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def transfers(self) -> list[dict[str, str]]:
        """The headers of each request for a file's content."""
        return [headers for method, path, headers in self.asked if method == "GET" and path.startswith("/store/")]


class _Handler(BaseHTTPRequestHandler):
    hub: Hub

    def log_message(self, *args: object) -> None:
        pass

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def _answer(self) -> None:
        path = self.path.partition("?")[0]
        self.hub.asked.append((self.command, path, {k.lower(): v for k, v in self.headers.items()}))
        if self.hub.failing:
            self._say(self.hub.failing)
        elif found := re.fullmatch(r"/api/models/([^/]+/[^/]+)", path):
            self._about(found[1])
        elif found := re.fullmatch(rf"/([^/]+/[^/]+)/resolve/{SHA}/(.+)", path):
            self._resolve(found[1], found[2])
        elif found := re.fullmatch(r"/store/([^/]+/[^/]+)/(.+)", path):
            self._content(self.hub.repositories[found[1]][found[2]])
        else:
            self._say(404)

    def _say(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _about(self, name: str) -> None:
        if name not in self.hub.repositories:
            self._say(401, b"{}", X_Error_Code="RepoNotFound")
            return
        files = [
            {
                "rfilename": file,
                "size": len(data),
                "lfs": {"size": len(data), "sha256": self._hash(data), "pointerSize": 9},
            }
            if file.endswith(".gguf")
            else {"rfilename": file, "size": len(data)}
            for file, data in self.hub.repositories[name].items()
        ]
        self._say(
            200, json.dumps({"id": name, "sha": SHA, "siblings": files}).encode(), Content_Type="application/json"
        )

    def _hash(self, data: bytes) -> str:
        return "0" * 64 if self.hub.wrong_hash else hashlib.sha256(data).hexdigest()

    def _resolve(self, name: str, file: str) -> None:
        if name in self.hub.gated:
            self._say(403, X_Error_Code="GatedRepo")
            return
        data = self.hub.repositories[name][file]
        about = {"X-Repo-Commit": SHA, "X-Linked-Size": str(len(data)), "X-Linked-ETag": f'"{self._hash(data)}"'}
        host = "localhost" if self.hub.elsewhere else "127.0.0.1"
        self._say(
            302, Location=f"http://{host}:{self.hub.port}/store/{name}/{file}?signature=secret-of-the-store", **about
        )

    def _content(self, data: bytes) -> None:
        start = 0
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if wanted and self.hub.ranges:
            start = int(wanted[1])
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/{len(data)}")
        else:
            self.send_response(200)
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        stop = self.hub.break_after or self.hub.hold_after
        if stop and start < stop:
            self.wfile.write(data[start:stop])
            self.wfile.flush()
            if self.hub.break_after:
                self.hub.break_after = 0
                self.close_connection = True
                self.connection.shutdown(2)
                return
            self.hub.held.set()
            self.hub.go_on.wait(60)
            start = stop
        try:
            self.wfile.write(data[start:])
        except OSError:
            pass  # the other side has gone


@contextmanager
def running():
    """A hub; ended on the way out."""
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    hub.port = server.server_port
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield hub
    finally:
        hub.go_on.set()
        server.shutdown()
        thread.join()
        server.server_close()
