"""Answers the probes of octavo identify with torch._scaled_mm.

    octavo identify -o probes.safetensors
    python identify_torch.py probes.safetensors answers.safetensors [--out-type bf16] [--fast]
    octavo identify probes.safetensors --got answers.safetensors

Scales are per tensor, or per row of both operands (octavo identify --a-block row
--b-block row). To ask another kernel, replace multiply: it gets the codes of A [M, K]
and B [N, K] and their grids of scales, and returns C = A B^T, [M, N]. Needs a GPU with
FP8, torch 2.5 or later, and safetensors.
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
            sa, sb = (file.get_tensor(f"{name}.{x}_scale_inv").to("cuda", torch.float32) for x in "ab")
            answers[name + ".c"] = multiply(a, b, sa, sb, args).cpu().contiguous()
    save_file(answers, args.answers)
    print(f"{args.answers}: {len(answers)} products on {torch.cuda.get_device_name()}")


if __name__ == "__main__":
    main()
