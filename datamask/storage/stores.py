"""Schemes, each with the library that speaks to its stores: what is there, and bytes of a file.

pyarrow reads ``s3://``; `datamask.storage.web` reads ``https://``, ``gs://`` and the files of ``hf://``, whose folders
its own library lists. Packages of their own are imported when an address needs them and not before (`EXTRAS`). A call
here may take any time, and comes from `datamask.storage.patience` alone, which decides how often a request is tried.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import importlib
import json
import os
import threading
import time
import types
import urllib.parse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from datamask.errors import InputError
from datamask.storage.address import WEB, Address, harmless
from datamask.storage.patience import Patience
from datamask.storage.web import Answer, StatusError, Web, login_of

EXTRAS = {"hf": ("huggingface_hub", "huggingface_hub"), "gs": ("google.auth", "google-auth")}
"""Extra of the package -> what is imported for it, and the name it is installed by: ``pip install "datamask[hf]"``."""

READ_ONLY = "https://www.googleapis.com/auth/devstorage.read_only"

NEEDED_FOR = {"gs": "addresses of gs:// that not everybody may read"}

MOST_ANSWER = 64 << 20
"""Bytes of one page of a listing: it names a thousand objects."""

YES = ("1", "true", "yes")


@dataclass(frozen=True)
class Entry:
    """What lies in a folder."""

    name: str
    is_folder: bool


class Handle(Protocol):
    """One file, as it was when it was opened.

    Attributes:
        size: bytes. stamp: another one after the file was written anew.
    """

    size: int
    stamp: tuple[int, ...]

    def read_at(self, offset: int, count: int) -> bytes:
        """So many bytes from there; fewer at the end."""


class Store(Protocol):
    """What speaks to the stores of one scheme; raises whatever its library does."""

    def is_folder(self, address: Address) -> bool | None:
        """Whether it is a folder, or a file; None: there is neither."""

    def entries(self, address: Address) -> Sequence[Entry]:
        """What lies in a folder, in no fixed order; nothing where there is none."""

    def open(self, address: Address) -> Handle:
        """A file, of which nothing is read yet."""


# -- pyarrow -----------------------------------------------------------------------------------------------------------


class ArrowStore:
    """Buckets of S3, by pyarrow's file system of them."""

    def __init__(self, system: Any) -> None:
        self._system = system

    def is_folder(self, address: Address) -> bool | None:
        from pyarrow import fs

        kind = self._system.get_file_info(_key(address)).type
        return None if kind == fs.FileType.NotFound else bool(kind == fs.FileType.Directory)

    def entries(self, address: Address) -> Sequence[Entry]:
        from pyarrow import fs

        there = self._system.get_file_info(fs.FileSelector(_key(address), allow_not_found=True))
        return [Entry(info.base_name, info.type == fs.FileType.Directory) for info in there if info.base_name]

    def open(self, address: Address) -> Handle:
        return _ArrowHandle(self._system, _key(address))


def _key(address: Address) -> str:
    return f"{address.host}/{address.path}".rstrip("/")


class _ArrowHandle:
    def __init__(self, system: Any, key: str) -> None:
        self._file = system.open_input_file(key)
        self.size = int(self._file.size())
        facts: Mapping[bytes | str, Any] = self._file.metadata() or {}
        if not facts:
            facts = {"mtime": system.get_file_info(key).mtime_ns}
        self.stamp = _stamp(self.size, facts)

    def read_at(self, offset: int, count: int) -> bytes:
        content: bytes = self._file.read_at(count, offset)
        return content


def _stamp(size: int, facts: Mapping[Any, Any]) -> tuple[int, ...]:
    """Size, and a number that is another one where any of the facts is."""
    text = repr(sorted((str(name), str(value)) for name, value in facts.items()))
    return size, int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


def _s3(options: Mapping[str, str], bucket: str, patience: Patience) -> Store:
    from pyarrow import fs

    endpoint = options.get("endpoint_override") or _first_of("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
    scheme, host = _endpoint(endpoint, options)
    region = options.get("region") or _first_of("AWS_REGION", "AWS_DEFAULT_REGION")
    anonymous = _yes(options.get("anonymous") or _first_of("AWS_NO_SIGN_REQUEST"))
    if region is None:  # the library would ask the machine's cloud for it, wherever it runs
        region = fs.resolve_s3_region(bucket) if host is None else "us-east-1"
    return ArrowStore(
        fs.S3FileSystem(
            region=region,
            anonymous=anonymous,
            endpoint_override=host,
            scheme=scheme,
            connect_timeout=min(patience.seconds, 10.0),
            request_timeout=patience.seconds,
            retry_strategy=fs.AwsStandardS3RetryStrategy(max_attempts=1),
            background_writes=False,
        )
    )


def _endpoint(text: str | None, options: Mapping[str, str]) -> tuple[str, str | None]:
    """Scheme and ``host:port`` of an endpoint, as pyarrow wants them; None: the service's own."""
    scheme, mark, host = (text or "").rpartition("://")
    return options.get("scheme") or (scheme if mark else "https"), host.rstrip("/") or None


def _first_of(*names: str) -> str | None:
    return next((os.environ[name] for name in names if os.environ.get(name)), None)


def _yes(text: str | None) -> bool:
    return (text or "").lower() in YES


# -- Google's own interface --------------------------------------------------------------------------------------------


class CloudStore:
    """Buckets of Google, by requests of its JSON interface.

    pyarrow has a file system of them, too. But asked whether it is closed, its file sends a request of its own and
    waits for the answer with the interpreter's lock in its hands, so that a store that is silent holds up the whole
    process; and it lists no folder that has no object of its own name (both in pyarrow 26).
    """

    def __init__(self, options: Mapping[str, str], host: str, patience: Patience) -> None:
        endpoint = options.get("endpoint_override") or _first_of("STORAGE_EMULATOR_HOST")
        scheme, server = _endpoint(endpoint, options)
        # an emulator has no accounts
        anonymous = _yes(options.get("anonymous") or ("true" if endpoint is not None else None))
        self._objects = f"{scheme}://{server or 'storage.googleapis.com'}/storage/v1/b/{host}/o"
        self._token: Callable[[], str | None] = (lambda: None) if anonymous else _GoogleToken()
        self._web, self._patience = Web(patience), patience

    def is_folder(self, address: Address) -> bool | None:
        try:
            if address.path:
                self._facts(address)
                return False
        except StatusError as error:
            if error.status != 404:
                raise
        try:
            page = self._page(address, maxResults="1")
        except StatusError as error:
            if error.status != 404:
                raise
            return None  # there is no such bucket
        return True if not address.path or page.get("items") or page.get("prefixes") else None

    def entries(self, address: Address) -> Sequence[Entry]:
        listed: list[Entry] = []
        token = None
        deadline = time.monotonic() + self._patience.longest
        while True:
            if time.monotonic() > deadline:  # pages may follow without end
                raise TimeoutError(f"no answer in time: {len(listed):,} entries, and more follow")
            page = self._page(address, **({"pageToken": token} if token else {}))
            names = [(item["name"], False) for item in page.get("items", ())]
            names += [(name.rstrip("/"), True) for name in page.get("prefixes", ())]
            start = len(_folder(address))
            # an object of the folder's own name stands for it where it is empty
            listed += [Entry(name[start:], is_folder) for name, is_folder in names if name[start:]]
            token = page.get("nextPageToken")
            if not token:
                return listed

    def open(self, address: Address) -> Handle:
        facts = self._facts(address)
        place = f"{self._place(address)}?alt=media&generation={facts['generation']}"
        told = {"generation": facts["generation"]}
        return _WebHandle(self._web, place, int(facts["size"]), told, self._authorization)

    def _place(self, address: Address) -> str:
        return f"{self._objects}/{urllib.parse.quote(address.path, safe='')}"

    def _facts(self, address: Address) -> Mapping[str, Any]:
        facts: Mapping[str, Any] = json.loads(self._get(f"{self._place(address)}?fields=size,generation"))
        return facts

    def _page(self, address: Address, **more: str) -> Mapping[str, Any]:
        query = {"prefix": _folder(address), "delimiter": "/", "fields": "items(name),prefixes,nextPageToken", **more}
        page: Mapping[str, Any] = json.loads(self._get(f"{self._objects}?{urllib.parse.urlencode(query)}"))
        return page

    def _get(self, place: str) -> bytes:
        return self._web.get(place, MOST_ANSWER, authorization=self._authorization()).content

    def _authorization(self) -> str | None:
        token = self._token()
        return None if token is None else f"Bearer {token}"


def _folder(address: Address) -> str:
    """What the names of all objects below an address begin with."""
    return f"{address.path}/" if address.path else ""


class _GoogleToken:
    """What stands for the account that the environment names, made anew when it has run out.

    Raises:
        InputError: the package is not installed. PermissionError: there is no account.
    """

    def __init__(self) -> None:
        self._credentials: Any = None
        self._lock = threading.Lock()

    def __call__(self) -> str | None:
        library = _extra("gs")
        requests = importlib.import_module("google.auth.transport.requests")
        with self._lock:
            try:
                if self._credentials is None:
                    self._credentials = library.default(scopes=[READ_ONLY])[0]
                if not self._credentials.valid:
                    self._credentials.refresh(requests.Request())
            except library.exceptions.DefaultCredentialsError as error:
                raise PermissionError(str(error)) from error
            token: str = self._credentials.token
            return token


# -- single files, and the Hugging Face Hub ----------------------------------------------------------------------------


class WebStore:
    """Single files of a web server that gives parts of them."""

    def __init__(self, options: Mapping[str, str], host: str, patience: Patience) -> None:
        self._web = Web(patience)

    def is_folder(self, address: Address) -> bool | None:
        self._facts(address)
        return False

    def entries(self, address: Address) -> Sequence[Entry]:
        raise InputError(f"{address} cannot be listed: an address of {address.scheme}:// names one file")

    def open(self, address: Address) -> Handle:
        size, facts = self._facts(address)
        if size is None:
            raise InputError(f"{address} cannot be read in parts: its server does not tell its size; download it first")
        return _WebHandle(self._web, str(address), size, facts, lambda: login_of(str(address)))

    def _facts(self, address: Address) -> tuple[int | None, Mapping[str, str]]:
        """Size in bytes, None where it is not told, and what the server says of this version of a file."""
        size, facts = None, {}
        login = login_of(str(address))
        with contextlib.suppress(StatusError):  # not every server answers HEAD
            answer = self._web.get(str(address), 0, authorization=login, method="HEAD")
            size, facts = answer.size, _told(answer)
        if size is None:
            answer = self._web.get(str(address), 1, {"Range": "bytes=0-0"}, login)
            size, facts = answer.size, {**facts, **_told(answer)}
        return size, facts


def _told(answer: Answer) -> dict[str, str]:
    names = ("ETag", "Last-Modified", "Content-MD5", "Digest")
    return {name: answer.headers[name] for name in names if answer.headers[name]}


class HubStore:
    """Repositories of the Hugging Face Hub: listed by its library, read as files of the web."""

    def __init__(self, options: Mapping[str, str], host: str, patience: Patience) -> None:
        # read when the package is imported, and by nobody later
        os.environ.setdefault("HF_HUB_DOWNLOAD_TIMEOUT", str(max(1, round(patience.seconds))))
        os.environ.setdefault("HF_HUB_ETAG_TIMEOUT", str(max(1, round(patience.seconds))))
        self._library = _extra("hf")
        self._system = self._library.HfFileSystem(
            skip_instance_cache=True, use_listings_cache=False, endpoint=_first_of("HF_ENDPOINT")
        )
        self._web = Web(patience)

    def is_folder(self, address: Address) -> bool | None:
        try:
            return bool(self._info(address)["type"] == "directory")
        except FileNotFoundError:
            return None

    def entries(self, address: Address) -> Sequence[Entry]:
        try:
            there = self._system.ls(_key(address), detail=True, refresh=True)
        except FileNotFoundError:
            return []
        return [Entry(info["name"].rpartition("/")[2], info["type"] == "directory") for info in there]

    def open(self, address: Address) -> Handle:
        info = self._info(address)
        if info["type"] == "directory":
            raise FileNotFoundError(str(address))
        facts = {"blob": info.get("blob_id")}
        return _WebHandle(self._web, self._system.url(_key(address)), int(info["size"]), facts, self._authorization)

    def _authorization(self) -> str | None:
        headers: Mapping[str, str] = self._library.utils.build_hf_headers(token=self._system.token)
        return headers.get("authorization")

    def _info(self, address: Address) -> Mapping[str, Any]:
        info: Mapping[str, Any] = self._system.info(_key(address), refresh=True)
        return info


class _WebHandle:
    def __init__(
        self,
        web: Web,
        url: str,
        size: int,
        facts: Mapping[str, Any],
        authorization: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._web, self._url, self.size, self._authorization = web, url, size, authorization
        self.stamp = _stamp(size, facts)

    def read_at(self, offset: int, count: int) -> bytes:
        return self._web.part(self._url, offset, count, self._authorization())


def _extra(name: str) -> types.ModuleType:
    """The library of an extra.

    Raises:
        InputError: it is not installed.
    """
    module, package = EXTRAS[name]
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f"{NEEDED_FOR.get(name, f'addresses of {name}://')} need the package {package}, which is not installed: "
            f'pip install "datamask[{name}]" (or pip install {package})'
        ) from error


# -- the table ---------------------------------------------------------------------------------------------------------

STORES = {"s3": _s3, "gs": CloudStore, **dict.fromkeys(WEB, WebStore), "hf": HubStore}
"""Scheme -> what makes its store of the options of a query, a host, and how long it may be silent."""

ENVIRONMENT = (
    *("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_REGION", "AWS_DEFAULT_REGION", "AWS_NO_SIGN_REQUEST"),
    *("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS", "HF_ENDPOINT"),
)


def store_of(address: Address) -> Store:
    """What speaks to the store of an address; made once for each host, as long as the environment stays as it is.

    Raises:
        InputError: a package is missing, or the query says what cannot be. OSError: its region cannot be found.
    """
    settings = tuple(os.environ.get(name) for name in ENVIRONMENT)
    return _made(address.scheme, address.host, address.query, settings, Patience.of_environment())


@functools.lru_cache(64)
def _made(scheme: str, host: str, query: str, settings: Sequence[str | None], patience: Patience) -> Store:
    address = Address(scheme, host, "", query)
    try:
        return STORES[scheme](address.options, host, patience)
    except (ValueError, TypeError) as error:
        raise InputError(f"{harmless(str(address))} cannot be used: {error}") from error
