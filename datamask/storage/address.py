"""Addresses of files elsewhere, as text: ``s3://bucket/shards``, ``gs://``, ``https://``, ``hf://``. Nothing is asked.

An address is kept in run folders, shown on pages and named in sentences, so it must hold no secret: one that does is
refused where it enters (`refuse_secrets`), and whatever a library says passes `harmless` before anybody reads it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from urllib.parse import parse_qsl, unquote

from datamask.errors import InputError, OptionError

QUERIES: dict[str, frozenset[str] | None] = {
    "s3": frozenset({"region", "endpoint_override", "scheme", "anonymous"}),
    "gs": frozenset({"endpoint_override", "scheme", "anonymous"}),
    "https": None,
    "http": None,
    "hf": frozenset(),
}
"""Scheme -> what a query may name; None: whatever the server wants."""

WEB = ("https", "http")
"""Schemes whose addresses name one file each: nothing can be listed, and ``*`` is no pattern."""

_ADDRESS = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*)://(\S*)")
_QUERY = re.compile(r"\?([A-Za-z_][A-Za-z0-9_.-]*=[^?]*)$")
_SECRET = re.compile(r"sig|token|secret|passw|pwd|key|cred|auth|session|policy|jwt|code", re.IGNORECASE)
LONG_VALUE = 40
"""Letters of a value in a query from which on it is taken for a secret, whatever its name."""

ENVIRONMENT = (
    "give it to the environment instead (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, GOOGLE_APPLICATION_CREDENTIALS, "
    "HF_TOKEN), or download the file"
)


def is_address(text: str | os.PathLike[str]) -> bool:
    """Whether a text names a file elsewhere, by a scheme: ``s3://...``."""
    return isinstance(text, (str, Address)) and "://" in str(text)


@dataclass(frozen=True)
class Address:
    """One address, taken apart; ``str`` puts it together.

    Attributes:
        scheme: ``s3``. host: the bucket, server or kind of repository.
        path: what lies behind it, without a slash at either end.
        query: as it stands, without its ``?``.
    """

    scheme: str
    host: str
    path: str
    query: str = ""

    @classmethod
    def parse(cls, text: str) -> Address:
        """Take an address apart.

        Raises:
            InputError: of a scheme that is not read here, without a bucket or server, with a query that says what is
                not known, or with a path that no file has.
        """
        scheme, _, rest = text.partition("://")
        scheme = scheme.lower()
        if scheme not in QUERIES:
            known = ", ".join(f"{name}://" for name in QUERIES)
            raise InputError(
                f"{harmless(text)} is an address that cannot be read; local files, folders and globs can, and "
                f"addresses that begin with {known}; download it first"
            )
        _, before, query = _parts(scheme, rest)
        host, _, path = before.partition("/")
        address = cls(scheme, host.lower() if scheme in WEB else host, path.strip("/"), query)
        known_names = QUERIES[scheme]
        unknown = sorted(set(address.options) - known_names) if known_names is not None else []
        if unknown:
            raise InputError(
                f"{harmless(text)} has {unknown[0]!r} in its query, but that of {scheme}:// may name "
                f"{', '.join(sorted(known_names or ())) or 'nothing'}"
            )
        plain = re.sub(r"\\", "/", unquote(address.path)) if scheme in WEB else address.path
        holey = address.path and any(part in ("", ".", "..") for part in plain.split("/"))
        if not host or holey or not (host + plain).isprintable():
            raise InputError(
                f"{harmless(text)} is no whole address; {scheme}:// is followed by a "
                f"{'server' if scheme in WEB else 'bucket' if scheme != 'hf' else 'kind of repository'} and a path "
                "without empty parts, '.' and '..'"
            )
        return address

    def __str__(self) -> str:
        path = f"/{self.path}" if self.path else ""
        return f"{self.scheme}://{self.host}{path}" + (f"?{self.query}" if self.query else "")

    def __fspath__(self) -> str:
        return str(self)

    @property
    def options(self) -> Mapping[str, str]:
        """What the query says, by name."""
        return dict(parse_qsl(self.query, keep_blank_values=True))

    @property
    def parts(self) -> tuple[str, ...]:
        """Scheme and host, then the folders and the name: what two addresses have in common stands in front."""
        return (f"{self.scheme}://{self.host}", *filter(None, self.path.split("/")))

    @property
    def name(self) -> str:
        """The last part."""
        return self.path.rpartition("/")[2] or self.host

    @property
    def stem(self) -> str:
        """The name without its last ending."""
        return PurePosixPath(self.name).stem

    @property
    def suffix(self) -> str:
        """The last ending of the name, with its dot."""
        return PurePosixPath(self.name).suffix

    def at(self, path: str) -> Address:
        """Another path of the same host."""
        return replace(self, path=path.strip("/"))

    def below(self, root: Address) -> bool:
        """Whether it lies in `root`, or is it. The queries must be one: they may lead to another server."""
        return self.parts[: len(root.parts)] == root.parts and dict(self.options) == dict(root.options)


FilePath = Path | Address
"""A file of the disk, or one elsewhere: both have a name, a stem, a suffix and parts."""


def path_of(text: str | os.PathLike[str]) -> FilePath:
    """A path or an address from its text.

    Raises:
        InputError: an address that cannot be read here.
    """
    return Address.parse(str(text)) if is_address(text) else Path(text)


def split_roots(text: str) -> list[str]:
    """Paths and addresses that stand in one text, separated like PATH."""
    if os.pathsep != ":":
        return [root for root in text.split(os.pathsep) if root]
    address = r"[a-zA-Z][a-zA-Z0-9+.-]*://(?:[^:]*:[^:@]*@)?[^/:]*(?::\d+(?=[/:]|$))?[^:]*"  # users too: to refuse them
    return re.findall(rf"{address}|[^:]+", text)


def file_name(text: str) -> str:
    """The path without a query: what its ending is read from."""
    scheme, mark, rest = text.partition("://")
    return _parts(scheme.lower(), rest)[1] if mark else text


def _parts(scheme: str, rest: str) -> tuple[str, str, str]:
    """User info, host and path, and query of what stands behind ``://``."""
    if scheme in WEB:
        before, _, query = rest.partition("?")
        before, mark, _ = before.partition("#")
        query += mark + query.partition("#")[1]
    else:  # here ? is the sign of a pattern, unless a name and = follow
        written = _QUERY.search(rest)
        before, query = (rest, "") if written is None else (rest[: written.start()], written[1])
    host = before.partition("/")[0]
    user = host.rpartition("@")[0]
    if not user and ":" in host and "@" in before and not (scheme in WEB and host.partition(":")[2].isdigit()):
        user = before.rpartition("@")[0]  # a secret key with a slash in it
    return user, before[len(user) + 1 :] if user else before, query


def has_secret(text: str) -> bool:
    """Whether an address holds what looks like a name of a user, a key, a token or a signature."""
    scheme, mark, rest = text.partition("://")
    if not mark:
        return False
    user, _, query = _parts(scheme.lower(), rest)
    return bool(user) or _secret_query(query)


def _secret_query(query: str) -> bool:
    return any(mark in query for mark in "#@") or any(
        _SECRET.search(name) or len(value) >= LONG_VALUE
        for name, value in parse_qsl(query.replace(";", "&"), keep_blank_values=True)
    )


def refuse_secrets(text: str, option: str) -> None:
    """Refuse an address with a secret in it: runs keep their addresses, and pages show them.

    Raises:
        OptionError: it holds one; the sentence does not.
    """
    if has_secret(text):
        raise OptionError(
            f"--{option} {harmless(text)} must hold no secret (a user, key, token or signature), since a run keeps the "
            f"addresses of its shards; {ENVIRONMENT}"
        )


def harmless(text: str) -> str:
    """A text with every address in it shorn of what may be secret: users, and queries that look so."""
    return _ADDRESS.sub(lambda match: _shorn(match[1], match[2]), text)


def _shorn(scheme: str, rest: str) -> str:
    user, before, query = _parts(scheme.lower(), rest)
    if not user and not _secret_query(query):
        return f"{scheme}://{rest}"
    return f"{scheme}://{'...@' if user else ''}{before}" + (
        "?..." if _secret_query(query) else f"?{query}" * bool(query)
    )
