package checkpoint

import (
	"context"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/tensor"
)

// Claims returns what a conversion by the plan claims to keep: codes under scales that are
// powers of two, which become other codes or values. Of scales that are no bytes it reads all.
func (p *Plan) Claims() (claims []LosslessClaim, err error) {
	for _, s := range p.Shards {
		for _, t := range s.Targets {
			c, ok := t.Claim()
			if ok && t.Weight.Scheme.ScaleFormat == tensor.E8M0Scales {
				if ok, err = powersOfTwo(t.Weight); err != nil {
					return nil, err
				}
				if ok {
					claims = append(claims, c)
				}
			}
		}
	}
	return claims, nil
}

// ProofSummary is what became of a claim, as a certificate has it.
type ProofSummary struct {
	Holds bool `json:"holds"`

	// Blocks were looked at, whose widest spread and reach these are, and the limit of
	// the reach: see [Proof].
	Blocks int64 `json:"blocks"`
	Spread int   `json:"spread"`
	Reach  int   `json:"reach"`
	Limit  int   `json:"limit"`

	// Block is the first that breaks the claim, as its matrix, row and column in the grid of
	// the scheme, and Why says how. Chosen says that there is a scale that loses nothing
	// there, and that the arithmetic has chosen another.
	Block  []int  `json:"block,omitempty"`
	Why    string `json:"why,omitempty"`
	Chosen bool   `json:"chosen,omitempty"`
}

// ProofSummary returns what a certificate has of p.
func (p *Proof) Summary() *ProofSummary {
	v := &ProofSummary{
		Holds: p.Broken == nil, Blocks: p.Blocks, Spread: p.Spread, Reach: p.Reach, Limit: p.Limit,
	}
	if b := p.Broken; b != nil {
		v.Block, v.Why, v.Chosen = []int{b.Matrix, b.Row, b.Col}, b.Why, b.Chosen
	}
	return v
}

// claims proves what the plan claims, or says what breaks it, by the names of weights.
func (c *converting) claims(ctx context.Context) (map[string]*ProofSummary, error) {
	claims, err := c.p.Claims()
	if err != nil || len(claims) == 0 {
		return nil, err
	}
	proofs, err := ProveLossless(ctx, claims, c.o)
	if err != nil {
		return nil, err
	}
	verdicts := map[string]*ProofSummary{}
	for _, p := range proofs {
		verdicts[p.Weight.Name] = p.Summary()
		if c.p.lossless && p.Broken != nil {
			return nil, sentinel.Errorf(ErrLossy, "tensor %q: %v", p.Weight.Name, p.Broken)
		}
	}
	return verdicts, nil
}

// checkLossless refuses what a certificate says to have lost something.
func (p *Plan) checkLossless(c *Certificate) error {
	if !p.lossless || c.Lossless {
		return nil
	}
	for _, t := range c.Tensors {
		if !t.Exact {
			return sentinel.Errorf(ErrLossy, "tensor %q: from %s to %s the largest error is %v, at %v",
				t.Name, t.From, t.To, t.Largest, t.Where)
		}
	}
	return nil
}

// proved is what a certificate says of a conversion that loses nothing.
const proved = "every weight was read back from the files and compared with the source: " +
	"all values are the same"

// prove compares all weights that were written with those of the source. It is an error if a
// value differs.
func (c *converting) prove(ctx context.Context) error {
	made, err := Open(c.dir)
	if err != nil {
		return err
	}
	defer made.Close()
	written := map[string]bool{}
	for _, s := range c.p.Shards {
		for _, t := range s.Targets {
			if t.Weight != nil {
				written[t.Weight.Name] = true
			}
		}
	}
	chosen := func(weight string) bool { return written[weight] }
	all, err := Diff(ctx, c.p.source, made, chosen, c.o)
	if err != nil {
		return err
	}
	for _, d := range all {
		if d.Same == Incomparable || d.Differ > 0 {
			return sentinel.Errorf(ErrLayout,
				"tensor %q: it is not that of the source when it is read back from %s: %d values differ%s",
				d.Name, c.dir, d.Differ, d.Why)
		}
	}
	return nil
}
