package explore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
)

// TestFinding has an input for each sentence; those of others must not say it.
func TestFinding(t *testing.T) {
	zeros, halves := strings.Repeat("0 ", 31), strings.Repeat("0.5 ", 31)
	for values, want := range map[string]string{
		"0 0":                        "All values are zero.",
		"1 1.5":                      "Under one E4M3 scale for the tensor 2 values are exact.",
		"1 1.51":                     "Under one E4M3 scale for the tensor none of 2 values saturates or flushes to zero.",
		"448 0x1.1p-8":               "Under one E4M3 scale for the tensor none of 2 values saturates or flushes to zero, but 1 has fewer bits, as subnormals.",
		"448 1e-9":                   "Under one E4M3 scale for the tensor 1 of 2 values flushes to zero; no block that is tried saves one.",
		"448 1e-9 " + "1 nan":        "1 value is not finite. Under one E4M3 scale for the tensor 1 of 4 values flushes to zero; no block that is tried saves one.",
		"448 " + zeros + "1e-9":      "Under one E4M3 scale for the tensor 1 of 33 values flushes to zero; in blocks of 1x32, none is lost.",
		"448 1e-9 " + zeros + "1e-9": "Under one E4M3 scale for the tensor 2 of 34 values flush to zero; in blocks of 1x32, 1 flushes to zero.",
		"448\n1e-9":                  "Under one E4M3 scale for the tensor 1 of 2 values flushes to zero; with one a row, none is lost.",
		"0.5 " + halves:              "Under one E4M3 scale for the tensor 32 values are exact.",
	} {
		a, err := Explore(Request{Values: values, Method: "smoothquant"}, nil)
		require.NoError(t, err)
		require.Equal(t, want, string(a.Parts["finding"]), values)
	}
}

// TestMedianError: 1.1875 becomes 1.25, 1.0625 becomes 1, and 448 stays.
func TestMedianError(t *testing.T) {
	m := &matrix{values: []float32{448, 1.1875, 1.0625, 0}, rows: 1, cols: 4}
	o, err := quantize(m, scaling.Recipe{})
	require.NoError(t, err)
	require.Equal(t, "5.3%", o.typical())
	o, err = quantize(&matrix{values: []float32{448, 1e-9, 1e-9}, rows: 1, cols: 3}, scaling.Recipe{})
	require.NoError(t, err)
	require.Equal(t, "100%", o.typical())
	o, err = quantize(&matrix{values: m.values[3:4], rows: 1, cols: 1}, scaling.Recipe{})
	require.NoError(t, err)
	require.Equal(t, "-", o.typical())
}

// TestParse: lines of equal lengths are rows, and what is no number is named with its place.
func TestParse(t *testing.T) {
	for text, size := range map[string][2]int{"1 2\n3,4\n": {2, 2}, "1 2\n3\n": {1, 3}, "[1; 2]": {1, 2}, "1\n2\n3": {3, 1}, "1e40 -1e-60 0x1p-3 nan": {1, 4}} {
		m, err := parse(text)
		require.NoError(t, err)
		require.Equal(t, size, [2]int{m.rows, m.cols}, text)
		require.Len(t, m.values, size[0]*size[1])
	}
	m, err := parse("1e40 -1e-60 0x1p-3")
	require.NoError(t, err)
	require.Equal(t, []float32{float32(math.Inf(1)), float32(math.Copysign(0, -1)), 0.125}, m.values)
	_, err = parse("1 2\n3 four")
	require.ErrorContains(t, err, `number 2 of line 2, "four"`)
	_, err = parse(" \n")
	require.ErrorContains(t, err, "no number yet")
	row := strings.Repeat("1 ", 2000) + "\n"
	for _, c := range []struct {
		text             string
		rows, cols, left int // left is 0 where all are looked at
	}{
		{strings.Repeat("1 ", most), 1, most, 0},
		{strings.Repeat("1 ", most+5), 1, most, most},
		{strings.Repeat("1 2\n", most/2), most / 2, 2, 0},
		{strings.Repeat("1 2\n", most), most / 2, 2, most},
		{row + row, 2, 2000, 0},
		{row + row + row, 2, 2000, 4000},
		{row + row + "1\n" + row, 1, most, most},
		{row + row + strings.Repeat("1 ", most-4000), 1, most, 0},
		{strings.Repeat("1 ", 3000) + "\n" + strings.Repeat("1 ", 3000), 1, 3000, 3000},
	} {
		m, err = parse(c.text)
		require.NoError(t, err)
		require.Equal(t, [2]int{c.rows, c.cols}, [2]int{m.rows, m.cols})
		require.Len(t, m.values, c.rows*c.cols)
		_, said, _ := strings.Cut(m.about, ", typed")
		if c.left == 0 {
			require.Empty(t, said)
		} else {
			require.Equal(t, fmt.Sprintf("; only the first %d are looked at", c.left), said)
		}
	}
}

func section(data []byte) *io.SectionReader {
	return io.NewSectionReader(bytes.NewReader(data), 0, int64(len(data)))
}

// TestRead reads whole rows of the tensor that is asked for, and names what is wrong.
func TestRead(t *testing.T) {
	large := make([]float32, 3*5000)
	for i := range large {
		large[i] = float32(i)
	}
	data, err := safetensors.Encode([]safetensors.Tensor{
		safetensors.New("large", safetensors.F32, []int{3, 5000}, large),
		safetensors.New("wide", safetensors.F64, []int{2}, []float64{1 + 0x1p-30, 3}),
		safetensors.New("codes", safetensors.F8E4M3, []int{1, 2}, []byte{0x38, 0xB8}),
		safetensors.New("half", safetensors.BF16, []int{2}, []fp8.BFloat16{0x3F80, 0xC000}),
		safetensors.New("counts", safetensors.I32, []int{1}, []int32{0}),
	}, nil)
	require.NoError(t, err)
	for name, want := range map[string][]float32{"large": large[:4096], "wide": {1, 3}, "codes": {1, -1}, "half": {1, -2}, "": large[:4096]} {
		m, err := read(section(data), name)
		require.NoError(t, err)
		require.Equal(t, want, m.values, name)
		require.ElementsMatch(t, []string{"large", "wide", "codes", "half"}, m.tensors)
	}
	m, err := read(section(data), "wide")
	require.NoError(t, err)
	require.Equal(t, "wide, F64 [2], rounded to float32: 2 values, 1 row of 2", m.about)

	for shape, want := range map[[2]int]string{{2 * most, 1}: "x: the first 4096 values, 4096 rows of 1", {1, most}: "x: 4096 values, 1 row of 4096", {1, most + 1}: "x: the first 4096 values, 1 row of 4096"} {
		m := &matrix{}
		m.values = make([]float32, m.cut(shape[:]))
		m.say("x", shape[:])
		require.Equal(t, want, strings.ReplaceAll(m.about, fmt.Sprintf(" %v", shape), ""))
	}

	_, err = read(section(data[:len(data)-1]), "large")
	require.ErrorIs(t, err, safetensors.ErrFile)
	broken := bytes.Replace(data, []byte("[3,5000]"), []byte("[3,5001]"), 1)
	_, err = read(section(broken), "large")
	require.ErrorContains(t, err, `"large"`)
	_, err = read(section([]byte("GGUF")), "")
	require.ErrorContains(t, err, "4 bytes")
	only, err := safetensors.Encode([]safetensors.Tensor{safetensors.New("counts", safetensors.I32, []int{1}, []int32{0})}, nil)
	require.NoError(t, err)
	_, err = read(section(only), "")
	require.ErrorContains(t, err, "none of the file's tensors, of which there are 1")
}

// array is a .npy of version 1.
func array(kind, shape string, data []byte) *io.SectionReader {
	header := "{'descr': '" + kind + "', 'fortran_order': False, 'shape': " + shape + ", }\n"
	file := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	return section(append(append(file, header...), data...))
}

func TestReadNPY(t *testing.T) {
	m, err := read(array("<f4", "(2, 1)", []byte{0, 0, 0x80, 0x3F, 0, 0, 0, 0xC0}), "")
	require.NoError(t, err)
	require.Equal(t, []float32{1, -2}, m.values)
	require.Equal(t, 2, m.rows)
	m, err = read(array("<f2", "(2,)", []byte{0, 0x3C, 0, 0xC0}), "")
	require.NoError(t, err)
	require.Equal(t, []float32{1, -2}, m.values)
	_, err = read(array("<i4", "(1,)", make([]byte, 4)), "")
	require.ErrorContains(t, err, "of type <i4")
	_, err = read(array("<f4", "(0, 4)", nil), "")
	require.ErrorContains(t, err, "[0 4]")
}

// TestShades: as many cells are drawn of each kind as the library counted, under all recipes.
func TestShades(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	m := &matrix{values: make([]float32, 7*300), rows: 7, cols: 300}
	for i := range m.values {
		m.values[i] = float32(math.Ldexp(random.Float64()-0.5, random.IntN(40)-20))
		if i%50 == 0 {
			m.values[i] = 0
		}
	}
	saturating := 0
	for _, f := range fp8.Formats() {
		profiles, err := byProfile(m, f)
		require.NoError(t, err)
		sized, err := byBlock(m, f)
		require.NoError(t, err)
		for _, p := range profiles {
			sized = append(sized, p.outcome)
		}
		for _, o := range sized {
			counts := map[int]int64{}
			for i := range m.values {
				counts[o.shade(m, i/m.cols, i%m.cols)]++
			}
			st := o.stats
			require.Equal(t, []int64{st.Flushed, st.Zeros}, []int64{counts[flushed], counts[zero]}, "%v", o.recipe)
			if o.tensor.Outer.None() {
				require.Equal(t, []int64{st.Saturated(), st.Subnormal}, []int64{counts[saturated], counts[subnormal]}, "%v", o.recipe)
			}
			if st.Saturated() > 0 {
				saturating++
			}
		}
	}
	require.NotZero(t, saturating)
}

// TestValue has values whose codes and errors are known from the formats' definitions.
func TestValue(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		format string
		x      float32
		p      fp8.Policy
		code   byte
		err    float64
		what   string
	}{
		{"E4M3", 1, fp8.Policy{}, 0x38, 0, "exact"},
		{"E4M3", 1.0625, fp8.Policy{}, 0x38, -0.5, "rounded"},
		{"E4M3", -1.0625, fp8.Policy{}, 0xB8, 0.5, "rounded"},
		{"E4M3", 464, fp8.Policy{}, 0x7E, -0.5, "beyond the range"},
		{"E4M3", 1000, fp8.Policy{}, 0x7E, -552.0 / 32, "beyond the range"},
		{"E4M3", 1000, fp8.Policy{Overflow: fp8.OverflowNonFinite}, 0x7F, math.NaN(), "not finite"},
		{"E4M3", inf, fp8.Policy{}, 0x7E, math.Inf(-1), "saturated"},
		{"E4M3", 0x1p-11, fp8.Policy{}, 0, -0.25, "flushed to zero"},
		{"E5M2", 57344, fp8.Policy{}, 0x7B, 0, "exact"},
		{"E2M1", 2.5, fp8.Policy{}, 4, -0.5, "rounded"},
		{"E2M1", 2.5, fp8.Policy{Rounding: fp8.TowardZero}, 4, -0.5, "rounded"},
		{"E2M1", 10, fp8.Policy{}, 7, -2, "beyond the range"},
		{"E2M1", -10, fp8.Policy{}, 15, 2, "beyond the range"},
		{"E8M0 up", 3, fp8.Policy{}, 129, 0.5, "rounded"},
		{"E8M0 down", 3, fp8.Policy{}, 128, -0.5, "rounded"},
		{"UE4M3", -1, fp8.Policy{}, 0, 0, ""},
		{"E2M1", float32(math.NaN()), fp8.Policy{}, 7, math.NaN(), "no NaN in the format"},
	} {
		for _, k := range kinds {
			if k.name != c.format {
				continue
			}
			o := k.encodeOne(c.x, c.p)
			require.Equal(t, c.code, o.code, "%+v", c)
			if c.what != "" {
				require.Equal(t, c.what, o.what, "%+v", c)
				require.True(t, c.err == o.err || c.err != c.err && o.err != o.err, "%+v: %v", c, o.err)
			}
		}
	}
	require.Equal(t, "0 1111 110", one{kind: kinds[fp8.E4M3], code: 0x7E}.fields())
	require.Equal(t, "1 00 1", one{kind: kinds[fp8.E2M1], code: 0x09}.fields())
}

// TestSmoothing: a channel 2^12 times as large as the others is none any more, nothing but
// powers of two is moved, and what changes nothing says so.
func TestSmoothing(t *testing.T) {
	m := &matrix{values: make([]float32, 4*64), rows: 4, cols: 64}
	random := rand.New(rand.NewPCG(5, 6))
	for i := range m.values {
		m.values[i] = float32(1.01 + 0.9*random.Float64())
		if i%64 == 9 {
			m.values[i] *= 1 << 22
		}
	}
	plain, err := byBlock(m, fp8.E4M3)
	require.NoError(t, err)
	require.Equal(t, int64(4*63), plain[0].lost())
	for method, want := range map[string]string{
		"smooth-swiglu":       "It multiplies 1 of 64 channels by powers of two, 2^-22 to 2^-22: under one scale for the tensor 0 instead of 252 values are lost, and the median error is ",
		"smooth-swiglu-token": "It multiplies 4 of 4 rows by powers of two, 2^-22 to 2^-22: under one scale for the tensor 252 instead of 252 values are lost",
	} {
		s, err := smoothen(m, method, 0.5, plain)
		require.NoError(t, err)
		require.Contains(t, s.finding(), want)
	}
	s, err := smoothen(m, "smoothquant", 0.5, plain)
	require.NoError(t, err)
	require.Equal(t, float32(0x1p-11), s.factors[9], "the root of the magnitude")
	s, err = smoothen(&matrix{values: []float32{1, 1.5}, rows: 1, cols: 2}, "smooth-swiglu", 0, plain)
	require.NoError(t, err)
	require.Equal(t, "This smoothing changes none of 2 channels.", s.finding())
	spread := &matrix{values: []float32{17, 34, 68, 136}, rows: 1, cols: 4} // each becomes 16/17 of itself
	s, err = smoothen(spread, "smooth-swiglu", 0, plain)
	require.NoError(t, err)
	require.Equal(t, "5.9%", s.smooth[0].typical())
	_, err = smoothen(m, "none", 0, plain)
	require.ErrorContains(t, err, `"none"`)
}
