"""Finds the command octavo."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Iterator, Optional

VARIABLE = "OCTAVO"


class CommandError(RuntimeError):
    """The command octavo is not there, cannot be started, or is of another version."""


def find() -> str:
    """Returns the path of the command: what the environment variable OCTAVO names, or
    octavo on PATH, or, where this package lies in a clone of the repository and Go is
    there, what Go builds of the clone."""
    named = os.environ.get(VARIABLE)
    if named:
        path = shutil.which(named)
        if path is None:
            raise CommandError(f"the environment variable {VARIABLE} is {named!r}, which is no command")
        return path
    path = shutil.which("octavo")
    if path is not None:
        return path
    clone = _clone()
    if clone is None:
        raise CommandError(
            "there is no command octavo: install it with "
            "go install github.com/octavo-fp8/octavo/cmd/octavo@latest and put it on PATH, "
            f"or name it in the environment variable {VARIABLE}"
        )
    go = shutil.which("go")
    if go is None:
        raise CommandError(
            f"there is no command octavo, and no Go to build it of {clone}: put octavo or go on PATH, "
            f"or name octavo in the environment variable {VARIABLE}"
        )
    return _build(go, clone)


def _clone() -> Optional[Path]:
    """Returns the clone of the repository that this file lies in."""
    for folder in Path(__file__).resolve().parents:
        if (folder / "go.work").is_file() and (folder / "cmd" / "octavo" / "main.go").is_file():
            return folder
    return None


def _build(go: str, clone: Path) -> str:
    """Builds the command, of which Go does only what has changed, and returns its path:
    one for each clone and user."""
    name = "octavo-" + hashlib.sha256(str(clone).encode()).hexdigest()[:16]
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(cache) / "octavo" / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:  # there is no home
        folder = Path(tempfile.gettempdir()) / f"{name}-{os.getpid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / ("octavo.exe" if os.name == "nt" else "octavo")
    with _locked(folder / "lock"):
        built = subprocess.run(
            [go, "build", "-o", str(path), "./cmd/octavo"],
            cwd=clone,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
    if built.returncode != 0:
        text = built.stdout.decode(errors="replace").strip()
        raise CommandError(f"go build of {clone} failed: {text}")
    return str(path)


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keeps other processes that build the same from building now, where files can be locked."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
