package attention

import (
	"fmt"
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/lab/report"
)

func (s *study) tables() []report.Table {
	return []report.Table{s.publishedTable(), s.spreadTable(), s.flushTable(), s.growthTable(), s.rotationTable(), s.smoothingTable(), s.scaleTable(), s.caching.costTable(), s.caching.modelTable()}
}

// publishedTable has our figures beside the published ones, and why they may differ.
func (s *study) publishedTable() report.Table {
	t := report.Table{
		Name: "published", Title: "Beside what was published",
		Columns: []string{"figure", "source", "published", "here", "here over published", "where it differs by more than 10 %"},
	}
	add := func(figure, source string, published, here float64, why string) {
		if off(here, published) <= 0.1 {
			why = ""
		}
		t.Add(figure, source, published, here, here/published, why)
	}
	for _, l := range []lift{highLazy, lowLazy} {
		for i, here := range s.errorsOf(l) {
			add(fmt.Sprintf("relative error, P lifted by %v, spread %v", l, deviations[i]), "flash-attention 2694", published2694[l][i], here,
				"other random numbers and rows; how K, V and the scale were made there is not said, and the error depends on how often a maximum is late")
		}
	}
	for _, f := range s.flushes {
		if f.formula() >= 0.02 {
			add(fmt.Sprintf("share of P that vanishes, S = %v, Δ = %v", f.factor, f.delta), "arXiv 2606.06521, Φ(Δ+1-6.93-ln S)", f.formula(), f.forward,
				fmt.Sprintf("the formula has the mean of the largest sink, whose spread widens the rise: with it the share is %.3g", f.expected))
		}
	}
	for _, factor := range []float64{1, 256} {
		add(fmt.Sprintf("Δ at which half of P vanishes, S = %v", factor), "arXiv 2606.06521", halfPublished(factor), half(s.flushOf(factor)), "read between two Δ in proportion")
	}
	plain, best := s.compared(tensorScales), s.compared(blockRotated)
	roots := s.comparedSize(tensorScales).roots
	unstated := fmt.Sprintf("length of K, dimension of the head and number of rows were not in what was read of the paper; all change the error (table rotation), "+
		"and so does chance: few outliers make most of it, and seeds have from %.2g to %.2g with tensor scales", slices.Min(roots), slices.Max(roots))
	add("root mean square error with outliers, tensor scales", "arXiv 2407.08608, Table 3", publishedTensor, plain, unstated)
	add("root mean square error with outliers, blocks and rotation", "arXiv 2407.08608, Table 3", publishedFA3, best, unstated)
	add("the first over the second", "arXiv 2407.08608", publishedRatio, plain/best, unstated)
	return t
}

func (s *study) spreadTable() report.Table {
	t := report.Table{Name: "spread", Title: "Error against the spread of scores", Columns: []string{"spread", "lift", "lag", "relative error %", "saturated P %"}}
	for _, x := range s.spreads {
		t.Add(x.of, float64(x.lift.offset), float64(x.lift.threshold), 100*x.relative, 100*x.saturated)
	}
	return t
}

func (s *study) flushTable() report.Table {
	t := report.Table{Name: "vanishing", Title: "Share of P that vanishes behind four sinks",
		Columns: []string{"S", "Δ", "sinks first %", "expected %", "paper's formula %", "sinks last %", "squared error, first over last"}}
	for _, f := range s.flushes {
		t.Add(f.factor, f.delta, 100*f.forward, 100*f.expected, 100*f.formula(), 100*f.reverse, f.ratio)
	}
	return t
}

func (s *study) growthTable() report.Table {
	t := report.Table{Name: "length", Title: "Error of P·V by the length of K. vLLM's needle at 128k tokens on H100: 91 % found in BF16, 13 % in FP8, 89 % with promotion",
		Columns: []string{"values", "keys", "adder", "relative error %", "bias %"}}
	for _, g := range s.growths {
		t.Add(g.values, g.keys, adders()[g.adder].name, 100*g.relative, 100*g.bias)
	}
	return t
}

func (s *study) rotationTable() report.Table {
	t := report.Table{Name: "rotation", Title: "Root mean square error with outliers", Columns: []string{"keys", "dim", "recipe", "error", "seeds", "largest", "smallest"}}
	for _, r := range s.rotations {
		t.Add(r.keys, r.dim, fa3Recipes()[r.recipe].name, r.mean(), len(r.roots), slices.Max(r.roots), slices.Min(r.roots))
	}
	return t
}

func (s *study) smoothingTable() report.Table {
	t := report.Table{Name: "smoothing", Title: "Error by the bias of 8 channels of K, tensor scales", Columns: []string{"bias", "as it is %", "smooth K %", "rotated %"}}
	for _, x := range s.smoothing {
		t.Add(x.bias, 100*x.plain, 100*x.smooth, 100*x.rotated)
	}
	return t
}

func (s *study) scaleTable() report.Table {
	t := report.Table{Name: "scales", Title: "Error by what shares a scale", Columns: []string{"operands", "a scale for each", "relative error %"}}
	for _, x := range s.scales {
		t.Add(x.kind, x.of, 100*x.relative)
	}
	return t
}

func (c *caching) costTable() report.Table {
	t := report.Table{Name: "cache", Title: "What a cache costs a model: perplexity of bytes, mean of the models",
		Columns: []string{"cache", "first byte", "last byte", "perplexity", "loss", "above BF16", "two standard errors", "perplexity above BF16 %"}}
	for way, k := range keepings() {
		for part := range c.whole() + 1 {
			first, last := c.between(part)
			loss := c.loss(way, part)
			mean, twice := c.cost(way, inBF16, part)
			t.Add(k.name, first, last, math.Exp(loss), loss, mean, twice, 100*math.Expm1(mean))
		}
	}
	return t
}

func (c *caching) modelTable() report.Table {
	t := report.Table{Name: "models", Title: "Each model, all bytes", Columns: []string{"seed", "cache", "loss", "above BF16"}}
	for i, m := range c.models {
		one := &caching{config: c.config, models: c.models[i : i+1]}
		for way, k := range keepings() {
			mean, _ := one.cost(way, inBF16, c.whole())
			t.Add(int(m.seed), k.name, one.loss(way, c.whole()), mean)
		}
	}
	return t
}
