package report

import (
	"slices"

	"github.com/octavo-fp8/octavo/lab/chart"
)

// Curve is a value of each step, of an arm under a seed.
type Curve struct {
	Seed   uint64
	Arm    string
	First  int // step of the first value
	Values []float64
}

// Curves are those of some seeds, each with the same arms.
type Curves []Curve

// Table returns all values, too many for a page. Columns are of the seed, the arm, the step and
// the value.
func (c Curves) Table(name string, columns ...string) Table {
	t := Table{Name: name, Raw: true, Columns: columns}
	for _, of := range c {
		for i, v := range of.Values {
			t.Add(of.Seed, of.Arm, of.First+i, v)
		}
	}
	return t
}

// OfSeed returns the curves of one seed.
func (c Curves) OfSeed(seed uint64) Curves {
	return slices.DeleteFunc(slices.Clone(c), func(of Curve) bool { return of.Seed != seed })
}

// Above returns by how many percent the curves of an arm are above those of another under the
// same seed, step by step. The steps are counted from 0.
func (c Curves) Above(arm, other string) (above Curves) {
	for _, of := range c {
		if of.Arm != arm {
			continue
		}
		to := c[slices.IndexFunc(c, func(to Curve) bool { return to.Seed == of.Seed && to.Arm == other })]
		values := make([]float64, len(of.Values))
		for i, v := range of.Values {
			values[i] = 100 * (v/to.Values[i] - 1)
		}
		above = append(above, Curve{Seed: of.Seed, Arm: arm, Values: values})
	}
	return above
}

// AddCurves adds the mean of the seeds of an arm's curves as a series, which has the arm's name.
func (p *Plot) AddCurves(c Curves, s chart.Series) {
	of := slices.DeleteFunc(slices.Clone(c), func(of Curve) bool { return of.Arm != s.Name })
	for i := range of[0].Values {
		var values []float64
		for _, seed := range of {
			values = append(values, seed.Values[i])
		}
		p.Add(s, of[0].First+i, values...)
	}
}
