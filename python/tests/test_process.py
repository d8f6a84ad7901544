"""The process behind the package: one for many calls, threads, forks, crashes."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

import octavo
from octavo import _command, _process


def product():
    a, b = octavo.operands(16, 16, 64, block="1x32", seed=1)
    return octavo.multiply(a=a, b=b), a, b


def test_a_thousand_checks_in_one_process():
    c, a, b = product()
    pid = _process.shared.pid
    wrong = c.copy()
    wrong[3, 4] += 1
    for i in range(1000):
        assert octavo.judge(wrong if i % 10 == 9 else c, a=a, b=b).passed is (i % 10 != 9)
    assert _process.shared.pid == pid is not None


def test_threads():
    c, a, b = product()
    failures = []

    def work(seed):
        try:
            for i in range(20):
                x = octavo.generate(5, 10 + seed, seed=seed * 100 + i)
                codes = octavo.encode(x).codes
                assert codes.shape == (5, 10 + seed)
                assert np.array_equal(codes, octavo.encode(x).codes)
                octavo.check(c, a=a, b=b)
        except BaseException as err:
            failures.append(err)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
def test_fork():
    c, a, b = product()
    parents = _process.shared.pid
    child = os.fork()
    if child == 0:
        try:
            octavo.check(c, a=a, b=b)
            os._exit(7 if _process.shared.pid not in (parents, None) else 1)
        except BaseException:
            os._exit(2)
    octavo.check(c, a=a, b=b)  # at the same time
    _, status = os.waitpid(child, 0)
    assert os.WEXITSTATUS(status) == 7
    assert _process.shared.pid == parents
    octavo.check(c, a=a, b=b)


def test_killed_between_calls():
    c, a, b = product()
    first = _process.shared.pid
    os.kill(first, signal.SIGKILL)
    _process.shared._child.wait()
    octavo.check(c, a=a, b=b)
    assert _process.shared.pid != first


def large():
    n = 768
    codes = np.full((n, 2048), 0x31, np.uint8)
    return np.zeros((n, n), np.float32), codes, 1.0, codes, 1.0


def test_killed_in_a_call():
    def kill(operation, done, total):
        os.kill(_process.shared.pid, signal.SIGKILL)

    with pytest.raises(octavo.CrashError, match="octavo ended in check: signal 9"):
        octavo.check(*large(), a_format="E4M3", b_format="E4M3", progress=kill)
    octavo.encode([1.0])  # by another process


@pytest.fixture
def interruptible():
    """What runs in the background may ignore SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_interrupted(interruptible):
    first = octavo.encode([1.0]) and _process.shared.pid

    def interrupt(operation, done, total):
        signal.raise_signal(signal.SIGINT)

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        octavo.check(*large(), a_format="E4M3", b_format="E4M3", progress=interrupt)
    assert octavo.encode([1.0]).codes[0] == 0x38
    assert _process.shared.pid != first
    assert time.monotonic() - begun < 60


def test_interrupted_while_it_starts(monkeypatch):
    process = _process.Process()
    read = process._read

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(process, "_read", interrupt)
    with pytest.raises(KeyboardInterrupt):
        process.ask("generate", {}, {"rows": 1, "cols": 1})
    assert process.pid is None
    monkeypatch.setattr(process, "_read", read)
    process.ask("generate", {}, {"rows": 1, "cols": 1})  # and is not taken for the greeting
    process.close()


def test_errors_of_callbacks():
    def fail(operation, done, total):
        raise OSError("no space left")

    with pytest.raises(OSError, match="^no space left$"):
        octavo.check(*large(), a_format="E4M3", b_format="E4M3", progress=fail)
    for ask in (lambda *said: octavo.encode([1.0]), lambda *said: _process.shared.close()):
        with pytest.raises(RuntimeError, match="a callback of progress asks octavo"):
            octavo.check(*large(), a_format="E4M3", b_format="E4M3", progress=ask)
    octavo.encode([1.0])


def test_options():
    octavo.encode([1.0])
    pid = _process.shared.pid
    assert octavo.generate(np.int64(2), np.uint8(3), seed=np.int32(4)).shape == (2, 3)
    for value in (float("nan"), float("inf"), np.float32("nan")):
        with pytest.raises(octavo.InputError, match="epsilon of quantize is (nan|inf): want finite numbers"):
            octavo.quantize([1.0], epsilon=value)
    with pytest.raises(TypeError, match="format of encode is <object .*, of type object"):
        octavo.encode([1.0], object())
    with pytest.raises(octavo.InputError, match="the options of check are [0-9]* bytes: want 1047552 at most"):
        octavo.check(*large(), a_format="E4M3", b_format="E4M3", sample=octavo.Sample(rows=[0] * 400000))
    assert _process.shared.pid == pid


def test_progress():
    heard = []
    octavo.judge(*large(), a_format="E4M3", b_format="E4M3", progress=lambda *said: heard.append(said))
    assert heard and all(0 <= done <= total for _, done, total in heard)
    assert "exact" in {operation for operation, _, _ in heard}


def gone(pid):
    """Waits until a process has ended."""
    for _ in range(600):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        try:
            with open(f"/proc/{pid}/stat") as f:
                if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
        except OSError:
            pass
        time.sleep(0.1)
    return False


@pytest.mark.parametrize("end", ["pass", "os.kill(os.getpid(), 9)", "os._exit(0)", "raise SystemExit(3)"])
def test_it_ends_with_this_process(end):
    program = textwrap.dedent(
        f"""
        import os, sys
        sys.path.insert(0, {os.path.dirname(os.path.dirname(_process.__file__))!r})
        import octavo
        from octavo import _process
        octavo.encode([1.0])
        print(_process.shared.pid, flush=True)
        {end}
        """
    )
    run = subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE, timeout=300)
    assert gone(int(run.stdout))


def script(tmp_path, text):
    path = tmp_path / "octavo"
    path.write_text(f"#!{sys.executable}\nimport sys, struct\n{text}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    "text, said",
    [
        ("print('octavo: there is no command \"serve\"', file=sys.stderr); sys.exit(2)", 'there is no command "serve"'),
        ("sys.stdout.write('hello, this is another program'); sys.stdout.flush(); sys.stdin.read()", "which is no frame"),
        ("sys.stdout.buffer.write(struct.pack('<4sIQ', b'OCTF', 40, 0) + b'{\"protocol\": 2, \"version\": \"v9\"}        '[:40])", "octavo v9, which speaks protocol 2, and this package speaks 1"),
        ("", "does not answer"),
    ],
)
def test_another_program(tmp_path, monkeypatch, text, said):
    monkeypatch.setenv("OCTAVO", script(tmp_path, text))
    process = _process.Process()
    with pytest.raises(octavo.CommandError, match=said):
        process.ask("encode", {}, {})
    assert process.pid is None


def test_finding(tmp_path, monkeypatch):
    monkeypatch.setenv("OCTAVO", str(tmp_path / "none"))
    with pytest.raises(octavo.CommandError, match="OCTAVO is .*none', which is no command"):
        _command.find()
    path = script(tmp_path, "")
    monkeypatch.setenv("OCTAVO", path)
    assert _command.find() == path
    monkeypatch.delenv("OCTAVO")
    monkeypatch.setenv("PATH", str(tmp_path))
    assert _command.find() == path
    os.remove(path)
    with pytest.raises(octavo.CommandError, match="no Go to build it"):
        _command.find()
    monkeypatch.setattr(_command, "_clone", lambda: None)
    with pytest.raises(octavo.CommandError, match="go install"):
        _command.find()


def test_a_build_that_fails(tmp_path, monkeypatch):
    monkeypatch.delenv("OCTAVO", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    go = tmp_path / "go"
    go.write_text("#!/bin/sh\necho main.go: a mistake >&2\nexit 1\n")
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(octavo.CommandError, match="go build of .* failed: main.go: a mistake"):
        _command.find()


def test_errors_leave_the_process(tmp_path):
    octavo.encode([1.0])
    pid = _process.shared.pid
    for _ in range(20):
        with pytest.raises(octavo.InputError):
            octavo.encode([1.0], "E9M9")
        with pytest.raises(octavo.InputError, match="there is no operation"):
            _process.shared.ask("dance", {}, {})
    assert _process.shared.pid == pid


def test_close_and_go_on():
    process = _process.Process()
    process.ask("generate", {}, {"rows": 1, "cols": 1})
    assert process.version
    pid = process.pid
    process.close()
    process.close()
    assert process.pid is None and gone(pid)
    _, arrays = process.ask("generate", {}, {"rows": 2, "cols": 1})
    assert arrays["values"].data.shape == (2, 1)


def test_a_build_of_the_clone(tmp_path, monkeypatch):
    go = shutil.which("go")
    if go is None:
        pytest.skip("there is no Go")
    monkeypatch.delenv("OCTAVO", raising=False)
    cache = subprocess.run([go, "env", "GOCACHE"], stdout=subprocess.PIPE, check=True, text=True).stdout.strip()
    monkeypatch.setenv("GOCACHE", cache)  # which is in the next one otherwise
    monkeypatch.setattr(_command.shutil, "which", lambda name: go if name == "go" else None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = _command.find()
    assert str(tmp_path) in path
    built = os.stat(path).st_ino
    assert _command.find() == path and os.stat(path).st_ino == built  # nothing has changed
    monkeypatch.setattr(_command, "find", lambda: path)
    process = _process.Process()
    process.ask("generate", {}, {"rows": 1, "cols": 1})
    process.close()
