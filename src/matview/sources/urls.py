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
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urlsplit

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
SECRET = re.compile("pass|pwd|key|token|secret|credential", re.IGNORECASE)
PLACES = ("password_env", "password_file", "passfile", "sslkey", "ssl_key")
"""Options that say where a secret is, and may be kept."""
MOST_PORTS = 65535


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
    secrets: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Options that are as secret as the password, such as `sslpassword`: for the driver, and for nobody else."""

    @classmethod
    def parse(cls, text: str) -> SourceUrl:
        """The URL in its parts; what does not name a source is refused, without showing what may be a password."""
        scheme, separator, rest = text.partition("://")
        engine = ENGINES.get(scheme.lower())
        if not separator or engine is None:
            raise BadSourceUrl(f"{scheme!r} is no kind of source" if separator else "a source is named by a URL")
        if "\0" in unquote(rest):
            raise BadSourceUrl("the URL has a character that no name has: %00")
        return _sqlite(text, rest) if engine == "sqlite" else _server(engine, scheme, rest)

    def hidden(self, message: object) -> str:
        """A driver's message without the password and its like."""
        text = str(message).strip()
        for secret in (self._revealed(), *(value for _, value in self.secrets)):
            text = text.replace(secret, "***") if secret else text
        return text

    def _revealed(self) -> str | None:
        try:
            return self.password.reveal()
        except BadSourceUrl:
            return None

    def __str__(self) -> str:
        return self.stored


def _sqlite(text: str, rest: str) -> SourceUrl:
    location, _, query = rest.partition("?")
    if not location.startswith("/") or location == "/":
        raise BadSourceUrl(
            f"'sqlite://{location}' names no file", help="sqlite:///relative/file.db or sqlite:////absolute/file.db"
        )
    options = tuple(parse_qsl(query))
    if any(is_secret(name) for name, _ in options):
        raise BadSourceUrl("a SQLite file has no password", help="there is matview_schema=NAME")
    return SourceUrl("sqlite", text, database=expanded(unquote(location[1:])), options=options)


def _server(engine: str, scheme: str, rest: str) -> SourceUrl:
    parts = split(rest)
    login, _, address = parts.netloc.rpartition("@")
    user, _, secret = login.partition(":")
    options = tuple(parse_qsl(parts.query, keep_blank_values=True))
    password = password_of(unquote(secret), options)
    host, port = host_and_port(address)
    kept = [(name, value) for name, value in options if not is_secret(name) or REFERENCE.fullmatch(value)]
    shown = f"{user}:{secret}" if password.environment and secret else user
    query = "&".join(f"{name}={quote(value, safe='/')}" for name, value in kept)
    stored = f"{scheme}://{shown + '@' if shown else ''}{address}{parts.path}{'?' + query if query else ''}"
    others = [(name, expanded(value)) for name, value in options if name not in PASSWORD_OPTIONS]
    return SourceUrl(
        engine,
        stored,
        expanded(unquote(user)) or None,
        expanded(host) or None,
        port,
        expanded(unquote(parts.path.lstrip("/"))),
        tuple((name, value) for name, value in others if not is_secret(name)),
        password,
        tuple((name, value) for name, value in others if is_secret(name)),
    )


def split(rest: str) -> SplitResult:
    try:
        return urlsplit(f"//{rest}")
    except ValueError:
        raise BadSourceUrl("the URL has no valid host", help="an address of IPv6 stands in brackets: [::1]") from None


def is_secret(option: str) -> bool:
    """Whether the option's name says that its value is nobody's business."""
    return bool(SECRET.search(option)) and option.lower() not in PLACES


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
    port = int(match[2]) if match[2] else None
    if port is not None and port > MOST_PORTS:
        raise BadSourceUrl(f"there is no port {port}")
    return unquote(match[1].strip("[]")), port


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
