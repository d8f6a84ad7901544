"""Answers the probes of octavo identify with torch._scaled_mm, or torch.addmm and mm.

    octavo identify -o probes.safetensors
    python identify_torch.py probes.safetensors answers.safetensors [--out-type bf16] [--fast]
    octavo identify probes.safetensors --got answers.safetensors

Scales are per tensor, or per row of both operands (octavo identify --a-block row
--b-block row). To ask another kernel, replace multiply: it gets the codes of A [M, K]
and B [N, K] and their grids of scales, and returns C = A B^T, [M, N].

Probes in BF16, FP16 and TF32 (octavo identify --float) have no scales: multiply_floats
asks torch.mm for them, and torch.addmm where there is an old C (--old), which
torch._scaled_mm does not take. For C in float32 of 16-bit operands these have to take
out_dtype, as those of torch 2.8 do.

Needs a GPU with FP8, torch 2.5 or later, and safetensors. It ran on an H200 with torch 2.11.
"""

import argparse

import torch
from safetensors import safe_open
from safetensors.torch import save_file

TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}


def multiply(a, b, sa, sb, args):
    """Returns C of one product. B^T is column-major, as cuBLAS wants it."""
    if sa.numel() == 1 and sb.numel() == 1:
        sa, sb = sa.reshape(()), sb.reshape(())
    elif sa.numel() == a.shape[0] and sb.numel() == b.shape[0]:
        sa, sb = sa.reshape(-1, 1).contiguous(), sb.reshape(1, -1).contiguous()
    else:
        raise SystemExit(f"scales {tuple(sa.shape)} and {tuple(sb.shape)}: want both per tensor or both per row")
    return torch._scaled_mm(a.contiguous(), b.contiguous().t(), scale_a=sa, scale_b=sb,
                            out_dtype=TYPES[args.out_type], use_fast_accum=args.fast)


def multiply_floats(a, b, old, args):
    """Returns C of one product of numbers, added to the old C unless that is None."""
    out = TYPES[args.out_type]
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    b = b.contiguous().t()
    dtype = {} if out == a.dtype else {"out_dtype": out}
    if old is None:
        return torch.mm(a.contiguous(), b, **dtype)
    return torch.addmm(old.to(out), a.contiguous(), b, **dtype)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("probes")
    parser.add_argument("answers")
    parser.add_argument("--out-type", choices=TYPES, default="f32")
    parser.add_argument("--fast", action="store_true", help="use_fast_accum: no promotion to float32")
    args = parser.parse_args()

    answers = {}
    with safe_open(args.probes, framework="pt", device="cpu") as file:
        for name in sorted(n[:-2] for n in file.keys() if n.endswith(".a")):
            a, b = (file.get_tensor(f"{name}.{x}").to("cuda") for x in "ab")
            if a.dtype in TYPES.values():
                old = file.get_tensor(f"{name}.old").to("cuda") if f"{name}.old" in file.keys() else None
                answers[name + ".c"] = multiply_floats(a, b, old, args).cpu().contiguous()
                continue
            if f"{name}.old" in file.keys():
                raise SystemExit("torch._scaled_mm adds no old C: write probes without --old")
            sa, sb = (file.get_tensor(f"{name}.{x}_scale_inv").to("cuda", torch.float32) for x in "ab")
            answers[name + ".c"] = multiply(a, b, sa, sb, args).cpu().contiguous()
    save_file(answers, args.answers)
    print(f"{args.answers}: {len(answers)} products on {torch.cuda.get_device_name()}")


if __name__ == "__main__":
    main()
