package arrays

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/internal/random"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
)

// TestArrays writes and reads arrays that are longer than what is converted at a
// time.
func TestArrays(t *testing.T) {
	const n = 2*chunkElements + 5
	x, h, o := make(Floats, n), make(BFloat16s, n), make(Bytes, n)
	for i := range n {
		v := random.Normal(1, 1, uint64(i))
		x[i], h[i], o[i] = v, fp8.BFloat16FromFloat32(v), byte(i*7)
	}
	arrays := func(x Floats, h BFloat16s, o Bytes) []Array {
		return []Array{
			New("x", []int{n}, x, Finite),
			New("h", []int{1, n}, h, Finite),
			New("o", []int{n}, o, NotNegative),
		}
	}
	path := filepath.Join(t.TempDir(), "arrays")
	written := arrays(x, h, o)
	require.NoError(t, Write(meter.New(t.Context(), nil, "", 0), path, written, nil))
	f, err := safetensors.Open(path)
	require.NoError(t, err)
	defer f.Close()
	x2, h2, o2 := make(Floats, n), make(BFloat16s, n), make(Bytes, n)
	for i, a := range arrays(x2, h2, o2) {
		sum, err := written[i].Checksum(meter.New(t.Context(), nil, "", 0))
		require.NoError(t, err)
		require.NoError(t, a.Read(meter.New(t.Context(), nil, "", 0), f, sum))
		require.ErrorContains(t, a.Read(meter.New(t.Context(), nil, "", 0), f, "00000000"), "is damaged")
	}
	require.Equal(t, x, x2)
	require.Equal(t, h, h2)
	require.Equal(t, o, o2)
}

// watched calls a function when the value of the first element is looked at.
type watched struct {
	Floats
	first func()
}

func (w watched) Value(i int) float64 {
	if i == 0 {
		w.first()
	}
	return w.Floats.Value(i)
}

// TestChecksEnd with the context, before the whole tensor was looked at.
func TestChecksEnd(t *testing.T) {
	const n = 4 * chunkElements
	path := filepath.Join(t.TempDir(), "arrays")
	written := New("x", []int{n}, make(Floats, n), Finite)
	require.NoError(t, Write(meter.New(t.Context(), nil, "", 0), path, []Array{written}, nil))
	f, err := safetensors.Open(path)
	require.NoError(t, err)
	defer f.Close()
	ctx, cancel := context.WithCancel(t.Context())
	a := New("x", []int{n}, watched{make(Floats, n), cancel}, Finite)
	require.ErrorIs(t, a.Read(meter.New(ctx, nil, "", 0), f, Checksum(make([]byte, 4*n))), context.Canceled)

	ctx, cancel = context.WithCancel(t.Context())
	done := int64(0)
	report := progress.Func(func(_ string, n, _ int64) { done = n })
	a = New("x", []int{n}, watched{make(Floats, n), cancel}, Finite)
	_, err = a.Checksum(meter.New(ctx, report, "", 4*n))
	require.ErrorIs(t, err, context.Canceled)
	require.EqualValues(t, 4*chunkElements, done)
}

// TestInvalid: a value that is not valid is named, unless the data is not what was
// written.
func TestInvalid(t *testing.T) {
	const n = 2 * chunkElements
	x := make(Floats, n)
	x[n-2], x[n-1] = float32(math.NaN()), float32(math.Inf(1))
	a := New("x", []int{n}, x, Finite)
	path := filepath.Join(t.TempDir(), "arrays")
	done := func() *meter.Meter { return meter.New(t.Context(), nil, "", 0) }
	require.NoError(t, Write(done(), path, []Array{a}, nil))
	_, err := a.Checksum(done())
	require.EqualError(t, err, `tensor "x": element 16382 is NaN: want a finite number`)
	f, err := safetensors.Open(path)
	require.NoError(t, err)
	defer f.Close()
	data, err := f.Bytes("x")
	require.NoError(t, err)
	err = a.Read(done(), f, Checksum(data))
	require.EqualError(t, err, `tensor "x": element 16382 is NaN: want a finite number`)
	require.ErrorIs(t, err, ErrDamaged)
	err = a.Read(done(), f, Checksum(data[1:]))
	require.ErrorContains(t, err, `tensor "x" is damaged`)
	require.ErrorIs(t, err, ErrDamaged)
}

// TestValidity asks of single values, and of many of which one may not be.
func TestValidity(t *testing.T) {
	nan := float32(math.NaN())
	least, inf := math.Float32frombits(1), float32(math.Inf(1))
	minus0 := float32(math.Copysign(0, -1))
	for _, c := range []struct {
		v         Validity
		good, bad []float32
	}{
		{Finite, []float32{-1, 0, minus0, math.MaxFloat32, -math.MaxFloat32, least},
			[]float32{nan, -nan, inf, -inf}},
		{NotNegative, []float32{0, 1, math.MaxFloat32, least},
			[]float32{nan, -nan, inf, -inf, -1, minus0, -least}},
		{Positive, []float32{1, math.MaxFloat32, least},
			[]float32{nan, -nan, inf, -inf, -1, minus0, -least, 0}},
	} {
		require.True(t, c.v.okAll(c.good), c.v.want)
		require.True(t, c.v.okAll(nil))
		for _, x := range c.good {
			require.True(t, c.v.ok(float64(x)), "%v %v", x, c.v.want)
		}
		for _, x := range c.bad {
			require.False(t, c.v.ok(float64(x)), "%v %v", x, c.v.want)
			require.False(t, c.v.okAll([]float32{1, x, 2}), "%v %v", x, c.v.want)
		}
	}
}
