"""Speaks with octavo serve, the process behind this package."""

from __future__ import annotations

import atexit
import json
import os
import struct
import subprocess
import tempfile
import threading
import weakref
from typing import IO, Any, Callable, Dict, List, Mapping, Optional, Tuple

import numpy as np

from . import _command
from ._arrays import Array

PROTOCOL = 1
_MAGIC = b"OCTF"
_PREFIX = struct.Struct("<4sIQ")
_MOST_HEADER = 1 << 20

Progress = Callable[[str, int, int], None]


class InputError(ValueError):
    """What was handed to octavo is wrong: the message names the tensor, the place and the value."""


class CrashError(RuntimeError):
    """The process behind this package has ended, or has a fault. The next call starts another."""


class _Lost(Exception):
    """The process has closed a pipe, or does not speak the protocol."""


class Process:
    """A process octavo serve, which starts with the first request and again after a crash.

    Safe for use by several threads: requests wait for each other. A callback of progress
    may not ask: that is a RuntimeError. After a fork the child
    has a process of its own. The process ends when this one does, however that ends.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: Optional[subprocess.Popen[bytes]] = None
        self._stderr: Optional[IO[bytes]] = None
        self._id = 0
        self._asker: Optional[int] = None  # the thread that asks
        self.version = ""
        _processes.add(self)

    def ask(
        self,
        operation: str,
        arrays: Mapping[str, Array],
        options: Mapping[str, Any],
        progress: Optional[Progress] = None,
    ) -> Tuple[Dict[str, Any], Dict[str, Array]]:
        """Returns the result and the arrays of an operation. Options that are None are
        left out."""
        data = _pack(arrays)
        given = _options(operation, options)
        self._refuse_callback()
        with self._lock:
            self._asker = threading.get_ident()
            try:
                self._id += 1
                header = (
                    f'{{"protocol": {PROTOCOL}, "id": {self._id}, "operation": {json.dumps(operation)}, '
                    f'"progress": {json.dumps(progress is not None)}, "options": {given}}}'
                )
                if self._child is None or self._child.poll() is not None:
                    self._stop()
                    self._start()
                answer, parts = self._exchange(self._id, header.encode(), data, progress)
            except _Lost as err:
                raise CrashError(f"octavo ended in {operation}: {self._stop() or err}") from None
            except BaseException:  # the answer of a call that was broken off must not be the next one's
                self._stop()
                raise
            finally:
                self._asker = None
        error = answer.get("error")
        if error is None:
            return answer.get("result", {}), parts
        if error["kind"] == "input":
            raise InputError(error["message"])
        raise CrashError(error["message"])

    def close(self) -> None:
        """Ends the process. The next request starts another."""
        self._refuse_callback()
        with self._lock:
            self._stop()

    def _refuse_callback(self) -> None:
        """Raises an error in a callback of progress, which would wait for itself."""
        if self._asker == threading.get_ident():
            raise RuntimeError("a callback of progress asks octavo, which is still at the call that it reports on")

    def _abandon(self) -> None:
        """Ends the process without waiting for a thread that still asks it something."""
        if self._lock.acquire(blocking=False):
            self._stop()
            self._lock.release()
        elif self._child is not None:
            self._child.kill()

    @property
    def pid(self) -> Optional[int]:
        """The id of the process, or None where there is none."""
        return self._child.pid if self._child is not None else None

    def _exchange(
        self, id: int, header: bytes, data: List[memoryview], progress: Optional[Progress]
    ) -> Tuple[Dict[str, Any], Dict[str, Array]]:
        self._write(header, data)
        while True:
            answer, parts = self._read()
            if answer.get("id") != id:
                if "error" in answer:
                    raise _Lost(answer["error"]["message"])
                raise _Lost("it gave an answer to another request")
            if "progress" not in answer:
                return answer, parts
            if progress is not None:
                p = answer["progress"]
                progress(p["operation"], p["done"], p["total"])

    def _start(self) -> None:
        path = _command.find()
        self._stderr = tempfile.TemporaryFile()
        try:
            self._child = subprocess.Popen(
                [path, "serve"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                bufsize=0,
                start_new_session=True,  # Ctrl-C is for the program that asks
            )
        except OSError as err:
            raise _command.CommandError(f"{path} cannot be started: {err}") from None
        try:
            greeting, _ = self._read()
        except _Lost as err:
            text = self._stop()
            raise _command.CommandError(f"{path} serve does not answer: {text or err}") from None
        if greeting.get("protocol") != PROTOCOL:
            self._stop()
            raise _command.CommandError(
                f"{path} is octavo {greeting.get('version')}, which speaks protocol {greeting.get('protocol')}, "
                f"and this package speaks {PROTOCOL}: install both of one version"
            )
        self.version = str(greeting["version"])

    def _stop(self) -> str:
        """Ends the process, and returns what it said on standard error."""
        child, stderr = self._child, self._stderr
        self._child = self._stderr = None
        text = ""
        if child is not None:
            assert child.stdin is not None and child.stdout is not None
            child.stdin.close()  # at which it ends
            try:
                child.wait(0.5)
            except subprocess.TimeoutExpired:
                child.kill()
                child.wait()
            child.stdout.close()
            if child.returncode < 0:
                text = f"signal {-child.returncode}"
        if stderr is not None:
            stderr.seek(0)
            text = stderr.read(1 << 16).decode(errors="replace").strip() or text
            stderr.close()
        return text

    def _forked(self) -> None:
        """Leaves the process to the parent, of which this is a child by fork."""
        child = self._child
        self._lock = threading.Lock()
        self._asker = None
        self._child = None
        if child is not None:
            for pipe in (child.stdin, child.stdout):
                if pipe is not None:
                    pipe.close()  # or it would not see that the parent has ended
            child.returncode = 0  # not ours to wait for
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None

    def _write(self, header: bytes, data: List[memoryview]) -> None:
        size = sum(part.nbytes for part in data)
        small = [_PREFIX.pack(_MAGIC, len(header), size), header]
        if size < 1 << 16:
            self._write_all(memoryview(b"".join(small + [bytes(part) for part in data])))
            return
        for part in [memoryview(b"".join(small))] + data:
            self._write_all(part)

    def _write_all(self, data: memoryview) -> None:
        assert self._child is not None and self._child.stdin is not None
        while data.nbytes > 0:
            try:
                n = self._child.stdin.write(data)
            except OSError as err:
                raise _Lost(str(err)) from None
            data = data[n:]

    def _read(self) -> Tuple[Dict[str, Any], Dict[str, Array]]:
        magic, header, size = _PREFIX.unpack(self._read_all(_PREFIX.size))
        if magic != _MAGIC:
            raise _Lost(f"it wrote {magic!r}, which is no frame")
        answer = json.loads(bytes(self._read_all(header)))
        return answer, _unpack(self._read_all(size))

    def _read_all(self, size: int) -> bytearray:
        assert self._child is not None and self._child.stdout is not None
        data = bytearray(size)
        view = memoryview(data)
        while view.nbytes > 0:
            try:
                n = self._child.stdout.readinto(view)  # type: ignore[attr-defined]
            except OSError as err:
                raise _Lost(str(err)) from None
            if not n:
                raise _Lost("it has closed its output")
            view = view[n:]
        return data


def _options(operation: str, options: Mapping[str, Any]) -> str:
    """Returns options, but for those that are None, as JSON, which has no NaN and no
    infinities."""
    texts = []
    for name, value in options.items():
        if value is None:
            continue
        try:
            texts.append(f"{json.dumps(name)}: {json.dumps(value, allow_nan=False, default=_number)}")
        except ValueError:
            raise InputError(f"{name} of {operation} is {value}: want finite numbers") from None
        except TypeError:
            raise TypeError(f"{name} of {operation} is {value!r}, of type {type(value).__name__}") from None
    text = "{" + ", ".join(texts) + "}"
    if len(text) > _MOST_HEADER - 1024:  # of which the rest of the header has some
        raise InputError(f"the options of {operation} are {len(text)} bytes: want {_MOST_HEADER - 1024} at most")
    return text


def _number(x: Any) -> Any:
    """Returns a number of NumPy as one of Python."""
    if isinstance(x, np.generic):
        return x.item()
    raise TypeError


def _pack(arrays: Mapping[str, Array]) -> List[memoryview]:
    """Returns the parts of a safetensors file."""
    if not arrays:
        return []
    header, at = {}, 0
    parts = []
    for name, array in arrays.items():
        end = at + array.data.nbytes
        header[name] = {"dtype": array.dtype, "shape": list(array.data.shape), "data_offsets": [at, end]}
        at = end
        if array.data.nbytes > 0:
            parts.append(array.data.reshape(-1).view(np.uint8).data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return [memoryview(struct.pack("<Q", len(text)) + text)] + parts


def _unpack(data: bytearray) -> Dict[str, Array]:
    """Returns the arrays of a safetensors file, which share its memory."""
    if not data:
        return {}
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(bytes(data[8 : 8 + length]))
    arrays = {}
    for name, info in header.items():
        begin, end = info["data_offsets"]
        raw = np.frombuffer(data, np.uint8, end - begin, 8 + length + begin)
        arrays[name] = Array.of_bytes(info["dtype"], info["shape"], raw)
    return arrays


_processes: "weakref.WeakSet[Process]" = weakref.WeakSet()


def _close_all() -> None:
    for process in list(_processes):
        process._abandon()


def _forked() -> None:
    for process in list(_processes):
        process._forked()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)

#: The process that this package's functions use.
shared = Process()
