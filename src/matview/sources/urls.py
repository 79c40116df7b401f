"""Where a source is. A password is found when it is needed, and is never stored nor shown.

postgresql://role@host:5432/shop?password_env=SHOP_PASSWORD      from the environment
postgresql://role:${SHOP_PASSWORD}@host/shop                     the same
mariadb://role@host/shop?password_file=/run/secrets/shop         the first line of a file
postgresql://role:secret@host/shop                               taken, but not kept: `stored` is without it
sqlite:///relative/file.db     sqlite:////absolute/file.db
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from matview.errors import BadSourceUrl

ENGINES = {
    "postgresql": "postgresql",
    "postgres": "postgresql",
    "postgresql+psycopg": "postgresql",
    "sqlite": "sqlite",
    "mariadb": "mariadb",
    "mariadb+pymysql": "mariadb",
    "mysql": "mariadb",
    "mysql+pymysql": "mariadb",
}
REFERENCE = re.compile(r"\$\{([^{}]+)\}")
PASSWORD_OPTIONS = ("password", "password_env", "password_file")


@dataclass(frozen=True, slots=True)
class Password:
    """How a password is found. Only `reveal` tells it."""

    literal: str | None = field(default=None, repr=False)
    environment: str | None = None
    file: str | None = None

    def reveal(self) -> str | None:
        """The password, or None if none was given."""
        if self.environment is not None:
            return from_environment(self.environment)
        if self.file is not None:
            return from_file(self.file)
        return self.literal


@dataclass(frozen=True, slots=True)
class SourceUrl:
    """The parts of a URL; `stored` is its text without a password, and all that may be shown."""

    engine: str
    stored: str
    user: str | None = None
    host: str | None = None
    port: int | None = None
    database: str = ""
    options: tuple[tuple[str, str], ...] = ()
    password: Password = Password()

    @classmethod
    def parse(cls, text: str) -> SourceUrl:
        """The URL in its parts; what does not name a source is refused, without showing what may be a password."""
        scheme, separator, rest = text.partition("://")
        engine = ENGINES.get(scheme.lower())
        if not separator or engine is None:
            raise BadSourceUrl(f"{scheme!r} is no kind of source" if separator else "a source is named by a URL")
        return _sqlite(text, rest) if engine == "sqlite" else _server(engine, scheme, rest)

    def hidden(self, message: object) -> str:
        """A driver's message without the password."""
        text = str(message).strip()
        try:
            password = self.password.reveal()
        except BadSourceUrl:
            return text
        return text.replace(password, "***") if password else text

    def __str__(self) -> str:
        return self.stored


def _sqlite(text: str, rest: str) -> SourceUrl:
    location, _, query = rest.partition("?")
    if not location.startswith("/") or location == "/":
        raise BadSourceUrl(f"{text!r} names no file", help="sqlite:///relative/file.db or sqlite:////absolute/file.db")
    return SourceUrl("sqlite", text, database=expanded(unquote(location[1:])), options=tuple(parse_qsl(query)))


def _server(engine: str, scheme: str, rest: str) -> SourceUrl:
    parts = urlsplit(f"//{rest}")
    login, _, address = parts.netloc.rpartition("@")
    user, _, secret = login.partition(":")
    options = tuple(parse_qsl(parts.query, keep_blank_values=True))
    password = password_of(unquote(secret), options)
    host, port = host_and_port(address)
    kept = [(name, value) for name, value in options if name != "password" or password.environment]
    shown = f"{user}:{secret}" if password.environment and secret else user
    query = "&".join(f"{name}={quote(value, safe='/')}" for name, value in kept)
    stored = f"{scheme}://{shown + '@' if shown else ''}{address}{parts.path}{'?' + query if query else ''}"
    return SourceUrl(
        engine,
        stored,
        expanded(unquote(user)) or None,
        expanded(host) or None,
        port,
        expanded(unquote(parts.path.lstrip("/"))),
        tuple((name, expanded(value)) for name, value in kept if name not in PASSWORD_OPTIONS),
        password,
    )


def password_of(secret: str, options: Iterable[tuple[str, str]]) -> Password:
    """The password that stands before the host, or the reference to one."""
    given = dict(options)
    secret = secret or given.get("password", "")
    ways = [way for way in (secret, given.get("password_env"), given.get("password_file")) if way]
    if len(ways) > 1:
        raise BadSourceUrl("the URL gives a password in two ways")
    if match := REFERENCE.fullmatch(secret):
        return Password(environment=match[1])
    return Password(secret or None, given.get("password_env"), given.get("password_file"))


def host_and_port(address: str) -> tuple[str, int | None]:
    """`host`, `host:port` or `[IPv6]:port`."""
    match = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::(\d+))?", address)
    if match is None:
        raise BadSourceUrl("the URL has no valid host and port", help="a colon in a name or password is written %3A")
    return unquote(match[1].strip("[]")), int(match[2]) if match[2] else None


def expanded(text: str) -> str:
    """The text with each ${NAME} replaced from the environment."""
    return REFERENCE.sub(lambda match: from_environment(match[1]), text)


def from_environment(name: str) -> str:
    if name not in os.environ:
        raise BadSourceUrl(f"the environment has no {name}", help=f"set {name}, which the source's URL refers to")
    return os.environ[name]


def from_file(path: str) -> str:
    """The first line; the rest of the file does not matter."""
    try:
        return Path(path).read_text(encoding="utf-8").partition("\n")[0].removesuffix("\r")
    except OSError as error:
        raise BadSourceUrl(f"the password file {path!r} cannot be read: {error.strerror}") from error
