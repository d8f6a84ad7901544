"""Definitions in NumPy that have nothing in common with octavo."""

import numpy as np

FORMATS = {  # bits of the exponent and of the fraction, bias, codes that are no numbers
    "E4M3": (4, 3, 7, lambda c: np.nan if c & 0x7F == 0x7F else None),
    "E5M2": (5, 2, 15, lambda c: np.inf if c & 0x7F == 0x7C else np.nan if c & 0x7F > 0x7C else None),
    "E4M3FNUZ": (4, 3, 8, lambda c: np.nan if c == 0x80 else None),
    "E5M2FNUZ": (5, 2, 16, lambda c: np.nan if c == 0x80 else None),
}


def table(format):
    """The values of all codes of a format, in float64."""
    _, fraction, bias, special = FORMATS[format]
    values = []
    for code in range(256):
        sign, magnitude = (-1.0 if code & 0x80 else 1.0), code & 0x7F
        e, f = magnitude >> fraction, magnitude & ((1 << fraction) - 1)
        if e == 0:
            value = f * 2.0 ** (1 - bias - fraction)
        else:
            value = (1 + f / (1 << fraction)) * 2.0 ** (e - bias)
        other = special(code)
        values.append(sign * (value if other is None else other))
    return np.array(values)


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


def encode_e2m1(x):
    """The nearest codes of E2M1, of two as near the even one, saturated; zeros keep their sign."""
    magnitude = np.minimum(np.abs(x), 6)
    distance = np.abs(E2M1 - magnitude[..., None])
    near = distance == distance.min(-1, keepdims=True)
    first, last = near.argmax(-1), 7 - near[..., ::-1].argmax(-1)
    return (np.where(first % 2 == 0, first, last) | np.where(np.signbit(x), 8, 0)).astype(np.uint8)


def decode_e2m1(codes):
    """The values of codes of E2M1."""
    return E2M1[codes & 7] * np.where(codes & 8, -1.0, 1.0)


def encode(x, format):
    """The nearest codes of finite float64 values; of two as near the even one, beyond the
    largest that."""
    codes = np.arange(256)
    values = table(format)
    finite = np.isfinite(values) & ~((codes == 0x80) & ("FNUZ" in format))
    out = []
    for v in np.asarray(x, np.float64).reshape(-1):
        same_sign = finite & (np.signbit(values) == np.signbit(v))
        if not np.any(same_sign & (values == 0)):  # FNUZ has no -0
            same_sign |= codes == 0
        distance = np.where(same_sign, np.abs(values - v), np.inf)
        near = codes[distance == distance.min()]
        out.append(near[0] if len(near) == 1 else near[near % 2 == 0][0])
    return np.array(out, np.uint8).reshape(np.shape(x))


def spread(scales, block, shape):
    """The scale of every element."""
    return np.repeat(np.repeat(scales, block[0], 0), block[1], 1)[: shape[0], : shape[1]]


def exact_product(a, a_scales, b, b_scales, format="E4M3"):
    """The exact product, of scales for each element that are powers of two, in integers."""
    step = 2.0**-9 if format == "E4M3" else 2.0**-16

    def integers(codes, scales):
        x = table(format)[codes] / step
        unit = scales.min()
        whole = x.astype(object) * (scales / unit).astype(object)
        return np.vectorize(int, otypes=[object])(whole), unit

    (x, ux), (y, uy) = integers(a, a_scales), integers(b, b_scales)
    total = x.dot(y.T)  # of Python's integers
    return np.vectorize(float, otypes=[np.float64])(total) * (step * step * ux * uy)


def canonical_product(a, a_scales, b, b_scales, block, format="E4M3"):
    """octavo's own order of summation in float32, with scales, one for each row and block of
    K, that are powers of two."""
    va, vb = table(format)[a].astype(np.float32), table(format)[b].astype(np.float32)
    c = np.zeros((len(a), len(b)), np.float32)
    for q, start in enumerate(range(0, a.shape[1], block)):
        p = np.zeros_like(c)
        for chunk in range(start, min(start + block, a.shape[1]), 32):
            lanes = [np.zeros_like(c), np.zeros_like(c)]
            for k in range(chunk, min(chunk + 32, start + block, a.shape[1])):
                lanes[(k - chunk) % 2] += np.outer(va[:, k], vb[:, k])
            p = p + (lanes[0] + lanes[1])
        c = c + p * a_scales[:, q : q + 1] * b_scales[:, q]
    return c
