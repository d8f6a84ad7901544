"""Runs the operators of octavo selftest --export on a device, through PyTorch.

    python selftest_torch.py [--device cuda] [--for SECONDS] > verdict.json
    octavo selftest --check verdict.json

It reads operands.safetensors and expected.json beside it and needs PyTorch and nothing else.
Operands are small integers times powers of two: the right result is an integer in a unit
that is said, whatever the order of additions, and is compared exactly, by the checksum
sum of w*x mod 2^64 of each row. One JSON verdict is printed. The exit status is 0 if it is
"pass", 1 if it is "fail" and 2 if an operator could not be run here.

Products of FP8 are asked of torch._scaled_mm where it takes such operands and such scales,
and otherwise of a float32 matmul of the decoded operands, without TF32; "how" says which.
Without --for each operator is run three times. It has run on a processor with PyTorch 1.13,
which has no float8 and so skips casts, and on an H200 with PyTorch 2.11.
"""

import argparse
import json
import math
import os
import platform
import struct
import sys
import time

import torch

FORMATS = {  # bits of the mantissa, bias, and what PyTorch calls it
    "e4m3": (3, 7, "float8_e4m3fn"),
    "e5m2": (2, 15, "float8_e5m2"),
    "e4m3fnuz": (3, 8, "float8_e4m3fnuz"),
    "e5m2fnuz": (2, 16, "float8_e5m2fnuz"),
}
MASK = (1 << 64) - 1


class Skipped(Exception):
    """An operator that this PyTorch does not have."""


def read(path):
    """Returns the tensors of a safetensors file."""
    types = {"U8": torch.uint8, "F32": torch.float32, "BF16": torch.bfloat16,
             "I32": torch.int32, "I64": torch.int64}
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(length))
        data = bytearray(file.read())
    tensors = {}
    for name, info in header.items():
        shape, (begin, _) = info["shape"], info["data_offsets"]
        tensors[name] = torch.frombuffer(data, dtype=types[info["dtype"]], count=math.prod(shape),
                                         offset=begin).reshape(shape)
    return tensors


def decode(codes, form):
    """Returns finite codes as float32, from their bits."""
    mantissa, bias, _ = FORMATS[form]
    x = codes.to(torch.int32)
    fraction, exponent = x & ((1 << mantissa) - 1), (x & 0x7F) >> mantissa
    normal = (exponent > 0).to(torch.int32)
    power = torch.tensor([2.0**e for e in range(128)], dtype=torch.float64).to(x.device)
    value = (fraction + (normal << mantissa)).to(torch.float64) * power[(exponent - normal).to(torch.int64)]
    value = value * (1 - 2 * ((x >> 7) & 1)).to(torch.float64) * 2.0 ** (1 - bias - mantissa)
    return value.to(torch.float32)


def spread(scales, block, rows, cols):
    """Returns the scale of each element."""
    scales = scales.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)
    return scales[:rows, :cols]


def multiply(a, sa, b, sb, w):
    """Returns A B^T and how it was computed."""
    out = torch.bfloat16 if w["bfloat16"] else torch.float32
    why = "no kernel for these blocks is asked for"
    try:
        whole = sa.shape[1] == 1 and sb.shape[1] == 1
        if whole and a.shape[0] > 0:
            ca = a.view(getattr(torch, FORMATS[w["a_format"]][2]))
            cb = b.view(getattr(torch, FORMATS[w["b_format"]][2]))
            if w["a_block"][0] == 1:
                one, two = sa.reshape(-1, 1), sb.reshape(1, -1)
            else:
                one, two = sa.reshape(()), sb.reshape(())
            c = torch._scaled_mm(ca, cb.t(), scale_a=one, scale_b=two, out_dtype=out,
                                 use_fast_accum=False)
            return c, "torch._scaled_mm"
    except (AttributeError, RuntimeError, TypeError, NotImplementedError, ValueError) as error:
        why = (str(error).splitlines() or [""])[0][:80]
    x = decode(a, w["a_format"]) * spread(sa, w["a_block"], *a.shape)
    y = decode(b, w["b_format"]) * spread(sb, w["b_block"], *b.shape)
    return (x @ y.t()).to(out), "float32 matmul of decoded operands (" + why + ")"


def product(t, w):
    c, how = multiply(t["a"], t["a_scales"], t["b"], t["b_scales"], w)
    return [c], how


def grouped(t, w):
    """Rows of A are groups, each multiplied by its part of B."""
    groups = len(w["rows"])
    n, parts, at, how = t["b"].shape[0] // groups, [], 0, ""
    for g, rows in enumerate(w["rows"]):
        if rows > 0:
            b, sb = t["b"][g * n:(g + 1) * n], t["b_scales"][g * n:(g + 1) * n]
            c, how = multiply(t["a"][at:at + rows], t["a_scales"][at:at + rows], b, sb, w)
            parts.append(c)
            at += rows
    return [torch.cat(parts)], how


def attention(t, w):
    q, k, v = t["q"], t["k"], t["v"]
    heads, tokens, dim = q.shape
    if hasattr(torch.nn.functional, "scaled_dot_product_attention"):
        out = torch.nn.functional.scaled_dot_product_attention(
            q.reshape(1, heads, tokens, dim), k.reshape(1, heads, tokens, dim),
            v.reshape(1, heads, tokens, dim), is_causal=w["causal"])
        how = "scaled_dot_product_attention"
    else:
        s = q.to(torch.float32) @ k.to(torch.float32).transpose(1, 2) / math.sqrt(dim)
        if w["causal"]:
            i = torch.arange(tokens).to(q.device)
            s = s - 1e9 * (i.reshape(1, -1) > i.reshape(-1, 1)).to(torch.float32)
        out = torch.softmax(s, -1) @ v.to(torch.float32)
        how = "matmul, softmax and matmul in float32"
    return [out.reshape(heads * tokens, dim)], how


def cast(t, w):
    dtype = getattr(torch, FORMATS[w["format"]][2], None)
    if dtype is None:
        raise Skipped("this PyTorch has no " + FORMATS[w["format"]][2])
    return [t["x"].to(dtype).view(torch.uint8), t["codes"].view(dtype).to(torch.float32)], ""


def swiglu(t, _):
    u, g, dz = t["u"], t["g"], t["dz"]
    sigmoid = 1 / (1 + torch.exp(-g))
    silu = g * sigmoid
    return [u * silu, dz * silu, u * dz * sigmoid * (1 + g * (1 - sigmoid))], ""


def rmsnorm(t, _):
    x, gain, dy = t["x"], t["gain"], t["dy"]
    n = x.shape[1]
    r = torch.sqrt((x * x).sum(1) / n + 1e-30).reshape(-1, 1)
    v = x / r
    g = dy * gain
    along = (g * v).sum(1).reshape(-1, 1) / n
    return [v * gain, (g - v * along) / r, (dy * v).sum(0).reshape(1, -1)], ""


KINDS = {"product": product, "grouped": grouped, "attention": attention, "cast": cast,
         "swiglu": swiglu, "rmsnorm": rmsnorm}


def compare(got, right, want, weights):
    """Returns the sums of the rows of a result, and the first wrong element or None."""
    rows, cols = right["rows"], right["cols"]
    if tuple(got.shape) != (rows, cols):
        return [], {"place": right["what"], "expected": f"{rows}x{cols}", "got": str(tuple(got.shape))}
    x = got.to(torch.float64) * 2.0 ** -right["unit"]
    finite = x.abs() < 2.0**53
    n = torch.where(finite, x, torch.zeros_like(x)).to(torch.int64)
    exact = (finite & (n.to(torch.float64) == x)).to(torch.int64).sum(1).tolist()
    sums = [s & MASK for s in (n * weights[:cols].reshape(1, -1)).sum(1).tolist()]
    for i, text in enumerate(right["sums"]):
        if sums[i] == int(text, 16) and exact[i] == cols:
            continue
        unit = 2.0 ** right["unit"]
        for j, (a, b) in enumerate(zip(x[i].tolist(), want[i].tolist())):
            if a != b:
                place = f"row {i}, column {j} of {right['what']}, {rows}x{cols}"
                return sums, {"place": place, "expected": f"{b * unit:g}", "got": f"{a * unit:g}"}
        return sums, {"place": f"row {i} of {right['what']}, {rows}x{cols}",
                      "expected": "sum " + text, "got": f"sum {sums[i]:016x}"}
    return sums, None


def run(operator, tensors, weights, device):
    """Runs an operator once: its checksum, how, and the first wrong element or None."""
    prefix = operator["name"] + "."
    t = {n[len(prefix):]: x for n, x in tensors.items() if n.startswith(prefix)}
    on = {n: x.to(device) for n, x in t.items() if not n.startswith("want")}
    results, how = KINDS[operator["kind"]](on, operator["with"])
    total, host = 0, weights.tolist()
    on_device = weights.to(device)
    for k, (got, right) in enumerate(zip(results, operator["results"])):
        sums, wrong = compare(got, right, t[f"want{k}"], on_device)
        if wrong:
            return "", how, wrong
        total += (2 * k + 1) * sum((host[i] & MASK) * s for i, s in enumerate(sums))
    checksum = f"{total & MASK:016x}"
    if checksum != operator["checksum"]:
        return "", how, {"place": "the checksum", "expected": operator["checksum"], "got": checksum}
    return checksum, how, None


def describe(device):
    name = platform.processor() or platform.machine()
    if device.type == "cuda":
        name = torch.cuda.get_device_name(device)
    return {"device": f"{name} ({device})", "system": platform.platform(),
            "software": f"torch {torch.__version__}, Python {platform.python_version()}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", help="such as cuda:1 or cpu (default: cuda if there is one)")
    parser.add_argument("--for", dest="seconds", type=float, help="repeat for so many SECONDS")
    args = parser.parse_args()
    device = torch.device(args.device or ("cuda" if torch.cuda.is_available() else "cpu"))
    torch.backends.cuda.matmul.allow_tf32 = False

    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "expected.json"), encoding="utf-8") as file:
        pack = json.load(file)
    tensors = read(os.path.join(here, "operands.safetensors"))
    weights = tensors.pop("weights")

    verdict = {"form": pack["form"], "version": pack["version"], "verdict": "incomplete",
               "size": pack["size"], "seed": pack["seed"], "seconds": 0.0, "repetitions": 0,
               "machine": describe(device), "operators": []}
    for o in pack["operators"]:
        verdict["operators"].append({"name": o["name"], "repetitions": 0, "elements": 0})
    start = time.monotonic()
    try:
        while True:
            for o, said in zip(pack["operators"], verdict["operators"]):
                if "skipped" in said:
                    continue
                try:
                    checksum, how, wrong = run(o, tensors, weights, device)
                except Skipped as error:
                    said["skipped"] = str(error)
                    continue
                except Exception as error:  # what a device does that fails
                    text = (str(error).splitlines() or [""])[0]
                    checksum, how, wrong = "", "", {
                        "place": "all of the result", "expected": "no error",
                        "got": f"{type(error).__name__}: {text}"[:200]}
                if how:
                    said["how"] = how
                if wrong:
                    verdict["verdict"] = "fail"
                    verdict["failure"] = {"operator": o["name"], "seed": pack["seed"],
                                          "repetition": verdict["repetitions"], **wrong}
                    break
                said["checksum"] = checksum
                said["repetitions"] += 1
                said["elements"] += sum(r["rows"] * r["cols"] for r in o["results"])
            if "failure" in verdict:
                break
            verdict["repetitions"] += 1
            elapsed = time.monotonic() - start
            if elapsed >= args.seconds if args.seconds else verdict["repetitions"] == 3:
                if not any("skipped" in said for said in verdict["operators"]):
                    verdict["verdict"] = "pass"
                break
    except KeyboardInterrupt:
        pass
    verdict["seconds"] = round(time.monotonic() - start, 3)
    print(json.dumps(verdict, indent=1))
    sys.exit({"pass": 0, "fail": 1}.get(verdict["verdict"], 2))


if __name__ == "__main__":
    main()
