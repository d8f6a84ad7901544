package oracle

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/safetensors"
)

// floatVectors are what a GPU returned for dot products of operands in BF16, FP16 or TF32.
type floatVectors struct {
	k    int
	a, b []float32
	c    []float32
	d32  []float32
	d16  []float16.Float16 // nil where there are none
}

func readFloatVectors(t testing.TB, chip string, f Float) floatVectors {
	file, err := safetensors.Open(testutil.Shared(t, "silicon", chip+"_"+f.String()+".safetensors"))
	require.NoError(t, err)
	defer file.Close()
	v := floatVectors{a: floatsOf(t, file, "a"), b: floatsOf(t, file, "b"),
		c: floatsOf(t, file, "c"), d32: floatsOf(t, file, "d_f32")}
	require.Len(t, v.d32, 3500)
	v.k = len(v.a) / len(v.c)
	if f == FP16 {
		for _, x := range floatsOf(t, file, "d_f16") {
			v.d16 = append(v.d16, float16.Fromfloat32(x))
		}
		require.Len(t, v.d16, 3500)
	}
	return v
}

func floatsOf(t testing.TB, file *safetensors.File, name string) []float32 {
	values, err := file.Float32s(name)
	require.NoError(t, err)
	return values
}

// misses counts rows on which the arithmetic is not the hardware's.
func (v *floatVectors) misses(half bool, bits func(a, b []float32, c float32) uint32) (misses int) {
	for i := range v.c {
		want := math.Float32bits(v.d32[i])
		if half {
			want = uint32(v.d16[i].Bits())
		}
		if bits(v.a[v.k*i:v.k*(i+1)], v.b[v.k*i:v.k*(i+1)], v.c[i]) != want {
			misses++
		}
	}
	return misses
}

// modelBits is what a model gives.
func modelBits(m Model, half bool) func(a, b []float32, c float32) uint32 {
	return func(a, b []float32, c float32) uint32 {
		if half {
			return uint32(m.DotFloatsFloat16(a, b, float16.Fromfloat32(c)).Bits())
		}
		return math.Float32bits(m.DotFloats(a, b, c))
	}
}

// definition is a fused step on real numbers, which float64 holds exactly for operands
// such as those of the vectors, and what can be wrong with it.
type definition struct {
	format       Float
	f            int
	down         bool // terms are cut toward minus infinity
	renormalized bool // a product has the exponent of its value
	cAfter       bool // c and the sum of products are aligned and cut once more
	cNearest     bool // c is added to the rounded sum of products, to nearest
	nearest      bool // a float32 result is rounded to nearest, a float16 one cut
	flush        bool // subnormal operands are zero
}

type realTerm struct {
	value    float64
	exponent int
}

func (d definition) bits(half bool) func(a, b []float32, c float32) uint32 {
	return func(a, b []float32, c float32) uint32 {
		if half {
			c = float16.Fromfloat32(c).Float32()
		}
		least := d.format.layout().minExponent()
		exponent := func(x float32) int { return max(math.Ilogb(float64(x)), least) }
		var terms []realTerm
		for i, x := range a {
			y := b[i]
			subnormal := math.Ilogb(float64(x)) < least || math.Ilogb(float64(y)) < least
			if x == 0 || y == 0 || d.flush && subnormal {
				continue
			}
			t := realTerm{float64(x) * float64(y), exponent(x) + exponent(y)}
			if d.renormalized {
				t.exponent = math.Ilogb(t.value)
			}
			terms = append(terms, t)
		}
		last := realTerm{float64(c), math.Ilogb(float64(c))}
		var sum float64
		switch {
		case d.cAfter:
			// The sum keeps the exponent of the largest product.
			products := realTerm{d.add(terms), top(terms)}
			sum = d.add([]realTerm{products, last})
		case d.cNearest:
			sum = d.rounded(d.add(terms), half) + float64(c)
		default:
			sum = d.add(append(terms, last))
		}
		switch {
		case half && d.nearest:
			return uint32(float16.Fromfloat32(float32(truncated(sum, 10))).Bits())
		case half:
			return uint32(float16Bits(sum))
		case d.nearest || d.cNearest:
			return math.Float32bits(float32(sum))
		}
		return math.Float32bits(float32(truncated(sum, 23)))
	}
}

func (d definition) add(terms []realTerm) (sum float64) {
	unit := math.Ldexp(1, top(terms)-d.f)
	for _, t := range terms {
		if d.down {
			sum += math.Floor(t.value/unit) * unit
		} else {
			sum += math.Trunc(t.value/unit) * unit
		}
	}
	return sum
}

func top(terms []realTerm) int {
	top := math.MinInt
	for _, t := range terms {
		top = max(top, t.exponent)
	}
	return top
}

// rounded is a step's result.
func (d definition) rounded(sum float64, half bool) float64 {
	if half {
		return float64(float16.Frombits(float16Bits(sum)).Float32())
	}
	return truncated(sum, 23)
}

// truncated cuts x to so many fraction bits.
func truncated(x float64, bits int) float64 {
	unit := math.Ldexp(1, math.Ilogb(x)-bits)
	return math.Trunc(x/unit) * unit
}

// float16Bits rounds x to nearest even.
func float16Bits(x float64) uint16 {
	unit := math.Ldexp(1, max(math.Ilogb(x), -14)-10)
	return float16.Fromfloat32(float32(math.RoundToEven(x/unit) * unit)).Bits()
}

// A floatControl is another arithmetic of k products, which silicon must reject or cannot.
type floatControl struct {
	name string
	bits func(m Model, k int, half bool) func(a, b []float32, c float32) uint32
}

func neighbour(name string, change func(m *Model, k int)) floatControl {
	return floatControl{name, func(m Model, k int, half bool) func(a, b []float32, c float32) uint32 {
		change(&m, k)
		return modelBits(m, half)
	}}
}

func another(name string, change func(d *definition)) floatControl {
	return floatControl{name, func(m Model, _ int, half bool) func(a, b []float32, c float32) uint32 {
		d := definition{format: m.Float, f: m.F}
		change(&d)
		return d.bits(half)
	}}
}

var floatControls = []floatControl{
	neighbour("F-1", func(m *Model, _ int) { m.F-- }),
	neighbour("F+1", func(m *Model, _ int) { m.F++ }),
	neighbour("F-3", func(m *Model, _ int) { m.F -= 3 }),
	neighbour("two steps", func(m *Model, k int) { m.L = k / 2 }),
	neighbour("Keep-1", func(m *Model, _ int) { m.Keep-- }),
	another("renormalized", func(d *definition) { d.renormalized = true }),
	another("cut downward", func(d *definition) { d.down = true }),
	another("c after the sum", func(d *definition) { d.cAfter = true }),
	another("c to nearest", func(d *definition) { d.cNearest = true }),
	another("other rounding", func(d *definition) { d.nearest = true }),
	another("flushed", func(d *definition) { d.flush = true }),
}

// pinnedControls are those that every file of a result type must reject.
var pinnedControls = map[bool][]string{
	false: {"F-1", "F+1", "F-3", "two steps", "Keep-1", "renormalized", "cut downward", "c to nearest", "other rounding"},
	true:  {"two steps", "c to nearest", "other rounding"},
}

// siliconFloats are the GPUs of which there are vectors, and the model of each.
var siliconFloats = []struct {
	chip    string
	model   func(Float) Model
	formats []Float
}{
	{"v100", func(Float) Model { return VoltaFP16() }, []Float{FP16}},
	{"a100", Ampere, []Float{FP16, BF16, TF32}},
	{"a2", Ampere, []Float{FP16, BF16, TF32}},
	{"ada", Ada, []Float{FP16, BF16, TF32}},
	{"l40s", Ada, []Float{FP16, BF16, TF32}},
	{"h100", Hopper, []Float{FP16, BF16, TF32}},
	{"h200", Hopper, []Float{FP16, BF16, TF32}},
	{"b200", Blackwell, []Float{FP16, BF16, TF32}},
}

// TestSiliconFloats demands every row of every GPU, that other arithmetics miss some, and
// that silicon.md says how many.
func TestSiliconFloats(t *testing.T) {
	tables := map[bool]*strings.Builder{false: {}, true: {}}
	for half, table := range tables {
		table.WriteString("| GPU | operands | model | products | rows | mismatches |")
		for _, c := range floatControls {
			if half && c.name == "Keep-1" {
				continue
			}
			fmt.Fprintf(table, " %s |", c.name)
		}
		table.WriteString("\n|")
		table.WriteString(strings.Repeat("---|", strings.Count(table.String(), "|")-2) + "\n")
	}
	for _, s := range siliconFloats {
		for _, f := range s.formats {
			v := readFloatVectors(t, s.chip, f)
			m := s.model(f)
			for _, half := range []bool{false, true} {
				if half && v.d16 == nil {
					continue
				}
				misses := v.misses(half, modelBits(m, half))
				require.Zero(t, misses, "%s %v half=%v", s.chip, f, half)
				plain := definition{format: f, f: m.F}
				require.Zero(t, v.misses(half, plain.bits(half)), "the definition of %s %v half=%v", s.chip, f, half)
				table := tables[half]
				fmt.Fprintf(table, "| %s | %v | %s | %d | %d | %d |", s.chip, f, m.Name, v.k, len(v.c), misses)
				for _, c := range floatControls {
					if half && c.name == "Keep-1" {
						continue // of float32 results
					}
					n := v.misses(half, c.bits(m, v.k, half))
					fmt.Fprintf(table, " %d |", n)
					if slices.Contains(pinnedControls[half], c.name) {
						require.NotZero(t, n, "%s %v half=%v: %s is not pinned", s.chip, f, half, c.name)
					}
				}
				table.WriteString("\n")
			}
			if f == TF32 { // steps longer than the vectors
				for _, l := range []int{v.k, 2 * v.k, 4 * v.k} {
					longer := m
					longer.L, longer.K = l, max(l, m.K)
					require.Zero(t, v.misses(false, modelBits(longer, false)), "%s: L=%d is pinned, and documented as not", s.chip, l)
				}
			}
		}
	}
	checkTable(t, "float32 results", tables[false].String())
	checkTable(t, "float16 results", tables[true].String())
}

// checkTable demands that silicon.md has a table under the heading, or writes it where
// the environment variable OCTAVO_SILICON is "write".
func checkTable(t *testing.T, heading, table string) {
	const path = "silicon.md"
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), "## "+heading+"\n\n")
	require.True(t, found, heading)
	got, after, more := strings.Cut(rest, "\n\n")
	if os.Getenv("OCTAVO_SILICON") == "write" {
		changed := before + "## " + heading + "\n\n" + table
		if more {
			changed += "\n" + after
		}
		require.NoError(t, os.WriteFile(path, []byte(changed), 0o666))
		return
	}
	require.Equal(t, strings.TrimSpace(table), strings.TrimSpace(got), "%s of %s: OCTAVO_SILICON=write writes it anew", heading, path)
}

// TestSiliconCodes demands every row of the results in FP8, and that silicon.md has them:
// what pins the parameters is in TestSilicon.
func TestSiliconCodes(t *testing.T) {
	var table strings.Builder
	table.WriteString("| GPU | operands | result | model | c | rows | mismatches | F-1 | F+1 | c in the sum |\n|---|---|---|---|---|---|---|---|---|---|\n")
	row := func(chip string, f fp8.Format, result string, m Model, c string, rows int, misses func(Model) int) {
		require.Zero(t, misses(m), "%s %v %s", chip, f, result)
		shorter, longer, fused := m, m, m
		shorter.F--
		longer.F++
		fused.Unit = Fused
		inSum := "-"
		if m.Unit == Emulated {
			inSum = fmt.Sprint(misses(fused))
			require.NotZero(t, misses(fused))
		}
		fmt.Fprintf(&table, "| %s | %v | %s | %s | %s | %d | 0 | %d | %d | %s |\n", chip, f, result, m.Name, c, rows, misses(shorter), misses(longer), inSum)
	}
	for _, f := range []fp8.Format{fp8.E4M3, fp8.E5M2} {
		for _, s := range []struct {
			chip         string
			single, half Model
			zero         bool
		}{{"ada", AdaMMA(), AdaMMA(), false}, {"h100", HopperWGMMA(), HopperMMA(), true}, {"b200", BlackwellMMA(), BlackwellMMA(), false}} {
			v := readVectors(t, s.chip, f)
			c := "any"
			if s.zero {
				c = "0"
			}
			row(s.chip, f, "float32", s.single, c, len(v.d32), func(m Model) int { return v.float32Misses(m, s.zero) })
			row(s.chip, f, "float16", s.half, "any", len(v.d16), v.float16Misses)
		}
		for _, chip := range []string{"h100", "h200"} {
			v := readMMAVectors(t, chip, f)
			row(chip, f, "float32", HopperMMA(), "any", len(v.d32), func(m Model) int { return v.float32Misses(m, false) })
		}
	}
	checkTable(t, "FP8", table.String())
}

// readMMAVectors reads float32 results of mma.sync on Hopper.
func readMMAVectors(t *testing.T, chip string, f fp8.Format) (v vectors) {
	suffix := map[fp8.Format]string{fp8.E4M3: "_e4m3_mma", fp8.E5M2: "_e5m2_mma"}[f]
	file, err := safetensors.Open(testutil.Shared(t, "silicon", chip+suffix+".safetensors"))
	require.NoError(t, err)
	defer file.Close()
	v.format = f
	v.a, err = file.Bytes("a")
	require.NoError(t, err)
	v.b, err = file.Bytes("b")
	require.NoError(t, err)
	v.c, v.d32 = floatsOf(t, file, "c"), floatsOf(t, file, "d_f32")
	require.Len(t, v.d32, 3500)
	return v
}

// TestSiliconMMAFraction says how much of F the float32 results of mma.sync on Hopper
// pin: 22 is too little for E5M2.
func TestSiliconMMAFraction(t *testing.T) {
	for _, chip := range []string{"h100", "h200"} {
		v := readMMAVectors(t, chip, fp8.E5M2)
		m := HopperMMA()
		m.F = 23
		require.Zero(t, v.float32Misses(m, false), "F=23 is excluded, and documented as not")
		m.F = 22
		n := v.float32Misses(m, false)
		t.Logf("%s, F=22: %d of %d", chip, n, len(v.d32))
		require.NotZero(t, n)
	}
}
