"""Multiplies the FP8 operands of a safetensors file with torch._scaled_mm.

    python verify_torch.py IN.safetensors GOT.safetensors \
        --a x --a-scales xs --b w --b-scales ws [--out-type bf16] [--fast]

A [M, K] and B [N, K] are quantized per tensor or per row: scales of one element,
or of M and of N. GOT receives C = A B^T as tensor c, for octavo verify. Operands of
`octavo quantize --profile torchao-rowwise --block row` are such, and those of the
products per-tensor and per-row of `octavo vectors`. Needs a GPU with FP8, torch 2.5
or later, and safetensors.
"""

import argparse

import torch
from safetensors import safe_open
from safetensors.torch import save_file

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


def scale(values, rows, name):
    """Returns scales as torch._scaled_mm takes them: one, or a column of rows."""
    values = values.to("cuda", torch.float32)
    if values.numel() == 1:
        return values.reshape(())
    if values.numel() == rows:
        return values.reshape(rows, 1).contiguous()
    raise SystemExit(f"tensor {name!r} has {values.numel()} scales: want 1 or {rows}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input")
    parser.add_argument("output")
    for name in ("a", "a-scales", "b", "b-scales"):
        parser.add_argument("--" + name, required=True)
    parser.add_argument("--out-type", choices=TYPES, default="bf16")
    parser.add_argument("--fast", action="store_true", help="use_fast_accum: no promotion to float32")
    args = parser.parse_args()

    with safe_open(args.input, framework="pt", device="cpu") as file:
        a, b = file.get_tensor(args.a).to("cuda"), file.get_tensor(args.b).to("cuda")
        sa, sb = file.get_tensor(args.a_scales), file.get_tensor(args.b_scales)
    sa, sb = scale(sa, a.shape[0], args.a_scales), scale(sb, b.shape[0], args.b_scales)
    if (sa.numel() == 1) != (sb.numel() == 1):  # both per tensor or both per row
        sa, sb = sa.expand(a.shape[0], 1).contiguous(), sb.expand(b.shape[0], 1).contiguous()
    if sb.dim() == 2:
        sb = sb.t().contiguous()

    # B^T is column-major, as cuBLAS wants it: the transposed view of [N, K].
    c = torch._scaled_mm(a.contiguous(), b.contiguous().t(), scale_a=sa, scale_b=sb,
                         out_dtype=TYPES[args.out_type], use_fast_accum=args.fast)
    save_file({"c": c.cpu().contiguous()}, args.output)
    print(f"{args.output}: {tuple(c.shape)} {c.dtype} on {torch.cuda.get_device_name()}")


if __name__ == "__main__":
    main()
