package vectors

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/safetensors"
)

// definition is a format as README.md of a set describes it.
type definition struct {
	bits, mantissa, bias int
	kind                 string // what codes are no numbers
	limit                int    // their first magnitude
}

var definitions = map[string]definition{
	"E4M3":        {8, 3, 7, "nan", 0x7F},
	"E5M2":        {8, 2, 15, "ieee", 0x7C},
	"E4M3FNUZ":    {8, 3, 8, "fnuz", 0x80},
	"E5M2FNUZ":    {8, 2, 16, "fnuz", 0x80},
	"E2M1":        {4, 1, 1, "finite", 0x08},
	"E2M3":        {6, 3, 1, "finite", 0x20},
	"E3M2":        {6, 2, 3, "finite", 0x20},
	"E4M3IEEE":    {8, 3, 7, "ieee", 0x78},
	"E3M4":        {8, 4, 3, "ieee", 0x70},
	"E4M3B11FNUZ": {8, 3, 11, "fnuz", 0x80},
	"MXINT8":      {8, 8, 0, "integer", 0x80},
}

// value returns what a code stands for.
func (d definition) value(code byte) float64 {
	if d.kind == "integer" {
		return float64(int8(code)) / 64
	}
	sign := byte(1) << (d.bits - 1)
	m := int(code & (sign - 1))
	x := math.Ldexp(float64(m), 1-d.bias-d.mantissa)
	if e := m >> d.mantissa; e > 0 {
		x = math.Ldexp(float64(m&(1<<d.mantissa-1)|1<<d.mantissa), e-d.bias-d.mantissa)
	}
	switch {
	case d.kind == "ieee" && m == d.limit:
		x = math.Inf(1)
	case m >= d.limit, d.kind == "fnuz" && code == sign:
		x = math.NaN()
	}
	if code&sign != 0 {
		x = math.Copysign(x, -1)
	}
	return x
}

// largest returns the largest finite code.
func (d definition) largest() byte { return byte(d.limit - 1) }

// minusZero returns the code of -0, or that of 0 where there is none.
func (d definition) minusZero() byte {
	if d.kind == "fnuz" || d.kind == "integer" {
		return 0
	}
	return 1 << (d.bits - 1)
}

// negative returns the code of the other sign.
func (d definition) negative(code byte) byte {
	switch {
	case d.kind == "integer":
		return -code
	case code == 0:
		return d.minusZero()
	}
	return code | 1<<(d.bits-1)
}

func e8m0(code byte) float64 {
	if code == 0xFF {
		return math.NaN()
	}
	return math.Ldexp(1, int(code)-127)
}

func ue4m3(code byte) float64 {
	if code >= 0x7F {
		return math.NaN()
	}
	return definitions["E4M3"].value(code)
}

// reader reads a file of a set.
type reader struct {
	t *testing.T
	*safetensors.File
}

// open reads a file of the set of seed 1, and its JSON into index.
func open(t *testing.T, name string, index any) reader {
	t.Helper()
	data := set()[name+".safetensors"]
	file, err := safetensors.NewReader(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(set()[name+".json"]))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(index))
	return reader{t, file}
}

func (r reader) float32s(name string) []float32 {
	r.t.Helper()
	x, err := r.Float32s(name)
	require.NoError(r.t, err, name)
	return x
}

// codes reads a tensor of bytes, whatever its type.
func (r reader) codes(name string) []byte {
	r.t.Helper()
	data, err := r.Bytes(name)
	require.NoError(r.t, err, name)
	info, _ := r.Info(name)
	require.Equal(r.t, 1, info.DType.Size(), name)
	return data
}

// decoded is an operand as the README says to read it.
type decoded struct {
	rows, cols           int
	blockRows, blockCols int
	codes                []byte
	values, scales       []float64 // of codes and of blocks
	outer                []float64
	outerRows            int
	divides              bool
	format               string
	gridCols             int
}

func (r reader) operand(o operand) decoded {
	r.t.Helper()
	d := decoded{rows: 1, cols: o.Shape[len(o.Shape)-1], format: o.Format, codes: r.codes(o.Codes), divides: o.OuterDivides}
	for _, n := range o.Shape[:len(o.Shape)-1] {
		d.rows *= n
	}
	d.blockRows, d.blockCols = extents(r.t, o.Block, d.rows, d.cols)
	format := definitions[o.Format]
	require.Len(r.t, d.codes, d.rows*d.cols)
	for _, c := range d.codes {
		require.Less(r.t, int(c), 1<<format.bits)
		d.values = append(d.values, format.value(c))
	}
	info, _ := r.Info(o.Scales)
	require.Len(r.t, info.Shape, 2)
	d.gridCols = info.Shape[1]
	switch name, _ := o.ScaleFormat.MarshalText(); string(name) {
	case "float32":
		for _, s := range r.float32s(o.Scales) {
			d.scales = append(d.scales, float64(s))
		}
	case "E8M0":
		require.EqualValues(r.t, "F8_E8M0", info.DType)
		for _, c := range r.codes(o.Scales) {
			d.scales = append(d.scales, e8m0(c))
		}
	case "UE4M3":
		require.EqualValues(r.t, "F8_E4M3", info.DType)
		for _, c := range r.codes(o.Scales) {
			require.Less(r.t, c, byte(0x80))
			d.scales = append(d.scales, ue4m3(c))
		}
	default:
		require.Fail(r.t, "format of scales", "%s", name)
	}
	d.outerRows = o.OuterRows
	if o.Outer != "" {
		for _, g := range r.float32s(o.Outer) {
			d.outer = append(d.outer, float64(g))
		}
	}
	return d
}

// extents returns the rows and columns of a block.
func extents(t *testing.T, block string, rows, cols int) (r, c int) {
	switch block {
	case "tensor":
		return rows, cols
	case "row":
		return 1, cols
	}
	h, w, ok := strings.Cut(block, "x")
	require.True(t, ok, block)
	number := func(s string, all int) int {
		if s == "all" {
			return all
		}
		n := 0
		for _, d := range s {
			n = 10*n + int(d-'0')
		}
		return n
	}
	return number(h, rows), number(w, cols)
}

// scale returns the scale of the block of an element.
func (d *decoded) scale(i, j int) float64 { return d.scales[i/d.blockRows*d.gridCols+j/d.blockCols] }

// outerAt returns the outer scale of a row.
func (d *decoded) outerAt(i int) float64 {
	switch {
	case len(d.outer) == 0:
		return 1
	case d.outerRows == 0:
		return d.outer[0]
	}
	return d.outer[i/d.outerRows]
}

// factor is outerAt as a multiplier, rounded.
func (d *decoded) factor(i int) float32 {
	g := float32(d.outerAt(i))
	if d.divides {
		return 1 / g
	}
	return g
}
