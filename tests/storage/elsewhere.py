"""Stores for tests, on the loopback: moto's server of S3, a proxy before it that cuts and stalls, and small servers of
the web."""

from __future__ import annotations

import contextlib
import datetime
import functools
import io
import ipaddress
import os
import re
import socket
import ssl
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

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


@functools.cache
def _client(port: int):
    return boto3.client(
        "s3",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="us-east-1",
        aws_access_key_id=KEYS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=KEYS["AWS_SECRET_ACCESS_KEY"],
    )


@dataclass
class Bucket:
    """A bucket of its own for one test. port: of the server."""

    port: int
    name: str = field(default_factory=lambda: f"bucket-{uuid.uuid4().hex[:12]}")

    def __post_init__(self) -> None:
        self.client = _client(self.port)
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


THROTTLED = b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


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
        """From now on answers are ``cut`` or ``stall`` after so many bytes, or are a 503 (``throttle``).

        times: so many answers; None: all.
        """
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
                client.sendall(THROTTLED if kind == "throttle" else answer[: max(0, after - sent[0])])
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


class Server:
    """A server of the web in a thread: `answer` gives status, headers and content for a path, its query and headers.

    Attributes:
        url: where it listens. requests, bodies: (path, headers) so far, and what was sent with them.
        connections: made so far.
    """

    def __init__(
        self,
        answer: Callable[[str, dict[str, str], Mapping[str, str]], tuple[int, dict, bytes]],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.requests: list[tuple[str, Mapping[str, str]]] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        served = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                served.connections += 1
                super().setup()

            def do_GET(self) -> None:
                served.bodies.append(self.rfile.read(int(self.headers.get("Content-Length") or 0)))
                parts = urlsplit(self.path)
                served.requests.append((unquote(parts.path), self.headers))
                status, headers, content = answer(unquote(parts.path), dict(parse_qsl(parts.query)), self.headers)
                self.send_response(status)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if self.command != "HEAD":
                    with contextlib.suppress(OSError):
                        self.wfile.write(content)

            do_HEAD = do_POST = do_GET

            def log_message(self, *args: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_port
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def certificate(folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """What a server on the loopback shows, also as cdn.example, and what a client needs to believe it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost"), x509.DNSName("cdn.example")]
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    shown = folder / "certificate.pem"
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    shown.write_bytes(secret + made.public_bytes(Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(shown)
    return server, ssl.create_default_context(cadata=made.public_bytes(Encoding.PEM).decode())


def part_of(content: bytes, headers: Mapping[str, str]) -> tuple[int, dict[str, str], bytes]:
    """The answer to a request for a file, or the part of it that the header ``Range`` names."""
    span = re.fullmatch(r"bytes=(\d+)-(\d*)", headers.get("Range", ""))
    if span is None:
        return 200, {"Accept-Ranges": "bytes"}, content
    low, high = int(span[1]), min(int(span[2] or len(content)), len(content) - 1)
    return 206, {"Content-Range": f"bytes {low}-{high}/{len(content)}"}, content[low : high + 1]


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
