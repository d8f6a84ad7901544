package judge

import (
	"fmt"
	"math"
	"strings"

	"github.com/octavo-fp8/octavo/gemm"
	"github.com/octavo-fp8/octavo/internal/number"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/oracle/power"
	"github.com/octavo-fp8/octavo/tensor"
)

// Verdict is what was found. Its JSON is stable: keys are added, never changed.
type Verdict struct {
	Pass bool `json:"pass"`
	// Outcome is "pass", "fail" or "undecided": then no element that could be judged is wrong,
	// and Doubt says which could not.
	Outcome string `json:"outcome"`
	Doubt   *Doubt `json:"undecided,omitempty"`
	Demand  string `json:"demand"` // "bits" or "bound"
	Model   string `json:"model"`  // "exact", "canonical" or that of a GPU
	// Evidence says on what the model was verified.
	Evidence   string `json:"evidence,omitempty"`
	Promote    int    `json:"promote"`
	ScaleOrder string `json:"scaleOrder"`
	// Bound names what the bound of the distance to the exact result follows from,
	// and LargestBound is the largest of all elements.
	Bound        string        `json:"bound"`
	LargestBound oracle.Number `json:"largestBound"`
	// Blind says what a kernel that keeps within the bound may have done wrong unseen.
	Blind *power.Blind `json:"blind,omitempty"`
	// Power says what would have been seen, and what the errors say taken together; it is
	// nil where the claim has alarms ignored.
	Power *Power `json:"power,omitempty"`

	Type       string  `json:"type"` // of C: F32, BF16 or F16
	M          int     `json:"m"`
	N          int     `json:"n"`
	K          int     `json:"k"`
	A          Operand `json:"a"`
	B          Operand `json:"b"`
	Bias       bool    `json:"bias"`
	Accumulate bool    `json:"accumulate"`

	// Comparison compares with what is claimed, Exact, where bits are, with the exact
	// result.
	Comparison oracle.Comparison  `json:"report"`
	Exact      *oracle.Comparison `json:"exact,omitempty"`

	// Sample says which elements were looked at, if not all. Numbers of elements in the
	// comparisons are of those.
	Sample *Sampled `json:"sample,omitempty"`

	// Explanation says which faults make this C of the operands, where it is wrong.
	Explanation *fault.Explanation `json:"explanation,omitempty"`

	// errorMap is the errors over the rows and columns of C, in units of the bound or, where
	// bits are claimed, of the last place.
	errorMap *verdict.Map
	// other is the verdict under the bound of a GPU whose bits the result has, or nil.
	other *other
}

// Operand says what an operand is.
type Operand struct {
	Name   string `json:"name"`
	Format string `json:"format"`
	Shape  []int  `json:"shape"`
	Block  string `json:"block"`
	// ScaleFormat is that of the scales of blocks, and Outer the scales above them, if any.
	ScaleFormat tensor.ScaleFormat `json:"scaleFormat"`
	Outer       *Outer             `json:"outer,omitempty"`
	// Scales is the number of scales of blocks, and Distinct that of their values. Alike is
	// the share of pairs of scales that are equal: of swaps, those that no test can see.
	Scales   int     `json:"scales"`
	Distinct int     `json:"distinct"`
	Alike    float64 `json:"alike"`
}

// Outer says what the outer scales of an operand are.
type Outer struct {
	Scales int           `json:"scales"` // their number
	Rows   int           `json:"rows"`   // of the matrix under each; 0 is all
	Divide bool          `json:"divide"` // they are divisors
	First  oracle.Number `json:"first"`  // of them
}

// NewOperand describes t.
func NewOperand(t *tensor.Tensor) Operand {
	o := Operand{Name: t.Name, Format: t.Format.String(), Shape: t.Shape, Block: t.Block.String(), ScaleFormat: t.ScaleFormat}
	rows, cols := t.Grid()
	o.Scales = rows * cols
	values := map[uint32]int{}
	if o.Scales > 0 {
		for r := range rows {
			for _, s := range t.ScaleRow(r) {
				values[math.Float32bits(s)]++
			}
		}
	}
	if o.Distinct = len(values); o.Scales > 1 {
		equal := 0
		for _, n := range values {
			equal += n * (n - 1)
		}
		o.Alike = float64(equal) / float64(o.Scales*(o.Scales-1))
	}
	if !t.Outer.None() {
		o.Outer = &Outer{len(t.Outer.Scales), t.Outer.Rows, t.Outer.Divide, oracle.Number(t.Outer.Scales[0])}
	}
	return o
}

// String describes the operand in one line.
func (o Operand) String() string {
	text := fmt.Sprintf("%s, %s %v, one scale for %s", textout.Quoted(o.Name), o.Format, o.Shape, o.shares())
	if o.ScaleFormat != tensor.Float32Scales {
		text += ", " + o.ScaleFormat.String()
	}
	if o.Outer != nil {
		text += ", " + o.Outer.String()
	}
	if limit := o.Limit(); limit != "" {
		text += "; " + limit
	}
	return text
}

// shares says what shares a scale.
func (o Operand) shares() string {
	rows, cols, _ := strings.Cut(o.Block, "x")
	switch {
	case o.Block == "row":
		return "each row"
	case o.Block == "tensor":
		return "the tensor"
	case rows == "all": // of a block, it may be: who reads a grid of one row cannot tell
		all := 1
		for _, n := range o.Shape[:max(len(o.Shape)-1, 0)] {
			all *= n
		}
		return fmt.Sprintf("%dx%s", all, cols)
	case cols == "all":
		return rows + " rows"
	}
	return o.Block
}

// Limit says that swapped scales would not be seen, where more than a quarter of their
// pairs are equal, and otherwise "".
func (o Operand) Limit() string {
	const many = 0.25
	switch {
	case o.Scales > 1 && o.Distinct == 1:
		return fmt.Sprintf("its %d scales are all equal: swapped scales would not be seen", o.Scales)
	case o.Alike > many:
		return fmt.Sprintf("its %d scales have %d distinct values, and %.0f %% of pairs are equal: a swap of equal scales would not be seen", o.Scales, o.Distinct, 100*o.Alike)
	}
	return ""
}

// String says how many outer scales there are, such as "times an outer scale of 0.0117".
func (o *Outer) String() string {
	how := "times"
	if o.Divide {
		how = "divided by"
	}
	switch {
	case o.Scales == 1:
		return fmt.Sprintf("%s an outer scale of %s", how, full(o.First))
	case o.Rows == 1:
		return how + " an outer scale for each row"
	}
	return fmt.Sprintf("%s an outer scale for every %d rows", how, o.Rows)
}

// describe returns a verdict that says what was claimed.
func (j *job) describe() *Verdict {
	v := &Verdict{
		Demand: "bits", M: j.m, N: j.n, K: j.k, A: NewOperand(j.a), B: NewOperand(j.b),
		Bias: j.options.Bias != nil, Accumulate: j.options.Accumulate,
	}
	switch c := &j.claim; c.Want {
	case Exact:
		v.Demand, v.Model, v.Bound = "bound", "exact", describeAccumulation(c.Accumulation)
		v.Promote, v.ScaleOrder = c.Accumulation.Kernel.Promote, c.Accumulation.Scales.String()
	case Canonical:
		v.Model, v.Bound, v.ScaleOrder = "canonical", "float32", oracle.AThenB.String()
	case Predicted:
		order := c.Kernel.Scales
		if order == oracle.AnyOrder {
			order = oracle.AThenB
		}
		v.Model, v.Evidence, v.Bound = c.Kernel.Model.Name, c.Kernel.Model.Evidence, "a posteriori"
		v.Promote, v.ScaleOrder = c.Kernel.Promote, order.String()
	}
	return v
}

// typeOf names a type of C as safetensors does.
func typeOf[T gemm.Output]() string {
	return map[number.Format]string{number.FP32: "F32", number.BF16: "BF16", number.FP16: "F16"}[number.Of[T]()]
}

func describeAccumulation(a oracle.Accumulation) string {
	switch {
	case a.Kernel.Model.Name != "":
		return a.Kernel.Model.Name
	case a.Truncated:
		return "float32-truncated"
	case a.Dequantized:
		return "dequantized"
	}
	return "float32"
}
