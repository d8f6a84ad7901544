package fault

import (
	"fmt"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/oracle"
)

// models returns the models that multiply the operands or, if the kernel has a model,
// that.
func (p *problem) models() []oracle.Model {
	if p.hasModel() {
		return []oracle.Model{p.Kernel.Model}
	}
	var all []oracle.Model
	for _, m := range knownModels {
		if p.suits(m) {
			all = append(all, m)
		}
	}
	return all
}

// knownModels are those of package oracle that multiply codes, each arithmetic under one
// of its names.
var knownModels = []oracle.Model{
	oracle.HopperWGMMA(), oracle.AdaMMA(), oracle.BlackwellTCGen05(), oracle.HopperMMA(), oracle.CDNA3MFMA(), oracle.BlackwellMXFP8(),
	oracle.BlackwellNVFP4(),
}

// otherModels are those and the models of units to come, which explain only what a model
// was claimed for: by float32's bounds they are right.
var otherModels = append(slices.Clone(knownModels), namedModels("ace-top4mx", "arm-fdot4", "amx-fp8", "nvfp4-k96", "nvfp4-k128")...)

func namedModels(names ...string) (models []oracle.Model) {
	for _, name := range names {
		if m, err := oracle.ParseModel(name); err == nil {
			models = append(models, m)
		}
	}
	return models
}

// suits reports whether a model multiplies operands of these formats and scales.
func (p *problem) suits(m oracle.Model) bool {
	if !m.Takes(p.A.Format) || !m.Takes(p.B.Format) {
		return false
	}
	switch {
	case m.Unit == oracle.Scaled || m.E8M0:
		return p.a.grid.powers() && p.b.grid.powers() && (p.block >= p.k || p.block%m.K == 0)
	case m.Unit == oracle.Grouped:
		return p.A.ScaleFormat == p.B.ScaleFormat && p.A.ScaleFormat.Encoded() && (p.block >= p.k || p.block%16 == 0)
	}
	return true
}

func listUnpromoted(p *problem, few bool) (all []Fault) {
	for _, m := range p.models() {
		if few && m.Keep >= 23 && len(all) > 0 {
			continue
		}
		all = append(all, Fault{Model: m.Name})
	}
	return all
}

func listPromotions(p *problem, few bool) (all []Fault) {
	for _, m := range p.models() {
		if m.Keep >= 23 && !p.hasModel() || few && !p.hasModel() {
			continue
		}
		for _, n := range []int{32, 64, 128, 256, 512, 1024} {
			if n < p.k && n%m.K == 0 && (!few || n == 2*p.Kernel.Promote) {
				all = append(all, Fault{Model: m.Name, By: n})
			}
		}
	}
	return all
}

func textOfModel(f Fault) string {
	if f.By > 0 {
		return fmt.Sprintf("products are summed as %s sums them, promoted after every %d, which is not what was demanded", f.Model, f.By)
	}
	return fmt.Sprintf("products are summed as %s sums them, which is not what was demanded", f.Model)
}

// listOtherModels lists models that were not demanded.
func listOtherModels(p *problem, few bool) (all []Fault) {
	if !p.hasModel() {
		return nil
	}
	for _, m := range otherModels {
		if m.Name == p.Kernel.Model.Name || !p.suits(m) {
			continue
		}
		all = append(all, Fault{Model: m.Name, By: p.Kernel.Promote})
		if p.Kernel.Promote > 0 && !few {
			all = append(all, Fault{Model: m.Name})
		}
	}
	return all
}

func listOrders(p *problem, _ bool) (all []Fault) {
	if !p.hasModel() {
		return nil
	}
	for _, order := range []oracle.ScaleOrder{oracle.ProductThenFMA, oracle.AThenB, oracle.BThenA} {
		all = append(all, Fault{Model: p.Kernel.Model.Name, By: p.Kernel.Promote, Scales: order})
	}
	return all
}

// applyKernel has products summed by another kernel, in the order of f.Scales where
// ordered says so.
func applyKernel(ordered bool) func(f Fault, p *problem, c *change) error {
	return func(f Fault, p *problem, c *change) error {
		for _, m := range append(slices.Clone(otherModels), p.Kernel.Model) {
			if m.Name != f.Model || m == (oracle.Model{}) {
				continue
			}
			c.kernel = oracle.Kernel{Model: m, Promote: f.By, Scales: p.Kernel.Scales}
			if ordered {
				c.kernel.Scales = f.Scales
			}
			c.exact = true
			was := p.Kernel
			if p.hasModel() && was.Scales == oracle.AnyOrder {
				was.Scales = oracle.AThenB // which it is taken for
			}
			if now := c.kernel; now == p.Kernel || now == was {
				return notHere("%s is what was demanded", m.Name)
			}
			return nil
		}
		return notHere("there is no model %q", f.Model)
	}
}

// applyFloat32 leaves the product as it is, in package gemm's order: any is as good.
func applyFloat32(_ Fault, p *problem, c *change) error {
	if !p.hasModel() {
		return notHere("no model was demanded")
	}
	c.kernel = oracle.Kernel{}
	return nil
}

func textOfNarrow(what string) func(Fault) string {
	return func(f Fault) string {
		s := fmt.Sprintf("%s in %v", what, f.Type)
		switch {
		case f.Model != "":
			return s + ", by " + f.Model
		case f.By == 0:
			return s + ", in some order"
		case f.By > 1:
			return fmt.Sprintf("%s, rounded after every %d products", s, f.By)
		}
		return s
	}
}

// listNarrow lists sums in float16 and bfloat16: of groups of products, of blocks or, if
// they are scaled before, of all of K.
func listNarrow(of narrowed) func(*problem, bool) []Fault {
	return func(p *problem, few bool) (all []Fault) {
		least := p.k // rounded once, after scales were applied, it would be the result
		if of != ofTotals {
			least = 2 * min(p.k, p.block)
		}
		for _, t := range []Type{Float16, BFloat16} {
			for _, n := range []int{1, 8, 16, 32, 64, 128, 256} {
				if n < least && n < 2*p.block && (!few || n == 32) && (n != 8 || of == ofGroups) && (n != 1 || of != ofGroups) {
					all = append(all, Fault{Type: t, By: n})
				}
			}
			if of != ofBlocks || few {
				continue
			}
			for _, m := range knownModels {
				if t == Float16 {
					all = append(all, Fault{Type: t, Model: m.Name})
				}
			}
			all = append(all, Fault{Type: t})
		}
		return all
	}
}

// applyNarrow rounds sums to a narrower type.
func applyNarrow(of narrowed) func(f Fault, p *problem, c *change) error {
	return func(f Fault, p *problem, c *change) error {
		switch {
		case f.By < 0 || f.Type != Float16 && f.Type != BFloat16:
			return notHere("sums in %v, rounded after %d products", f.Type, f.By)
		case f.Model != "":
			return applyFloat16(f, p, c)
		case f.By > 0:
			c.dot, c.exact = narrowDot(f.Type, f.By, of), true
		case !p.explaining || p.block < p.k || p.Bias != nil || p.Old != nil || p.out != Float32:
			// With one pair of scales, and nothing added, sums can be recognized by their bits.
			return notHere("sums in %v, in some order", f.Type)
		default:
			c.rounded, c.unordered = f.Type, true
		}
		return nil
	}
}

// listSplits lists parts of K of equal length, but for the last, that are whole products or
// whole blocks.
func listSplits(p *problem, few bool) (all []Fault) {
	for _, t := range []Type{BFloat16, Float16} {
		for _, parts := range []int{2, 3, 4, 6, 8, 16, 32, 64} {
			length := (p.k + parts - 1) / parts
			for _, length := range []int{length, roundUp(length, 16), roundUp(length, p.block)} {
				f := Fault{Type: t, By: (p.k + length - 1) / length, To: length}
				if length > 1 && length < p.k && !slices.Contains(all, f) && (!few || parts == 4) {
					all = append(all, f)
				}
			}
		}
	}
	return all
}

func textOfSplits(added string) func(Fault) string {
	return func(f Fault) string {
		return fmt.Sprintf("K is split into %d parts of %d products, whose sums are rounded to %v and added in %s", f.By, f.To, f.Type, strings.Replace(added, "{type}", f.Type.String(), 1))
	}
}

// applySplits rounds sums of parts of K, which are made in float32, to a narrower type, and
// adds them in float32 where wide says so, otherwise in that type.
func applySplits(wide bool) func(f Fault, p *problem, c *change) error {
	return func(f Fault, p *problem, c *change) error {
		if f.To < 1 || f.To >= p.k || f.Type != Float16 && f.Type != BFloat16 {
			return notHere("parts of %d products whose sums are %v", f.To, f.Type)
		}
		c.dot, c.exact = splitDot(f.Type, f.To, wide), true
		return nil
	}
}

func splitDot(t Type, length int, wide bool) func(c *change, i, j int) float32 {
	return func(c *change, i, j int) float32 {
		u, v := c.a.values(), c.b.values()
		var total, part float32
		left := length
		end := func() {
			total += t.narrow(part)
			if !wide {
				total = t.narrow(total)
			}
			part, left = 0, length
		}
		c.eachBlock(i, j, new(scratch), func(x, y []byte, sa, sb float32) {
			for len(x) > 0 {
				n := min(len(x), left)
				sum, _ := dot(x[:n], y[:n], u, v, u, v)
				part = float32(float64(float32(float32(sum)*sa))*float64(sb) + float64(part))
				if x, y, left = x[n:], y[n:], left-n; left == 0 {
					end()
				}
			}
		})
		if left < length {
			end()
		}
		return c.underOuter(total, i, j)
	}
}

// applyFloat16 sums as a model does with results of float16.
func applyFloat16(f Fault, p *problem, c *change) error {
	for _, m := range knownModels {
		if m.Name != f.Model || !m.HasFloat16() || !m.Takes(p.A.Format) || !m.Takes(p.B.Format) {
			continue
		}
		c.exact = true
		c.dot = func(c *change, i, j int) (total float32) {
			c.eachBlock(i, j, new(scratch), func(x, y []byte, sa, sb float32) {
				sum := m.DotFloat16(x, y, p.A.Format, p.B.Format, 0).Float32()
				total += float32(float32(sum*sa) * sb)
			})
			return c.underOuter(total, i, j)
		}
		return nil
	}
	return notHere("model %q does not sum products of these operands in float16", f.Model)
}
