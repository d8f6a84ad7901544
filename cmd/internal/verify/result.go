package verify

import (
	"github.com/octavo-fp8/octavo/cmd/internal/operand"
	"github.com/octavo-fp8/octavo/oracle"
)

// Result is what was found. Its JSON is stable: keys are added, never changed.
type Result struct {
	Pass   bool   `json:"pass"`
	Demand string `json:"demand"` // "bits" or "bound"
	Model  string `json:"model"`  // "exact", "canonical" or that of a GPU
	// Evidence says on what the model was verified.
	Evidence   string `json:"evidence,omitempty"`
	Promote    int    `json:"promote"`
	ScaleOrder string `json:"scaleOrder"`
	// Bound names what the bound of the distance to the exact result follows from,
	// and LargestBound is the largest of all elements.
	Bound        string        `json:"bound"`
	LargestBound oracle.Number `json:"largestBound"`

	Type       string              `json:"type"` // of C
	M          int                 `json:"m"`
	N          int                 `json:"n"`
	K          int                 `json:"k"`
	A          operand.Description `json:"a"`
	B          operand.Description `json:"b"`
	Bias       bool                `json:"bias"`
	Accumulate bool                `json:"accumulate"`

	// Report compares with what is demanded, Exact, where bits are, with the exact
	// result.
	Report oracle.Report  `json:"report"`
	Exact  *oracle.Report `json:"exact,omitempty"`

	Map *ErrorMap `json:"-"`
}

// describe returns a result that says what was asked.
func (j Job) describe() *Result {
	m, k := j.A.Dims()
	n, _ := j.B.Dims()
	r := &Result{
		Demand: "bits", M: m, N: n, K: k, A: operand.Describe(j.A), B: operand.Describe(j.B),
		Bias: j.Options.Bias != nil, Accumulate: j.Options.Accumulate,
	}
	switch d := &j.Demand; d.Want {
	case Exact:
		r.Demand, r.Model, r.Bound = "bound", "exact", describeAccumulation(d.Accumulation)
		r.Promote, r.ScaleOrder = d.Accumulation.Kernel.Promote, d.Accumulation.Scales.String()
	case Canonical:
		r.Model, r.Bound, r.ScaleOrder = "canonical", "float32", oracle.AThenB.String()
	case Predicted:
		order := d.Kernel.Scales
		if order == oracle.AnyOrder {
			order = oracle.AThenB
		}
		r.Model, r.Evidence, r.Bound = d.Kernel.Model.Name, d.Kernel.Model.Evidence, "a posteriori"
		r.Promote, r.ScaleOrder = d.Kernel.Promote, order.String()
	}
	return r
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
