"""The verdict on quantizers, against codes and scales computed in NumPy."""

import numpy as np
import pytest
import reference

import octavo


def deepgemm(x, rows=1, cols=128, scale=lambda s: s):
    """What DeepGEMM makes of float32 in blocks: codes and scales, max(amax, 1e-4)/448, and what
    becomes of them; codes are made by multiplying with the reciprocal."""
    grid = [[x[i : i + rows, j : j + cols] for j in range(0, x.shape[1], cols)] for i in range(0, x.shape[0], rows)]
    amax = np.array([[max(np.abs(block).max(), np.float32(1e-4)) for block in row] for row in grid], np.float32)
    scales = np.array(scale(amax / np.float32(448)), np.float32)
    wide = reference.spread(scales, (rows, cols), x.shape)
    scaled = (x * (np.float32(1) / wide)).astype(np.float32)
    return reference.encode(scaled, "E4M3"), scales


def rounded_up(s):
    return np.exp2(np.ceil(np.log2(s.astype(np.float64)))).astype(np.float32)


@pytest.fixture(scope="module")
def values():
    rng = np.random.default_rng(36)
    x = rng.standard_normal((6, 300)) * np.exp2(rng.integers(-3, 4, (6, 1)))
    return x.astype(np.float32)


CLAIM = dict(recipe="deepgemm", block="1x128", format="E4M3")


def test_right(values):
    verdict = octavo.check_quantizer(values, *deepgemm(values), **CLAIM)
    assert verdict and verdict.outcome == "pass" and verdict.failure == ""
    assert verdict.json["codes"] == {"all": values.size, "wrong": 0, "undecided": 0}
    assert "PASS: all 18 scales and 1800 codes are those of deepgemm E4M3 1x128, bit for bit" in " ".join(str(verdict).split())
    square = deepgemm(values, 4, 64)
    octavo.check_quantizer(values, *square, **{**CLAIM, "block": "4x64"})
    octavo.check_quantizer(values, *deepgemm(values), recipe="deepgemm", format="e4m3")  # the profile's block
    up = deepgemm(values, scale=rounded_up)
    octavo.check_quantizer(values, *up, **{**CLAIM, "recipe": "deepgemm-ue8m0"})
    bits = (np.log2(up[1]) + 127).astype(np.uint8)
    octavo.check_quantizer(values, up[0], bits, scale_format="e8m0", **{**CLAIM, "recipe": "deepgemm-ue8m0"})


def test_tensors():
    x = octavo.generate(32, 256, seed=7)
    for profile, block in [("deepseek", "1x128"), ("mx-rceil", "1x32"), ("nvfp4-modelopt", "1x16"), ("te-current", "tensor")]:
        t = octavo.quantize(x, profile, block=block)
        octavo.check_quantizer(x, t, recipe=profile)
        octavo.check_quantizer(x, t, recipe=profile, block=block)
    t = octavo.quantize(x, "nvfp4-modelopt", block="1x16")
    parts = dict(recipe="nvfp4-modelopt", format="E2M1")
    octavo.check_quantizer(x, t.codes, t.scales, t.outer, **parts)
    packed = t.codes[:, ::2] | t.codes[:, 1::2] << 4
    octavo.check_quantizer(x, packed, t.scales, t.outer, packed=True, **parts)
    with pytest.raises(octavo.Mismatch):
        octavo.check_quantizer(x, packed, t.scales, t.outer * 2, packed=True, **parts)
    bits = (x.view(np.uint32) >> 16).astype(np.uint16)
    wide = (bits.astype(np.uint32) << 16).view(np.float32)
    octavo.check_quantizer(bits, octavo.quantize(wide, "deepgemm"), recipe="deepgemm", x_dtype="bfloat16")
    half = x.astype(np.float16)
    octavo.check_quantizer(half, octavo.quantize(half, "deepgemm"), recipe="deepgemm")
    whole = octavo.quantize(x, "te-current", block="tensor")
    octavo.check_quantizer(x, whole.codes, float(whole.scales[0, 0]), recipe="te-current", block="tensor", format="E4M3")


def test_stochastic():
    x = octavo.generate(64, 256, seed=7)
    t = octavo.quantize(x, "deepgemm", rounding="stochastic", seed=5)
    octavo.check_quantizer(x, t, recipe="deepgemm", rounding="stochastic")
    with pytest.raises(octavo.Mismatch):
        octavo.check_quantizer(x, t, recipe="deepgemm")
    with pytest.raises(octavo.Mismatch):
        octavo.check_quantizer(x, octavo.quantize(x, "deepgemm"), recipe="deepgemm", rounding="stochastic")


def late(x):
    """Scales are rounded up to powers of two after codes are made."""
    codes, scales = deepgemm(x)
    return codes, rounded_up(scales)


def neighbour(x):
    """Each scale is made of the amax of the next block of the row."""
    codes, scales = deepgemm(x, scale=lambda s: np.roll(s, -1, 1))
    return codes, scales


def twice(x):
    """Scaled values are rounded to float16 first."""
    _, scales = deepgemm(x)
    wide = reference.spread(scales, (1, 128), x.shape)
    half = (x * (np.float32(1) / wide)).astype(np.float16)
    return reference.encode(half.astype(np.float64), "E4M3"), scales


@pytest.mark.parametrize(
    "quantizer, profile, named",
    [
        (late, "deepgemm-ue8m0", "codes-unrounded-scale"),
        (neighbour, "deepgemm", "scale-neighbour"),
        (twice, "deepgemm", "double-rounding"),
    ],
)
def test_faults_are_named(quantizer, profile, named, tmp_path):
    x = octavo.generate(64, 512, seed=3)
    page = tmp_path / "page.html"
    with pytest.raises(octavo.Mismatch) as error:
        octavo.check_quantizer(x, *quantizer(x), **{**CLAIM, "recipe": profile}, page=page)
    report = str(error.value)
    assert report.startswith("the kernel's quantized tensor is wrong\n\nFAIL: ")
    assert named in report, report
    assert error.value.verdict.outcome == "fail"
    assert error.value.verdict.json["findings"][0]["changes"][0]["kind"] == named
    assert "</html>" in page.read_text()


def test_bad_input(values):
    codes, scales = deepgemm(values)
    with pytest.raises(octavo.InputError, match="no-such"):
        octavo.check_quantizer(values, codes, scales, recipe="no-such", format="E4M3")
    with pytest.raises(octavo.InputError, match="add format"):
        octavo.check_quantizer(values, codes, scales, recipe="deepgemm")
    with pytest.raises(octavo.InputError, match="say another block"):
        octavo.check_quantizer(values, codes, scales, **{**CLAIM, "block": "1x64"})
    with pytest.raises(octavo.InputError, match="codes are those of values one by one"):
        octavo.check_quantizer(values[:, 1:], codes, scales, **CLAIM)
    with pytest.raises(octavo.InputError, match='x is uint16: say x_dtype="bfloat16"'):
        octavo.check_quantizer(values.astype(np.uint16), codes, scales, **CLAIM)
    with pytest.raises(octavo.InputError, match="name them with outer"):
        octavo.check_quantizer(values, codes & 7, scales, recipe="nvfp4-modelopt", format="E2M1", block="1x128")
    with pytest.raises(TypeError, match="scales is missing"):
        octavo.check_quantizer(values, codes, **CLAIM)
    t = octavo.quantize(values, "deepgemm")
    with pytest.raises(TypeError, match="which has its outer scales"):
        octavo.check_quantizer(values, t, outer=1.0, recipe="deepgemm")
    with pytest.raises(TypeError, match="which has its scales"):
        octavo.check_quantizer(values, t, scales, recipe="deepgemm")
