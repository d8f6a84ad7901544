package serve

import (
	"bytes"
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/claim"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/audit"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/oracle/judge"
	"github.com/octavo-fp8/octavo/safetensors"
)

// auditTest says whether a kernel's test lets faults pass.
func auditTest(c *call) (any, []safetensors.Tensor, error) {
	var o struct {
		productOptions
		Type      fault.Type        `json:"type"`
		Criteria  []audit.Criterion `json:"criteria"`
		Defaults  string            `json:"defaults"`
		Reference string            `json:"reference"`
		Wide      bool              `json:"wide"`
		Alone     bool              `json:"alone"`
		All       bool              `json:"all"`
		Seed      uint64            `json:"seed"`
	}
	if err := c.read(&o, "a", "a_scales", "b", "b_scales", "bias", "old"); err != nil {
		return nil, nil, err
	}
	test := audit.Test{Criteria: o.Criteria, Reference: audit.Reference{Wide: o.Wide}}
	switch o.Defaults {
	case "":
	case "assert_close":
		test.Criteria = append(test.Criteria, audit.AssertClose(o.Type))
	case "allclose":
		test.Criteria = append(test.Criteria, audit.AllClose())
	case "assert_allclose":
		test.Criteria = append(test.Criteria, audit.AssertAllClose())
	default:
		return nil, nil, fmt.Errorf("there are no defaults %q: want assert_close, allclose or assert_allclose", o.Defaults)
	}
	if err := readReference(&test.Reference, o.Reference); err != nil {
		return nil, nil, err
	}
	p, err := c.product(&o.productOptions)
	if err != nil {
		return nil, nil, err
	}
	if err := c.room(p.m, p.n, 4); err != nil {
		return nil, nil, err
	}
	product := fault.Product{A: p.a, B: p.b, Bias: p.bias, Kernel: p.claim.Kernel, Accumulation: p.claim.Accumulation, Bits: p.claim.Want != judge.Exact}
	if p.claim.Want == judge.Canonical {
		product.Accumulation.Scales = oracle.AThenB
	}
	if c.has("old") {
		if _, err := p.files.Old(p.a, p.b); err != nil {
			return nil, nil, err
		}
		if product.Old, err = c.file.Float32s("old"); err != nil {
			return nil, nil, err
		}
	}
	r, err := audit.RunType(c.ctx, o.Type, product, test, audit.Options{NoProposal: o.Alone, Seed: o.Seed, Workers: o.Workers, Progress: c})
	if err != nil {
		return nil, nil, err
	}
	var text bytes.Buffer
	if err := r.WriteText(&text, o.All); err != nil {
		return nil, nil, err
	}
	return map[string]any{"verdict": r.Summary(), "text": text.String(), "report": r}, nil, nil
}

// readReference reads what a test compares with: a source, or the name of a GPU model.
func readReference(r *audit.Reference, name string) error {
	if name == "" {
		return nil
	}
	if r.Of.UnmarshalText([]byte(name)) == nil && r.Of != audit.Predicted {
		return nil
	}
	m, err := claim.ParseModel(name)
	if err != nil {
		return fmt.Errorf("reference: %w; or exact, canonical, dequantized or itself", err)
	}
	r.Of, r.Kernel = audit.Predicted, oracle.Kernel{Model: m.GPU}
	return nil
}
