package identify

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// amxSum is what one instruction adds to c: 16 steps of four lanes, products in float32. The
// test has its own words for the readings that amxReadings lists.
var amxSums = map[string]func(p []float32) float32{
	"amx-fp8 if four lanes are summed apart and meet in pairs (EP4398097A2)": func(p []float32) float32 {
		var s [4]float32
		for k := range 16 {
			for lane := range s {
				s[lane] = s[lane] + p[4*k+lane]
			}
		}
		left, right := s[0]+s[1], s[2]+s[3]
		return left + right
	},
	"amx-fp8 if four lanes are summed apart and meet in turn (EP4398097A2)": func(p []float32) float32 {
		var s [4]float32
		for lane := range s {
			for k := range 16 {
				s[lane] += p[4*k+lane]
			}
		}
		total := s[0]
		for _, x := range s[1:] {
			total += x
		}
		return total
	},
	"amx-fp8 if pairs of lanes are added to two sums (Bochs, March 2026)": func(p []float32) float32 {
		var even, odd float32
		for k := 0; k < 64; k += 4 {
			first, second := p[k]+p[k+1], p[k+2]+p[k+3]
			even, odd = even+first, odd+second
		}
		return even + odd
	},
	"amx-fp8 if pairs of lanes are added, and then to one sum": func(p []float32) (s float32) {
		for k := 0; k < 64; k += 4 {
			first, second := p[k]+p[k+1], p[k+2]+p[k+3]
			both := first + second
			s += both
		}
		return s
	},
	"amx-fp8 if four lanes are exact, rounded once and added to one sum": func(p []float32) (s float32) {
		for k := 0; k < 64; k += 4 {
			d := 0.0 // E4M3: multiples of 2^-18 below 2^20
			for _, x := range p[k : k+4] {
				d += float64(x)
			}
			s += float32(d)
		}
		return s
	},
	"amx-fp8 if products are added to one sum in turn": func(p []float32) (s float32) {
		for _, x := range p {
			s += x
		}
		return s
	},
	"amx-fp8": func(p []float32) float32 {
		d := 0.0
		for _, x := range p {
			d += float64(x)
		}
		return float32(d)
	},
}

// TestAMXReadings: each reading is told from all others and from every model, under each
// order of scales, and the report says that it is assumed.
func TestAMXReadings(t *testing.T) {
	require.Len(t, amxSums, len(Setup{E8M0: true}.amxReadings())+1)
	p := setup(t, Setup{K: 192})
	for name, add := range amxSums {
		for order, how := range map[string]scaling{"a-then-b": scalings[1], "product-then-fma": scalings[0]} {
			own := sums(name, how, func(products []float32) (sum float32) {
				for lo := 0; lo < len(products); lo += 64 {
					sum += add(products[lo : lo+64])
				}
				return sum
			})
			r := identify(t, p, own, safetensors.F32)
			for _, found := range names(r) {
				// Sums of instructions that add c last are one, promoted or not, up to the first two.
				require.Regexp(t, "^"+regexp.QuoteMeta(name)+"(, promoted every (64|128))?, "+order+"$", found)
			}
			require.NotEmpty(t, r.Kernels, name)
			var b strings.Builder
			require.NoError(t, r.WriteText(&b))
			text := strings.Join(strings.Fields(b.String()), " ")
			if name == "amx-fp8" {
				require.Contains(t, text, "evidence specified (Intel ISE 319433-057")
			} else {
				require.Contains(t, text, "evidence assumed: amx-fp8 is what the specification says, and this another public reading of it")
			}
		}
	}
}

// TestPairs: no two models of different arithmetic give all answers of each other where
// scales are powers of two, but for fused ones that differ in who applies the scales.
func TestPairs(t *testing.T) {
	block := tensor.Block{Rows: 1, Cols: 32}
	for _, s := range []Setup{{K: 128, E8M0: true, BlockA: block, BlockB: block}, {K: 128, E8M0: true}} {
		p := setup(t, s)
		tried := map[oracle.Unit]int{}
		for _, m := range oracle.Models() {
			if !m.Takes(fp8.E4M3) {
				continue
			}
			tried[m.Unit]++
			r, err := Identify(t.Context(), p, answer(t, p, newCandidate(oracle.Kernel{Model: m}, false), safetensors.F32), Options{})
			require.NoError(t, err)
			require.NotEmpty(t, r.Kernels, m.Name)
			for _, found := range r.Kernels {
				require.NotNil(t, found.Kernel, "%s and %s", m.Name, found.Name)
				same, want := found.Kernel.Model, m
				same.Name, same.Evidence = m.Name, m.Evidence
				for _, x := range []*oracle.Model{&same, &want} {
					if x.Unit == oracle.Scaled {
						x.Unit = oracle.Fused
					}
				}
				require.Equal(t, want, same, "%s and %s", m.Name, found.Name)
			}
		}
		require.Equal(t, map[oracle.Unit]int{oracle.Fused: 3, oracle.Emulated: 2, oracle.Scaled: 1, oracle.SingleRounding: 3}, tried)
	}
}
