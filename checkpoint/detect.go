package checkpoint

import (
	"cmp"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// Detect returns the layouts that the checkpoint may be in: those that its configuration
// declares, or, where it declares nothing, those that hold all of its quantized weights. The
// first fits best. Few layouts cannot be told apart without a configuration: what arithmetic
// made codes is not in them. Of a model without quantized weights it is the type that most
// values have.
//
// Detect reads headers alone, but where power-of-two scales tell layouts apart: then it reads
// scales up to the first that is none. It returns none if weights are in schemes that no
// layout has together, or if a method of quantization is not read.
func (c *Checkpoint) Detect() ([]*Layout, error) {
	if c.refuseUnread() != nil {
		return nil, nil
	}
	used := c.schemes()
	if len(used) == 0 {
		return c.detectPlain(), nil
	}
	var found []*Layout
	for _, l := range layouts {
		if l.Declared(c.Config) && l.holds(used) {
			found = append(found, l)
		}
	}
	if len(found) > 0 || c.Config.Method() != "" {
		slices.SortStableFunc(found, func(a, b *Layout) int { return cmp.Compare(len(b.When), len(a.When)) })
		return found, nil
	}
	for _, l := range layouts {
		if !l.holds(used) {
			continue
		}
		if l.PowersOfTwo {
			if all, err := c.powersOfTwo(); err != nil || !all {
				if err != nil {
					return nil, err
				}
				continue
			}
		}
		found = append(found, l)
	}
	slices.SortStableFunc(found, func(a, b *Layout) int { return cmp.Compare(c.misfit(a), c.misfit(b)) })
	return found, nil
}

// schemes returns the schemes that weights are in.
func (c *Checkpoint) schemes() (used []*Scheme) {
	for _, w := range c.weights {
		if w.Scheme != nil && !slices.Contains(used, w.Scheme) {
			used = append(used, w.Scheme)
		}
	}
	return used
}

// holds reports whether a layout has all of some schemes.
func (l *Layout) holds(used []*Scheme) bool {
	if len(l.Rules) == 0 {
		return false
	}
	for _, s := range used {
		if !slices.ContainsFunc(l.Rules, func(r Rule) bool { return r.Scheme == s }) {
			return false
		}
	}
	return true
}

// misfit counts what a layout would have and the checkpoint lacks, or the other way around.
func (c *Checkpoint) misfit(l *Layout) (n int) {
	inputs := slices.ContainsFunc(c.weights, func(w *Weight) bool { return w.Has(Input) })
	if inputs && l.Calibrated == Dynamic || !inputs && l.Calibrated == Calibrated {
		n++
	}
	return n
}

// detectPlain returns the layout of the type that most values have.
func (c *Checkpoint) detectPlain() (found []*Layout) {
	elements := map[safetensors.DType]int64{}
	for _, e := range c.entries {
		elements[e.DType] += e.Len()
	}
	for _, l := range layouts {
		if elements[l.Plain] > 0 {
			found = append(found, l)
		}
	}
	slices.SortStableFunc(found, func(a, b *Layout) int { return cmp.Compare(elements[b.Plain], elements[a.Plain]) })
	return found[:min(len(found), 1)]
}

// powersOfTwo reports whether all scales are.
func (c *Checkpoint) powersOfTwo() (bool, error) {
	for _, w := range c.weights {
		if w.Scheme == nil {
			continue
		}
		if ok, err := powersOfTwo(w); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// powersOfTwo reports whether all scales of a weight are, which those in bytes have to be.
func powersOfTwo(w *Weight) (bool, error) {
	if w.Parts[Scales].DType.Size() == 1 {
		return w.Scheme.ScaleFormat == tensor.E8M0Scales, nil
	}
	var r Reader
	matrices, _, _ := w.Dims()
	rows, cols := w.Grid()
	if err := r.readScales(w, 0, matrices*rows*cols); err != nil {
		return false, err
	}
	return !slices.ContainsFunc(r.t.Scales, func(s float32) bool {
		return math.Float32bits(s)&(1<<23-1) != 0
	}), nil
}
