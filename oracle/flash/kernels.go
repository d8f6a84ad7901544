package flash

import (
	"strings"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/oracle"
)

// Octavo is what package attention computes.
func Octavo(p attention.PFormat, splits int) Kernel {
	k := Kernel{Name: "octavo-" + p.String(), Tile: 64, Splits: splits, Sum: SumLanes,
		Offset: p.Offset(),
		Scores: Scores{Product: Product{Order: Contract}, Scaling: InProduct},
		Values: Product{Order: Contract}, Exp2: Exponential{Method: Elementary},
		P: map[attention.PFormat]Cast{attention.PBFloat16: BFloat16, attention.PE4M3: E4M3,
			attention.PE5M2: E5M2}[p],
		Evidence: "package attention's documentation; compared with it, all bits"}
	return k
}

// flashAttention3 is the FP8 forward pass of FlashAttention-3 on Hopper.
func flashAttention3() Kernel {
	core := Product{Order: Instruction, Model: oracle.HopperWGMMA()}
	carried := core
	carried.Carry = true
	return Kernel{Name: "fa3-hopper", Tile: 224, Descending: true, Offset: 8, P: E4M3, Sum: SumQuads,
		Scores: Scores{Product: core, Frame: RawContracted}, Values: carried,
		Exp2: Exponential{Method: Flushed},
		Evidence: "hopper/softmax.h and tile_size.h of flash-attention 0251105a for head dimension " +
			"128 (160 keys for 64); " +
			"that the maximum's offset is contracted is expected, not verified; ex2.approx and " +
			"lg2.approx are taken as correctly rounded"}
}

// flashAttention4 is the FP8 forward pass of FlashAttention-4 on Blackwell with an offset
// and a threshold: 8 and 0 now, formerly 8 and 4, 8 and 0.75, and 4 and 4.
func flashAttention4(offset, threshold float32) Kernel {
	core := Product{Order: Instruction, Model: oracle.BlackwellTCGen05()}
	carried := core
	carried.Carry = true
	return Kernel{Name: "fa4", Tile: 128, Descending: true, Offset: offset, Threshold: threshold,
		P: E4M3, Sum: SumPairs,
		Scores: Scores{Product: core, Frame: Raw}, Values: carried, Exp2: Exponential{Method: Flushed},
		Evidence: "flash_attn/cute/softmax.py, utils.py and flash_fwd_sm100.py of flash-attention " +
			"0251105a; no polynomial, " +
			"whose share of the exponentials is tuned; ex2.approx, lg2.approx and rcp.approx are taken " +
			"as correctly rounded"}
}

// named returns k under another name.
func named(name string, k Kernel) Kernel {
	k.Name = name
	return k
}

func flashAttention4BF16() Kernel {
	k := flashAttention4(0, 8)
	k.Name, k.P = "fa4-bf16", BFloat16
	model := oracle.Blackwell(oracle.BF16)
	k.Scores.Product.Model, k.Values.Model = model, model
	k.Exp2 = Exponential{Method: Flushed, Degree: 3, Every: 10, Some: 4, Start: 1}
	k.Evidence = "as fa4, with the polynomial as it is tuned for head dimension 128 without a " +
		"causal mask"
	return k
}

func flashInfer() Kernel {
	k := flashAttention3()
	k.Name, k.Tile, k.Offset, k.PScale = "flashinfer-hopper", 128, 0, 448
	k.Scores.Scaling, k.Scores.Frame, k.Ending, k.Base2 = FoldedLeft, Raw, Quotient, true
	k.Evidence = "attention_updater.cuh and variants.cuh of FlashInfer (Hopper); ex2.approx and " +
		"lg2.approx are taken as correctly rounded"
	return k
}

func flashMLA() Kernel {
	core := Product{Order: Instruction, Model: oracle.Hopper(oracle.BF16)}
	carried := core
	carried.Carry = true
	return Kernel{Name: "flashmla-hopper", Tile: 64, FirstMax: -1e30, P: BFloat16, Sum: SumQuadTiles,
		Scores: Scores{Product: core, Frame: Fused}, Values: carried, Exp2: Exponential{Method: Flushed},
		Evidence: "csrc/sm90/decode/sparse_fp8/splitkv_mla.cuh of FlashMLA; its operands are BF16, a " +
			"record's after it is read; " +
			"a row without keys has log-sum-exp +Inf there; contractions and approximations are taken as " +
			"in fa3-hopper"}
}

func sage2() Kernel {
	return Kernel{Name: "sage2-hopper", Tile: 128, Offset: 8.807, FirstMax: -5e6, P: E4M3,
		Sum: SumQuads, Ending: ScaleLast,
		Scores: Scores{Frame: Lifted}, Values: Product{Order: Instruction, Model: oracle.HopperWGMMA()},
		Exp2: Exponential{Method: Flushed},
		Evidence: "csrc/qattn of SageAttention (SM90): sums of integer codes are exact, P·V is added " +
			"tile by tile; " +
			"approximations are taken as correctly rounded"}
}

// Kernels returns the kernels that have names.
func Kernels() []Kernel {
	return []Kernel{
		Octavo(attention.PBFloat16, 1), Octavo(attention.PE4M3, 1), Octavo(attention.PE5M2, 1),
		flashAttention3(), flashAttention4(8, 0), named("fa4-8-4", flashAttention4(8, 4)),
		named("fa4-8-0.75", flashAttention4(8, 0.75)), named("fa4-4-4", flashAttention4(4, 4)),
		flashAttention4BF16(), flashInfer(), flashMLA(), sage2(),
	}
}

// ParseKernel returns the kernel of the given name, in any case. Another is an [ErrKernel].
func ParseKernel(name string) (Kernel, error) {
	var names []string
	for _, k := range Kernels() {
		if strings.EqualFold(name, k.Name) {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return Kernel{}, sentinel.Errorf(ErrKernel, "flash: unknown kernel %q: want one of %s", name,
		strings.Join(names, ", "))
}
