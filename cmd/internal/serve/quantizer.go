package serve

import (
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/verify"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/oracle/fault"
	judged "github.com/octavo-fp8/octavo/oracle/judge/quantizer"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// checkQuantizer judges what a quantizer made of an array.
func checkQuantizer(c *call) (any, []safetensors.Tensor, error) {
	var o struct {
		Recipe       recipe              `json:"recipe"`
		Block        *tensor.Block       `json:"block"`
		Format       *fp8.Format         `json:"format"`
		Rounding     fp8.Rounding        `json:"rounding"`
		ScaleFormat  *tensor.ScaleFormat `json:"scale_format"`
		ScaleLayout  *fault.GridLayout   `json:"scale_layout"`
		Packed       bool                `json:"packed"`
		OuterDivides bool                `json:"outer_divides"`
		Workers      int                 `json:"workers"`
		Page         bool                `json:"page"`
	}
	if err := c.read(&o, "x", "codes", "scales", "outer"); err != nil {
		return nil, nil, err
	}
	if o.Recipe.Name == "" {
		return nil, nil, fmt.Errorf("%w: name the one that is claimed", errNoRecipe)
	}
	q := verify.Quantizer{
		X: "x", Codes: "codes", Scales: "scales", OuterDivides: o.OuterDivides,
		Format: o.Format, ScaleFormat: o.ScaleFormat, Packed: o.Packed, Layout: o.ScaleLayout,
		Claimed: o.Recipe.Fixed(),
	}
	for _, name := range []string{q.X, q.Codes, q.Scales} {
		info, err := c.find(name)
		if err != nil {
			return nil, nil, err
		}
		if info.DType == safetensors.U16 {
			return nil, nil, fmt.Errorf("tensor %q is U16: say that it is bfloat16", name)
		}
		if n := len(info.Shape); n > 0 { // rows of no columns have no bytes
			if err := c.room(info.Shape[0], 1, 1); err != nil {
				return nil, nil, fmt.Errorf("tensor %q: %w", name, err)
			}
		}
	}
	if c.has("outer") {
		q.Outer = "outer"
	}
	r := scaling.Recipe{Profile: o.Recipe.Profile}
	r.Policy.Rounding = o.Rounding
	if o.Block != nil {
		r.Block = *o.Block
	} else {
		q.DefaultBlock(&r)
	}
	v, err := q.Judge(c.ctx, &operands.Source{File: c.file}, r, judged.Options{Workers: o.Workers})
	if err != nil {
		return nil, nil, err
	}
	return report(v, v.Pass, v.Outcome, v.Title(), o.Page)
}
