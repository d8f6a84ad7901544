package multiply

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/octavo-fp8/octavo"
	"github.com/octavo-fp8/octavo/cmd/internal/operand"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Inputs says what to read and multiply.
type Inputs struct {
	Operands operands.Product
	Type     safetensors.DType // of C; "": that of the old C or, without one, F32
	Workers  int               // as in gemm.Options
	Progress progress.Reporter // nil: silent
}

// WriteFile reads the operands and writes C as tensor c of the file at path, which is
// left as it was if there is an error.
func (i *Inputs) WriteFile(ctx context.Context, path string) (*Result, error) {
	files, err := i.Operands.Open()
	if err != nil {
		return nil, err
	}
	defer files.Close()
	p, err := i.product(files)
	if err != nil {
		return nil, err
	}
	dtype := i.Type
	if p.Old != nil {
		dtype = cmp.Or(dtype, p.Old.DType)
		if dtype != p.Old.DType {
			return nil, fmt.Errorf("tensor %q, the old C, is %s and the result %s: want the same type", p.Old.Name, p.Old.DType, dtype)
		}
	}
	dtype = cmp.Or(dtype, safetensors.F32)
	if err := p.WriteFile(ctx, path, dtype); err != nil {
		return nil, err
	}
	written, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	level, err := octavo.Level()
	if err != nil {
		return nil, err
	}
	r := newResult(p)
	r.Out, r.Bytes, r.Type, r.Level = path, written.Size(), string(dtype), level
	return r, nil
}

// product reads all but the old C.
func (i *Inputs) product(files *operands.Files) (*Product, error) {
	a, b, err := operand.Read(&i.Operands, files)
	if err != nil {
		return nil, err
	}
	p := &Product{A: a, B: b, Workers: i.Workers, Progress: i.Progress}
	if p.Bias, err = files.Bias(p.Shape()[1]); err != nil {
		return nil, operand.Missing(&i.Operands, err)
	}
	if i.Operands.Accumulate != "" {
		old, err := files.Old(a, b)
		if err != nil {
			return nil, operand.Missing(&i.Operands, err)
		}
		p.Old = &old
	}
	return p, nil
}
