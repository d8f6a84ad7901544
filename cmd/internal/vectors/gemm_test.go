package vectors

import (
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/safetensors"
)

// TestGemmVectors demands that what is canonical is within the bound, and that
// every model and format has its cases.
func TestGemmVectors(t *testing.T) {
	var index gemmIndex
	file := open(t, "gemm", &index)
	models, formats := make(map[string]int), make(map[string]int)
	specials := 0
	for _, p := range index.Products {
		exact, canonical := file.float32s(p.Exact["f32"]), file.float32s(p.Canonical["f32"])
		within := func(name string, got []float32, bounds string) {
			bound, err := safetensors.Elements[float64](file.File, bounds)
			require.NoError(t, err)
			for i, x := range exact {
				if d := math.Abs(float64(x) - float64(got[i])); d > bound[i] {
					t.Errorf("%s, %s, element %d: %v and %v are farther apart than %v", p.Name, name, i, x, got[i], bound[i])
				}
			}
		}
		for _, x := range exact {
			if x-x != 0 {
				specials++
			}
		}
		within("canonical", canonical, p.Bound)
		for _, m := range p.Models {
			models[m.Model]++
			within(m.Model, file.float32s(m.Result), m.Bound)
		}
		formats[p.A.Format+" "+p.B.Format]++
	}
	require.Len(t, models, 14)
	for name, n := range models {
		require.GreaterOrEqual(t, n, 4, name)
	}
	for f := range definitions {
		require.GreaterOrEqual(t, formats[f+" "+f], 2, f)
	}
	for _, pair := range []string{"E4M3 E2M1", "E5M2 E3M2", "E2M3 E3M2", "E2M3 E2M1", "MXINT8 E2M1"} {
		require.Positive(t, formats[pair], pair)
	}
	require.Positive(t, specials)
}

// TestCanonicalVectors multiplies in the order of README.md, of what it says to read.
func TestCanonicalVectors(t *testing.T) {
	var index gemmIndex
	file := open(t, "gemm", &index)
	different := 0
	for _, p := range index.Products {
		a, b := file.operand(p.A), file.operand(p.B)
		want := file.float32s(p.Canonical["f32"])
		require.Len(t, want, a.rows*b.rows)
		for i := range a.rows {
			for j := range b.rows {
				c := canonicalProduct(&a, &b, i, j)
				if p.Bias != "" {
					c += file.float32s(p.Bias)[j]
				}
				if p.Old != "" {
					c += file.float32s(p.Old)[i*b.rows+j]
				}
				bits := math.Float32bits(c)
				if c != c {
					bits = 0x7FC00000
				}
				require.Equal(t, bits, math.Float32bits(want[i*b.rows+j]), "%s (%d, %d): %v and %v", p.Name, i, j, c, want[i*b.rows+j])
			}
		}
		if !slices.Equal(want, file.float32s(p.Exact["f32"])) {
			different++
		}
	}
	require.Greater(t, different, len(index.Products)/4)
}

func canonicalProduct(a, b *decoded, i, j int) (c float32) {
	block := max(1, min(a.blockCols, b.blockCols))
	for lo := 0; lo < a.cols; lo += block {
		var p float32
		hi := min(lo+block, a.cols)
		for chunk := lo; chunk < hi; chunk += 32 {
			var sums [2]float32
			for k := chunk; k < min(chunk+32, hi); k++ {
				product := float32(a.values[i*a.cols+k] * b.values[j*b.cols+k])
				sums[(k-chunk)%2] += product
			}
			both := sums[0] + sums[1]
			p += both
		}
		scaled := p * float32(a.scale(i, lo))
		c = fma32(scaled, float32(b.scale(j, lo)), c)
	}
	if a.outer != nil || b.outer != nil {
		alpha := a.factor(i) * b.factor(j)
		c *= alpha
	}
	return c
}

// fma32 is x*y+z rounded once.
func fma32(x, y, z float32) float32 {
	exact := func(v float32) *big.Float { return new(big.Float).SetPrec(700).SetFloat64(float64(v)) }
	sum := float64(x)*float64(y) + float64(z)
	if sum-sum != 0 || sum == 0 {
		return float32(sum)
	}
	r := exact(x)
	r.Mul(r, exact(y)).Add(r, exact(z))
	f, _ := r.Float32()
	return f
}

// TestExactVectors adds exact products and rounds the sum once.
func TestExactVectors(t *testing.T) {
	var index gemmIndex
	file := open(t, "gemm", &index)
	for _, p := range index.Products {
		if p.Bias != "" {
			continue
		}
		a, b := file.operand(p.A), file.operand(p.B)
		want := file.float32s(p.Exact["f32"])
		for i := range a.rows {
			for j := range b.rows {
				c, ok := exactProduct(&a, &b, i, j)
				if got := want[i*b.rows+j]; ok {
					require.Equal(t, math.Float32bits(c), math.Float32bits(got), "%s (%d, %d): %v and %v", p.Name, i, j, c, got)
				} else {
					require.True(t, got-got != 0, "%s (%d, %d)", p.Name, i, j)
				}
			}
		}
	}
}

// exactProduct returns an element; ok is false if it is not a number.
func exactProduct(a, b *decoded, i, j int) (c float32, ok bool) {
	sum := new(big.Float).SetPrec(1000)
	term, factor := new(big.Float).SetPrec(1000), new(big.Float).SetPrec(1000)
	for k := range a.cols {
		va, vb, sa, sb := a.values[i*a.cols+k], b.values[j*b.cols+k], a.scale(i, k), b.scale(j, k)
		if v := va * vb * sa * sb; math.IsNaN(v) || math.IsInf(v, 0) {
			return 0, false
		}
		term.SetFloat64(va * vb)
		term.Mul(term, factor.SetFloat64(sa)).Mul(term, factor.SetFloat64(sb))
		sum.Add(sum, term)
	}
	if sum.Sign() == 0 {
		return 0, true
	}
	r, _ := sum.Rat(nil)
	for _, o := range []struct {
		d   *decoded
		row int
	}{{a, i}, {b, j}} {
		g := new(big.Rat).SetFloat64(o.d.outerAt(o.row))
		if o.d.divides {
			g.Inv(g)
		}
		r.Mul(r, g)
	}
	if r.Sign() == 0 {
		return 0, true
	}
	f, _ := r.Float32()
	return f, !math.IsInf(float64(f), 0)
}
