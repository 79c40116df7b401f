"""URLs of sources, and passwords that are found but never kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from matview.errors import BadSourceUrl
from matview.sources import connect
from matview.sources.urls import SourceUrl

URLS = {
    "postgresql://me@host:5433/shop?sslmode=require": ("postgresql", "me", "host", 5433, "shop"),
    "postgres://host/shop": ("postgresql", None, "host", None, "shop"),
    "postgresql:///shop?host=/var/run/pg": ("postgresql", None, None, None, "shop"),
    "mysql://a%40b@host/x%2Fy": ("mariadb", "a@b", "host", None, "x/y"),
    "mariadb://me@[::1]:3307/shop": ("mariadb", "me", "::1", 3307, "shop"),
    "sqlite:///some/file.db": ("sqlite", None, None, None, "some/file.db"),
    "sqlite:////abs/a%20file.db?mode=ro": ("sqlite", None, None, None, "/abs/a file.db"),
}


@pytest.mark.parametrize("text", URLS)
def test_a_url_in_its_parts(text: str) -> None:
    url = SourceUrl.parse(text)
    assert (url.engine, url.user, url.host, url.port, url.database) == URLS[text]
    assert url.stored == text
    assert SourceUrl.parse(url.stored) == url
    assert url.password.reveal() is None


@pytest.mark.parametrize(
    "text",
    [
        "shop",
        "oracle://host/x",
        "sqlite://",
        "sqlite:///",
        "postgresql://a:b:c@h:o/x",
        "postgresql://u:p@h/d?password_env=P",
        "postgresql://u@[::1/d",
        "mariadb://u@h:65536/d",
        "postgresql://u@h/d%00",
        "sqlite:///a%00b.db",
        "sqlite:///file.db?key=s3cr3t",
    ],
)
def test_what_names_no_source_is_refused(text: str) -> None:
    with pytest.raises(BadSourceUrl):
        SourceUrl.parse(text)


@pytest.mark.parametrize(
    "text", ["postgresql://me:s3cr3t@host:5432/shop?sslmode=require", "mariadb://me@host/shop?password=s3cr3t"]
)
def test_a_password_in_the_url_is_used_but_not_kept(text: str) -> None:
    url = SourceUrl.parse(text)
    assert url.password.reveal() == "s3cr3t"
    assert "s3cr3t" not in f"{url.stored} {url} {url!r} {url.password!r} {url.options}"
    assert SourceUrl.parse(url.stored).password.reveal() is None
    assert url.hidden("no s3cr3t for you") == "no *** for you"


@pytest.mark.parametrize("option", ["sslpassword", "PASSWORD", "Passwd", "ssl_key_passphrase", "oauth_client_secret"])
@pytest.mark.parametrize("engine", ["postgresql", "mariadb"])
def test_options_that_are_secrets_are_for_the_driver_alone(engine: str, option: str) -> None:
    url = SourceUrl.parse(f"{engine}://me@host/shop?{option}=s3cr3t&connect_timeout=3")
    assert url.stored == f"{engine}://me@host/shop?connect_timeout=3"
    assert "s3cr3t" not in f"{url} {url!r} {url.options}"
    assert url.secrets == ((option, "s3cr3t"),)
    assert url.hidden("no s3cr3t for you") == "no *** for you"


def test_a_reference_to_a_secret_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET_IN_TESTS", "p@ss")
    url = SourceUrl.parse("postgresql://me@host/shop?sslkey=/k.pem&sslpassword=${A_SECRET_IN_TESTS}")
    assert "p@ss" not in f"{url} {url!r} {url.options}"
    assert SourceUrl.parse(url.stored).secrets == (("sslpassword", "p@ss"),)
    assert dict(url.options) == {"sslkey": "/k.pem"}


@pytest.mark.parametrize("url", ["mariadb://me@localhost/shop?connect_timeout=x", "sqlite:///x.db?mode=ro"])
def test_options_that_say_nothing_are_refused(url: str) -> None:
    with pytest.raises(BadSourceUrl):
        connect(url)


REFERENCES = (
    "postgresql://me@host/shop?password_env=A_SECRET_IN_TESTS",
    "postgresql://me:${A_SECRET_IN_TESTS}@host/shop",
    "mariadb://me@host/shop?password=${A_SECRET_IN_TESTS}",
)


@pytest.mark.parametrize("text", REFERENCES)
def test_a_reference_is_kept_and_followed_each_time(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    url = SourceUrl.parse(text)
    with pytest.raises(BadSourceUrl, match="A_SECRET_IN_TESTS"):
        url.password.reveal()
    assert url.hidden("as it is") == "as it is"
    monkeypatch.setenv("A_SECRET_IN_TESTS", "p@ss:w/rd")
    again = SourceUrl.parse(url.stored)
    assert again.password.reveal() == "p@ss:w/rd"
    assert "p@ss" not in repr(again)
    assert ("password", "p@ss:w/rd") not in again.options


def test_a_password_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("first line\nsecond\n")
    url = SourceUrl.parse(f"postgresql://me@host/shop?password_file={tmp_path}/secret")
    assert url.password.reveal() == "first line"
    assert str(tmp_path) in url.stored
    assert url.options == ()
    with pytest.raises(BadSourceUrl, match="cannot be read"):
        SourceUrl.parse(f"postgresql://me@host/shop?password_file={tmp_path}/none").password.reveal()


def test_references_elsewhere_in_the_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_HOST_IN_TESTS", "db.example")
    url = SourceUrl.parse("postgresql://${A_HOST_IN_TESTS}/shop")
    assert url.host == "db.example"
    assert url.stored == "postgresql://${A_HOST_IN_TESTS}/shop"
