"""TPC-H data, made once per scale factor and kept in bench/data."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DATA = Path(__file__).parent / "data"


def table(name: str, scale: float = 1.0) -> Path:
    """The Parquet file of one table."""
    directory = DATA / f"sf{scale:g}"
    file = directory / f"{name}.parquet"
    if not file.exists():
        directory.mkdir(parents=True, exist_ok=True)
        tool = Path(sys.executable).with_name("tpchgen-cli")
        command = [str(tool), "parquet", "-s", f"{scale:g}", f"--tables={name}", f"--output-dir={directory}"]
        subprocess.run(command, check=True, capture_output=True)
    return file
