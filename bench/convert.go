package bench

import (
	"context"
	"fmt"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// converted is what conversions of the same values work on.
type converted struct {
	floats    []float32
	codes     []byte
	dst       []float32
	dstCodes  []byte
	stats     fp8.Stats
	tensor    tensor.Tensor
	quantizer scaling.Quantizer
	table     [256]float32
}

// newConverted returns n values, a multiple of 1024.
func newConverted(n int) *converted {
	v := &converted{
		floats: normals(n), codes: make([]byte, n), dst: make([]float32, n), dstCodes: make([]byte, n),
		tensor:    tensor.Tensor{Shape: []int{n / 1024, 1024}},
		quantizer: scaling.Quantizer{Recipe: scaling.Default(scaling.Input), Options: tensor.Options{Workers: 1}},
	}
	fp8.Encode(v.codes, v.floats, fp8.E4M3, fp8.Policy{}, nil)
	for code := range v.table {
		fp8.Decode(v.table[code:code+1], []byte{byte(code)}, fp8.E4M3)
	}
	return v
}

// task is something to do with values.
type task struct {
	name string
	do   func(*converted) error
}

// byLevel are octavo's conversions, which have kernels for each level: of E4M3 unless the
// name says another format.
var byLevel = append([]task{
	{"encode, with Stats", (*converted).encode},
	{"decode", (*converted).decode},
	{"amax", (*converted).amax},
	{quantizing + "1x128", (*converted).quantize},
}, narrowTasks()...)

// quantizing is what names of tasks begin with that find amaxes and scales, too.
const quantizing = "amax, scale, encode: "

// quantizers are profiles of other sorts than those of recipes and the default one: a scale for
// the tensor, one of a byte alone, outer scales for each row, blocks that are divided under an
// outer scale, and a choice between two scales.
var quantizers = []scaling.Profile{
	scaling.TECurrent, scaling.NVFP4TorchAO, scaling.NVFP4TERow, scaling.NVFP4ModelOpt, scaling.NVFP4TE4Over6MAE448,
}

// narrowTasks are conversions to and from narrower formats.
func narrowTasks() (tasks []task) {
	for _, f := range []fp8.Format{fp8.E2M1, fp8.E2M3, fp8.E3M2} {
		tasks = append(tasks, task{fmt.Sprintf("encode %v, with Stats", f), func(v *converted) error {
			fp8.Encode(v.dstCodes, v.floats, f, fp8.Policy{}, &v.stats)
			return nil
		}}, task{fmt.Sprintf("decode %v", f), func(v *converted) error {
			fp8.Decode(v.dst, v.codes, f) // bits above a code's do not count
			return nil
		}})
	}
	quantize := func(name string, r scaling.Recipe) {
		tasks = append(tasks, task{quantizing + name, func(v *converted) error {
			q := v.quantizer
			q.Recipe = r
			return scaling.Quantize(context.Background(), &v.tensor, v.floats, q)
		}})
	}
	for _, r := range NarrowRecipes() {
		quantize(string(r), r.of().input)
	}
	for _, p := range quantizers {
		quantize(string(p), p.Recipe(scaling.Input))
	}
	return append(tasks, task{"Hadamard transform of 16", func(v *converted) error {
		h := scaling.Hadamard{Signs: scaling.NVIDIASigns, Workers: 1}
		return scaling.HadamardTransform(context.Background(), v.dst, v.floats, len(v.floats)/1024, 1024, h)
	}})
}

// comparisons are what octavo's conversions are compared with.
var comparisons = []task{
	{"copy of float32", (*converted).copy},
	{"decode by table", (*converted).lookUp},
}

func (v *converted) encode() error {
	fp8.Encode(v.dstCodes, v.floats, fp8.E4M3, fp8.Policy{}, &v.stats)
	return nil
}

func (v *converted) decode() error {
	fp8.Decode(v.dst, v.codes, fp8.E4M3)
	return nil
}

func (v *converted) amax() error {
	fp8.Amax(v.floats)
	return nil
}

// quantize does amax, scale and encoding of blocks in one pass.
func (v *converted) quantize() error {
	return scaling.Quantize(context.Background(), &v.tensor, v.floats, v.quantizer)
}

func (v *converted) copy() error {
	copy(v.dst, v.floats)
	return nil
}

// lookUp decodes with a look-up for each code.
func (v *converted) lookUp() error {
	for i, code := range v.codes {
		v.dst[i] = v.table[code]
	}
	return nil
}

// cases returns a task at each level, or once where it has none.
func (t task) cases(v *converted, levels []cpu.Level, by string) (cases []Case) {
	for _, l := range levels {
		cases = append(cases, Case{Name: t.name, By: by, Level: l, Workers: 1, Run: func() error { return t.do(v) }})
	}
	return cases
}

// conversions returns those of n values, with what they are compared with.
func conversions(n int, levels []cpu.Level) (cases []Case) {
	v := newConverted(n)
	for _, t := range comparisons {
		cases = append(cases, t.cases(v, []cpu.Level{cpu.Generic}, "")...)
	}
	for _, t := range byLevel {
		cases = append(cases, t.cases(v, levels, Octavo)...)
	}
	return cases
}
