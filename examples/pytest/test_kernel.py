"""Tests a kernel with octavo, and shows how a fault is found: see README.md.

The first test is the one to keep for a kernel of one's own.
"""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "python")]  # of the clone, unless octavo is installed

import kernel
import octavo


def operands(m, n, k):
    x = octavo.quantize(octavo.generate(m, k, seed=1), "deepseek", block="1x128")
    w = octavo.quantize(octavo.generate(n, k, seed=2), "deepseek", block="128x128")
    return x, w


def run(x, w, program=kernel.program):
    return kernel.matmul(x.codes, x.scales, w.codes, w.scales, program)


@pytest.mark.parametrize("m, n, k", [(1, 128, 128), (64, 256, 512), (100, 200, 640), (33, 130, 300)])
def test_kernel(m, n, k):
    x, w = operands(m, n, k)
    octavo.check(run(x, w), a=x, b=w)
    a, b = octavo.operands(m, n, k, block="128x128", seed=3)
    a = octavo.Tensor(a.codes, np.repeat(a.scales, 128, 0)[:m], a.format, "1x128")
    octavo.check(run(a, b), a=a, b=b, model="canonical")  # whose sums are exact in any order


def cosine(c, want):
    return np.sum(c * want) / np.sqrt(np.sum(c * c) * np.sum(want * want))


def test_the_usual_test_passes_the_wrong_kernel():
    x, w = operands(100, 200, 640)
    c = run(x, w, kernel.wrong_program).astype(np.float64)
    assert cosine(c, x.values().astype(np.float64) @ w.values().T.astype(np.float64)) > 0.99
    verdict = octavo.audit(a=x, b=w, cosine=0.99, propose=False)
    assert any(said.startswith("the scales of B are read one row too far") for said in verdict.survivors), verdict


def told(heading):
    """The lines of README.md in the block that follows some words, but for what is left out."""
    text = (HERE / "README.md").read_text()
    block = text.split(heading, 1)[1].split("\n\n", 1)[1]
    lines = textwrap.dedent(block.split("\n\n", 1)[0]).splitlines()
    assert len(lines) > 3
    return [line for line in lines if line != "..."]


def require_told(report, heading):
    at = 0
    lines = report.splitlines()
    for line in told(heading):
        assert line in lines[at:], f"the report does not say {line!r} there:\n{report}"
        at = lines.index(line, at) + 1


def test_the_report_names_the_fault():
    x, w = operands(100, 200, 640)
    with pytest.raises(AssertionError) as error:
        octavo.check(run(x, w, kernel.wrong_program), a=x, b=w)
    require_told(str(error.value), "the test fails with")


def test_through_files(tmp_path):
    x, w = operands(100, 200, 640)
    for name, array in dict(x=x.codes, sx=x.scales, w=w.codes, sw=w.scales, c=run(x, w, kernel.wrong_program)).items():
        np.save(tmp_path / f"{name}.npy", array)
    line = (HERE / "README.md").read_text().split("    octavo verify", 1)[1].split("\n\n", 1)[0]
    done = subprocess.run(
        [octavo.find_command(), "verify", *line.replace("\\", "").split()],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert done.returncode == 1, done.stderr
    require_told(done.stdout, "the test fails with")
    assert os.path.exists(tmp_path / "errors.html")
