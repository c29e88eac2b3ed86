"""Stores for tests: moto's server of S3 on the loopback, and a proxy before it that cuts, stalls and refuses."""

from __future__ import annotations

import contextlib
import io
import os
import re
import socket
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

import boto3
import pyarrow as pa
import pyarrow.parquet as pq

KEYS = {"AWS_ACCESS_KEY_ID": "the-user", "AWS_SECRET_ACCESS_KEY": "the-secret", "AWS_EC2_METADATA_DISABLED": "true"}


@contextlib.contextmanager
def moto_server() -> Iterator[int]:
    """A server of S3 in a process of its own; its port."""
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        port = next(int(match[1]) for line in lines if (match := re.search(r"http://127\.0\.0\.1:(\d+)", line)))
        # a pipe that nobody empties fills up, and then the server waits
        threading.Thread(target=lambda: [None for _ in lines], daemon=True).start()
        yield port
    finally:
        process.terminate()
        process.wait(30)


@dataclass
class Bucket:
    """A bucket of its own for one test. port: of the server."""

    port: int
    name: str = field(default_factory=lambda: f"bucket-{uuid.uuid4().hex[:12]}")

    def __post_init__(self) -> None:
        self.client = boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.port}",
            region_name="us-east-1",
            aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
            aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
        )
        self.client.create_bucket(Bucket=self.name)

    def put(self, key: str, content: pa.Table | bytes, **options: object) -> str:
        """Keep bytes, or a table as parquet; their address."""
        if isinstance(content, pa.Table):
            sink = io.BytesIO()
            pq.write_table(content, sink, **options)
            content = sink.getvalue()
        self.client.put_object(Bucket=self.name, Key=key, Body=content)
        return self.url(key)

    def url(self, key: str = "") -> str:
        return f"s3://{self.name}/{key}".rstrip("/")

    def web(self, key: str) -> str:
        """The address of an object on the web."""
        return f"http://127.0.0.1:{self.port}/{self.name}/{key}"


class Proxy:
    """Passes bytes on to a server, other than where a fault is armed.

    Attributes:
        port: where it listens. connections: made so far. struck: faults so far.
    """

    def __init__(self, target: int) -> None:
        self._target = target
        self._faults: list[tuple[str, int]] = []
        self._for_ever: tuple[str, int] | None = None
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self.connections = self.struck = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def arm(self, kind: str, after: int = 0, times: int | None = None) -> None:
        """From now on answers are ``cut`` or ``stall`` after so many bytes; so many answers, or all."""
        with self._lock:
            self._faults = [(kind, after)] * (times or 0)
            self._for_ever = (kind, after) if times is None else None

    def heal(self) -> None:
        """No more faults; what stalls goes on stalling."""
        self.arm("", times=0)

    def close(self) -> None:
        self._ended.set()
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while not self._ended.is_set():
                client, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", self._target))
        sent = [0]

        def ask() -> None:
            with contextlib.suppress(OSError):
                while request := client.recv(1 << 16):
                    sent[0] = 0
                    server.sendall(request)
            _end(server)

        threading.Thread(target=ask, daemon=True).start()
        with contextlib.suppress(OSError):
            while answer := server.recv(1 << 16):
                fault = self._fault(sent[0] + len(answer))
                if fault is None:
                    client.sendall(answer)
                    sent[0] += len(answer)
                    continue
                kind, after = fault
                client.sendall(answer[: max(0, after - sent[0])])
                if kind == "stall":
                    self._ended.wait()
                break
        _end(client)
        _end(server)

    def _fault(self, reached: int) -> tuple[str, int] | None:
        with self._lock:
            fault = self._faults[0] if self._faults else self._for_ever
            if fault is None or reached <= fault[1]:
                return None
            self._faults = self._faults[1:]
            self.struck += 1
            return fault


def _end(connection: socket.socket) -> None:
    # closing alone sends nothing while another thread waits in recv
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()


def environment(port: int) -> dict[str, str]:
    """What a process needs to read from a server of S3 on this machine."""
    return {**KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_REGION": "us-east-1"}


def child_environment(port: int, **more: str) -> dict[str, str]:
    """The same for a child process."""
    return {**os.environ, **environment(port), **more}
