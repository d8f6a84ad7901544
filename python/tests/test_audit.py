"""The verdict on tests."""

import numpy as np
import pytest

import octavo


def operands():
    x = octavo.quantize(octavo.generate(16, 256, seed=1), block="1x128")
    w = octavo.quantize(octavo.generate(24, 256, seed=2), block="128x128")
    return x, w


def test_a_loose_test_lets_faults_pass():
    x, w = operands()
    loose = octavo.audit(a=x, b=w, rtol=1, atol=32, propose=False)
    assert not loose and loose.survivors and loose.json["survive"] == len(loose.survivors)
    assert loose.verdict in str(loose) and loose.verdict in repr(loose)
    # What is said of a C of zeros, and of one of twice the values, is so.
    c = octavo.multiply(a=x, b=w)
    for test in (dict(rtol=1, atol=32), dict(rtol=0.9, atol=32), dict(rtol=0.9, atol=0.1), dict(rtol=1.5)):
        said = octavo.audit(a=x, b=w, propose=False, **test).survivors
        for wrong, fault in ((0 * c, "C is not written: it holds 0"), (2 * c, "each element is 2 times the right one")):
            passes = np.all(np.abs(wrong - c) <= test.get("atol", 0) + test["rtol"] * np.abs(c))
            assert (fault in said) == passes, (test, fault)


def test_a_sharp_test_lets_fewer_pass():
    x, w = operands()
    counts = [
        octavo.audit(a=x, b=w, propose=False, **test).json["survive"]
        for test in (dict(rtol=1, atol=32), dict(cosine=0.9), dict(cosine=0.999), dict(relative_l2=1e-6), dict(rtol=1e-6, atol=1e-5))
    ]
    assert counts[0] >= counts[1] > counts[2] >= counts[3]
    assert counts[4] < counts[0]


def test_a_proposal():
    x, w = operands()
    heard = []
    got = octavo.audit(a=x, b=w, defaults="assert_close", dtype="bfloat16", progress=lambda *said: heard.append(said))
    assert heard and all(0 <= done <= total for _, done, total in heard)
    proposal = got.json["proposal"]
    assert proposal["sets"] and proposal["caught"] > 0 and proposal["falseFailures"] == 0
    assert got.json["type"] == "bfloat16"


def test_refusals():
    x, w = operands()
    for wrong, text in [
        ({}, "without criteria"),
        (dict(rtol=-1.0), "rtol"),
        (dict(defaults="close"), "no defaults"),
        (dict(rtol=1.0, reference="tpu"), "reference"),
        (dict(rtol=1.0, dtype="float64"), "float64"),
    ]:
        with pytest.raises(octavo.InputError, match=text):
            octavo.audit(a=x, b=w, propose=False, **wrong)
    for wrong in (dict(within=0.9), dict(equal_nan=True)):
        with pytest.raises(TypeError, match="rtol and atol, which are missing"):
            octavo.audit(a=x, b=w, defaults="assert_close", **wrong)
