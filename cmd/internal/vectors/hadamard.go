package vectors

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/scaling"
)

// hadamardCase is a random Hadamard transform.
type hadamardCase struct {
	Signs   uint16 `json:"signs"`
	Columns bool   `json:"columns"`
	Inverse bool   `json:"inverse"`
	Input   string `json:"input"`
	Output  string `json:"output"`
}

const hadamardRows, hadamardCols = 24, 40

// hadamard adds transforms of matrices with values of all sizes, and with infinities.
func (s *scaler) hadamard(ctx context.Context) error {
	signs := []uint16{scaling.NVIDIASigns, 0, scaling.RandomHadamard(s.seed).Signs}
	for _, pattern := range []oracle.Pattern{oracle.Outlier, oracle.Infs} {
		if pattern == oracle.Infs {
			signs = signs[:1]
		}
		g := oracle.Generator{Pattern: pattern, Rows: hadamardRows, Cols: hadamardCols, Block: micro, Seed: s.seed, Uniform: true}
		x := g.Values()
		half := narrowed[fp8.BFloat16](x)
		name := "x.hadamard." + pattern.String()
		numbers(s.tensors, name, x, hadamardRows, hadamardCols)
		numbers(s.tensors, name+".bf16", half, hadamardRows, hadamardCols)
		for _, sign := range signs {
			for _, h := range []scaling.Hadamard{
				{Signs: sign}, {Signs: sign, Columns: true}, {Signs: sign, Inverse: true}, {Signs: sign, Columns: true, Inverse: true},
			} {
				y, output, err := transform(ctx, s, name, x, h)
				if err != nil {
					return err
				}
				if s.transformed.values == nil {
					s.transformed = matrix{output, y, []int{hadamardRows, hadamardCols}}
				}
				if _, _, err := transform(ctx, s, name+".bf16", half, h); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// transform adds a case.
func transform[T float32 | fp8.BFloat16](ctx context.Context, s *scaler, input string, x []T, h scaling.Hadamard) ([]T, string, error) {
	y := make([]T, len(x))
	if err := scaling.HadamardTransform(ctx, y, x, hadamardRows, hadamardCols, h); err != nil {
		return nil, "", err
	}
	output := numbers(s.tensors, fmt.Sprintf("hadamard.%d", len(s.index.Hadamard)), y, hadamardRows, hadamardCols)
	s.index.Hadamard = append(s.index.Hadamard, hadamardCase{h.Signs, h.Columns, h.Inverse, input, output})
	return y, output, nil
}
