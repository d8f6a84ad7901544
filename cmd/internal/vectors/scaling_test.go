package vectors

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// TestBlockVectors reads every matrix as README.md says and demands of each code that no
// other of its format is nearer to the value that went in, of all that are finite.
func TestBlockVectors(t *testing.T) {
	var index scalingIndex
	file := open(t, "scaling", &index)
	cases, compared := make(map[string]bool), 0
	for _, c := range index.Blocks {
		cases[fmt.Sprint(c.Profile, " ", c.Output.Format)] = true
		x, q := file.doubles(c.Input), file.operand(c.Output)
		require.Len(t, x, q.rows*q.cols)
		require.EqualValues(t, len(x), c.Stats.Elements)
		values := grids[definitions[q.format]]
		largest := values[definitions[q.format].largest()]
		for i, v := range x {
			row, col := i/q.cols, i%q.cols
			unit := q.scale(row, col) * q.outerAt(row)
			if q.divides {
				unit = q.scale(row, col) / q.outerAt(row)
			}
			ratio := v / unit
			if ratio-ratio != 0 || math.Abs(v) < 0x1p-100 { // where float32 is coarse, too
				continue
			}
			compared++
			a := min(math.Abs(ratio), largest)
			if q.format == "MXINT8" && ratio < 0 {
				a = min(-ratio, 2)
			}
			best := math.Inf(1)
			for _, v := range values[:definitions[q.format].largest()+2] {
				if v <= largest || v == 2 {
					best = min(best, math.Abs(v-a))
				}
			}
			got := math.Abs(q.values[i] - math.Copysign(a, ratio))
			if !(got <= best+a*0x1p-20) { // require would take most of the time
				require.Failf(t, "value", "%s: element %d, %v, is %v under %v", c.Output.Codes, i, v, q.values[i], unit)
			}
		}
	}
	require.Greater(t, compared, 100_000)
	for _, f := range mxFormats {
		for _, p := range []string{"mx-floor", "mx-ceil", "mx-even", "mx-rceil", "mx-rceil-torchao", "mx-compressed-tensors"} {
			require.True(t, cases[p+" "+f.String()], "%s %v", p, f)
		}
	}
	for _, p := range scaling.Profiles() {
		f := "E4M3"
		if !p.For(0) {
			f = "E2M1"
		}
		require.True(t, cases[fmt.Sprint(p, " ", f)] || p.Delayed(), "%s", p)
	}
}

// nvfp4Formula is a profile as its library's source has it: the outer scale of an amax and
// the stored scale of a block, in float32.
type nvfp4Formula struct {
	outer func(tensorAmax float32) float32
	scale func(amax, tensorAmax, outer float32) float32
}

var nvfp4Formulas = map[scaling.Profile]nvfp4Formula{
	scaling.NVFP4TE: {
		func(a float32) float32 { return 1 / min(2688/a, math.MaxFloat32) },
		func(a, all, _ float32) float32 {
			s := min(2688/all, math.MaxFloat32) * (float32(1) / 6)
			return a * s
		},
	},
	scaling.NVFP4TorchAOGlobal: {
		func(a float32) float32 { return a / 2688 },
		func(a, _, g float32) float32 { return max(a/6/g, 0x1p-6) },
	},
	scaling.NVFP4CompressedTensors: {
		func(a float32) float32 {
			r := 1 / max(a, 0x1p-126)
			return r * 2688
		},
		func(a, _, g float32) float32 {
			if s := g * (a / 6); s > 0x1p-10 {
				return s
			}
			return 0.125
		},
	},
	scaling.NVFP4ModelOpt: {
		func(a float32) float32 { return a / 2688 },
		func(a, _, g float32) float32 {
			if a == 0 {
				return 1
			}
			return max(a/(6*g), 0x1p-9)
		},
	},
}

// TestNVFP4Vectors computes outer scales and those of blocks by the formulas of libraries,
// of matrices and of amaxes.
func TestNVFP4Vectors(t *testing.T) {
	var index scalingIndex
	file := open(t, "scaling", &index)
	rounded := func(s float32) float64 {
		code, over := roundMagnitude(0, definitions["E4M3"], float64(s))
		if over {
			return 448
		}
		return ue4m3(code)
	}
	ordinary := func(a float32) bool { return a > 0x1p-110 && a < 0x1p120 }
	blocks := make(map[scaling.Profile]int)
	for _, c := range index.Blocks {
		formula, ok := nvfp4Formulas[c.Profile]
		if !ok || len(file.float32s(c.Output.Outer)) > 1 {
			continue
		}
		x, q := file.float32s(c.Input), file.operand(c.Output)
		amax := func(r0, r1, c0, c1 int) (a float32) {
			for i := r0; i < min(r1, q.rows); i++ {
				for j := c0; j < min(c1, q.cols); j++ {
					if v := float32(math.Abs(float64(x[i*q.cols+j]))); v > a || v != v {
						a = v
					}
				}
			}
			return a
		}
		all := amax(0, q.rows, 0, q.cols)
		if !ordinary(all) {
			continue
		}
		g := formula.outer(all)
		require.EqualValues(t, g, q.outer[0], c.Output.Codes)
		for i := 0; i < q.rows; i += q.blockRows {
			for j := 0; j < q.cols; j += q.blockCols {
				blocks[c.Profile]++
				want := rounded(formula.scale(amax(i, i+q.blockRows, j, j+q.blockCols), all, g))
				require.Equal(t, want, q.scale(i, j), "%s (%d, %d)", c.Output.Codes, i, j)
			}
		}
	}
	require.Len(t, blocks, len(nvfp4Formulas))
	amax, tensors, ofBlocks := file.float32s(index.Levels.Amax), file.float32s(index.Levels.TensorAmax), file.float32s(index.Levels.BlockAmax)
	chosen, seen := 0, 0
	for _, c := range index.Levels.Profiles {
		if c.Block == nil {
			chosen++
			continue
		}
		formula, ok := nvfp4Formulas[c.Profile]
		if !ok {
			continue
		}
		seen++
		for i, g := range file.float32s(c.Outer) {
			if ordinary(amax[i]) {
				require.Equal(t, formula.outer(amax[i]), g, "%s of %v", c.Profile, amax[i])
			}
		}
		for i, s := range file.float32s(c.Block.Stored) {
			if ordinary(tensors[i]) {
				want := rounded(formula.scale(ofBlocks[i], tensors[i], formula.outer(tensors[i])))
				require.EqualValues(t, want, s, "%s of %v in %v", c.Profile, ofBlocks[i], tensors[i])
			}
		}
	}
	require.Equal(t, len(nvfp4Formulas), seen)
	require.Equal(t, 8+3, chosen)
}

// TestMXVectors computes scales of MX formats by their definitions.
func TestMXVectors(t *testing.T) {
	var index scalingIndex
	file := open(t, "scaling", &index)
	amax, nan := file.float32s(index.Amax), file.codes(index.HasNaN)
	mantissas := map[string]int{"MXINT8": 7}
	formats := make(map[string]bool)
	for _, c := range index.Scales {
		if c.Profile.ScaleFormat() != tensor.E8M0Scales {
			continue
		}
		formats[fmt.Sprint(c.Profile, c.Format)] = true
		d := definitions[c.Format]
		largest := d.value(d.largest())
		emax := math.Ilogb(largest)
		if mantissas[c.Format] = d.mantissa; d.kind == "integer" {
			mantissas[c.Format] = 7
		}
		for i, s := range file.float32s(c.Stored) {
			a := float64(amax[i])
			if nan[i] == 1 || a-a != 0 || a < 0x1p-100 || a > 0x1p100 {
				continue
			}
			e := math.Ilogb(a)
			nearest := func(mantissa int) int { // exponent of a, rounded to so many bits, halves up
				if math.Floor(math.Ldexp(a, mantissa-e)+0.5) >= math.Ldexp(2, mantissa) {
					return e + 1
				}
				return e
			}
			var want int
			switch c.Profile {
			case scaling.MXFloor:
				want = e - emax
			case scaling.MXCeil:
				if want = e - emax; math.Ldexp(1, e) < a {
					want++
				}
			case scaling.MXEven:
				want = nearest(mantissas[c.Format]) - emax
			case scaling.MXCompressedTensors:
				want = nearest(1) - emax
			case scaling.MXRCeil, scaling.MXRCeilTorchAO:
				product := float64(float32(a) * (1 / float32(largest)))
				if want = math.Ilogb(product); math.Ldexp(1, want) < product {
					want++
				}
			default:
				continue
			}
			require.EqualValues(t, math.Ldexp(1, want), s, "%s %s of %v", c.Profile, c.Format, amax[i])
		}
	}
	require.Len(t, formats, 6*len(fp8.Formats())+4)
}

// TestHadamardVectors multiplies by the matrix.
func TestHadamardVectors(t *testing.T) {
	var index scalingIndex
	file := open(t, "scaling", &index)
	require.Len(t, index.Hadamard, 2*4*4)
	for _, c := range index.Hadamard {
		x, y := file.float32s(c.Input), file.float32s(c.Output)
		info, _ := file.Info(c.Input)
		output, _ := file.Info(c.Output)
		require.Equal(t, info.DType, output.DType)
		rows, cols := info.Shape[0], info.Shape[1]
		error := 0x1p-20
		if info.DType == "BF16" {
			error = 0x1p-8
		}
		at := func(line, k int) int { return line*cols + k }
		lines, length := rows, cols
		if c.Columns {
			at, lines, length = func(line, k int) int { return k*cols + line }, cols, rows
		}
		sign := func(i int) float64 { return 1 - 2*float64(c.Signs>>i&1) }
		for line := range lines {
			for k := range length {
				group := k / 16 * 16
				if group+16 > length {
					require.Equal(t, x[at(line, k)], y[at(line, k)])
					continue
				}
				sum, size := 0.0, 0.0
				for i := range 16 {
					h := float64(1)
					for bits := i & (k - group); bits > 0; bits >>= 1 {
						if bits&1 == 1 {
							h = -h
						}
					}
					v := float64(x[at(line, group+i)]) * h / 4
					if c.Inverse {
						v *= sign(k - group)
					} else {
						v *= sign(i)
					}
					sum += v
					size += math.Abs(v)
				}
				got := float64(y[at(line, k)])
				if sum-sum != 0 || size-size != 0 {
					require.False(t, got-got == 0, c.Output)
					continue
				}
				require.InDelta(t, sum, got, size*error, "%s (%d, %d)", c.Output, line, k)
			}
		}
	}
}
