package quantize

import (
	"context"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/jsonfloat"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// mixed returns values of many sizes around 2^exponent.
func mixed(r *rand.Rand, n, exponent int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = math.Ldexp(r.NormFloat64(), exponent-r.IntN(20))
	}
	return values
}

// ragged is a file of matrices that no block divides, of one type. Some have values
// that are not finite: in the first strip, in the last, in several. Names of odd
// lengths put data at odd offsets.
func ragged(t *testing.T, d safetensors.DType) (path string) {
	r := rand.New(rand.NewPCG(1, uint64(d.Size())))
	var all []safetensors.Tensor
	add := func(name string, exponent int, shape []int, change func(values []float64)) {
		n := 1
		for _, s := range shape {
			n *= s
		}
		values := mixed(r, n, exponent)
		change(values)
		all = append(all, filetest.Raw(name, d, shape, filetest.Values(d, values)...))
	}
	keep := func([]float64) {}
	add("plain", 0, []int{37, 45}, keep)
	add("cube", 3, []int{3, 11, 7}, keep)
	add("column", 0, []int{131, 1}, keep)
	add("line", 0, []int{1, 301}, keep)
	add("zeros", 0, []int{9, 40}, func(v []float64) { clear(v) })
	add("tiny", -130, []int{20, 33}, keep) // 448/amax overflows: the type's own limit counts
	add("first", 0, []int{21, 34}, func(v []float64) { v[0] = math.NaN() })
	add("last", 0, []int{21, 34}, func(v []float64) { v[len(v)-1] = math.Inf(-1) })
	add("many", 0, []int{40, 33}, func(v []float64) {
		for i := 700; i < len(v); i += 97 {
			v[i] = math.Inf(1 - i%2*2)
		}
		v[1000] = math.NaN()
	})
	all = append(all, filetest.Raw("bytes", safetensors.U8, []int{777}, make([]byte, 777)...))
	return filetest.Write(t, map[string]string{strings.Repeat("k", d.Size()+1): ""}, all...)
}

// TestStripsEqualWhole quantizes in strips of every size, from a row of blocks or a
// single value to the whole tensor, and compares with scaling.Quantize of the whole.
func TestStripsEqualWhole(t *testing.T) {
	blocks := []tensor.Block{{}, {Rows: 1}, {Rows: 1, Cols: 128}, {Rows: 128, Cols: 128}, {Rows: 128, Cols: 1},
		{Rows: 1, Cols: 32}, {Cols: 32}, {Rows: 7, Cols: 10}, {Rows: 5}, {Rows: 1000, Cols: 1000}}
	profiles := []scaling.Profile{scaling.TECurrentPow2, scaling.TEBlock, scaling.TorchAOTensorwise, scaling.DeepSeek, scaling.MXFloor}
	rounding := []fp8.Policy{{}, {Rounding: fp8.Stochastic, Seed: 5}}
	for _, d := range []safetensors.DType{safetensors.F32, safetensors.BF16, safetensors.F16, safetensors.F64} {
		path := ragged(t, d)
		for i, b := range blocks {
			for j, p := range profiles {
				if testing.Short() && (i+j)%5 != 0 {
					continue
				}
				policy := rounding[(i+j)%7/6]
				recipe := scaling.Recipe{Profile: p, Block: b, Format: fp8.Formats()[(i+j)%4], Policy: policy}
				t.Run(fmt.Sprint(d, " ", recipe, " ", policy.Rounding), func(t *testing.T) { checkStrips(t, path, recipe) })
			}
		}
	}
}

func checkStrips(t *testing.T, path string, recipe scaling.Recipe) {
	want, summary := wholeOf(t, path, recipe)
	for workers, strip := range []int64{1, 100, 1000, 1 << 30} {
		out := filetest.Output(t)
		got, err := File(t.Context(), path, out, Options{Recipe: recipe, Workers: workers, strip: strip})
		require.NoError(t, err)
		require.Equal(t, summary.Elements, got.Elements)
		require.Equal(t, summary.Saturated, got.Saturated)
		require.Equal(t, summary.Flushed, got.Flushed)
		require.Equal(t, summary.BecameNonFinite, got.BecameNonFinite)
		slices.SortFunc(got.NonFinite, func(a, b NonFinite) int { return strings.Compare(a.Tensor, b.Tensor) })
		require.Equal(t, fmt.Sprint(summary.NonFinite), fmt.Sprint(got.NonFinite)) // NaN is not equal to itself
		requireLosses(t, summary.Tensors, got.Tensors)
		file := filetest.Open(t, out)
		for name, data := range want {
			require.Equal(t, data, filetest.Bytes(t, file, name), "%s in strips of %d bytes", name, strip)
		}
	}
}

// requireLosses checks what tensors lost, by name.
func requireLosses(t *testing.T, want, got []TensorLoss) {
	require.Len(t, got, len(want))
	for _, w := range want {
		i := slices.IndexFunc(got, func(g TensorLoss) bool { return g.Name == w.Name })
		require.GreaterOrEqual(t, i, 0)
		require.Equal(t, []int64{w.Saturated, w.Flushed}, []int64{got[i].Saturated, got[i].Flushed}, w.Name)
		if want := float64(w.SQNR); want-want == 0 {
			require.InDelta(t, want, float64(got[i].SQNR), 1e-9, w.Name)
		} else {
			require.Equal(t, fmt.Sprint(want), fmt.Sprint(float64(got[i].SQNR)), w.Name)
		}
	}
}

// wholeOf quantizes the matrices of a file without strips, to data by name.
func wholeOf(t *testing.T, path string, recipe scaling.Recipe) (map[string][]byte, *Summary) {
	data, s := map[string][]byte{}, &Summary{}
	file := filetest.Open(t, path)
	for _, info := range file.Tensors() {
		if !tensorfile.IsMatrix(file, info) {
			data[info.Name] = filetest.Bytes(t, file, info.Name)
			continue
		}
		values, err := tensorfile.NewBuffer(tensorfile.TypeIn(file, info)).Read(file, info.Name, 0, int(info.Len()))
		require.NoError(t, err)
		st := fp8.Stats{Detail: new(fp8.Detail)}
		x := tensor.Tensor{Shape: info.Shape}
		require.NoError(t, values.Quantize(t.Context(), &x, scaling.Quantizer{Recipe: recipe, Options: tensor.Options{Stats: &st}}))
		data[info.Name] = x.Codes
		data[info.Name+operands.ScaleSuffix], err = tensorfile.AppendScales(nil, x.Scales, x.ScaleFormat, 0)
		require.NoError(t, err)
		s.Elements += st.Elements
		s.Saturated += st.Saturated()
		s.Flushed += st.Flushed
		s.BecameNonFinite += st.BecameNonFinite
		s.Tensors = append(s.Tensors, TensorLoss{Name: info.Name, Saturated: st.Saturated(), Flushed: st.Flushed, SQNR: jsonfloat.Number(st.Detail.SQNR())})
	}
	for _, name := range []string{"first", "last", "many"} {
		info := filetest.Info(t, file, name)
		values, err := file.Float32s(name)
		require.NoError(t, err)
		n := NonFinite{Tensor: name, Shape: info.Shape, Index: -1}
		for i, v := range values {
			if v-v == 0 {
				continue
			}
			if n.Count++; n.Index < 0 {
				n.Index, n.Value = i, jsonfloat.Number(v)
			}
		}
		s.NonFinite = append(s.NonFinite, n)
	}
	return data, s
}

// TestMatrixStrips checks that strips cover a matrix and stay within their bytes,
// unless a row of blocks has more.
func TestMatrixStrips(t *testing.T) {
	for _, c := range []struct {
		shape    []int
		block    tensor.Block
		bytes    int64
		policy   fp8.Policy
		elements []int // of each strip
		oneScale bool
	}{
		{[]int{10, 8}, tensor.Block{Rows: 1, Cols: 4}, 100, fp8.Policy{}, []int{24, 24, 24, 8}, false},
		{[]int{10, 8}, tensor.Block{Rows: 1}, 96, fp8.Policy{}, []int{24, 24, 24, 8}, false},
		{[]int{10, 8}, tensor.Block{Rows: 1}, 95, fp8.Policy{}, []int{16, 16, 16, 16, 16}, false},
		{[]int{10, 8}, tensor.Block{Rows: 1}, 1, fp8.Policy{}, []int{8, 8, 8, 8, 8, 8, 8, 8, 8, 8}, false},
		{[]int{2, 5, 8}, tensor.Block{Rows: 4, Cols: 4}, 1, fp8.Policy{}, []int{32, 32, 16}, false},
		{[]int{10, 8}, tensor.Block{Rows: 2}, 200, fp8.Policy{}, []int{48, 32}, false},
		{[]int{10, 8}, tensor.Block{}, 100, fp8.Policy{}, []int{25, 25, 25, 5}, true},
		{[]int{10, 8}, tensor.Block{Rows: 10, Cols: 9}, 319, fp8.Policy{}, []int{79, 1}, true},
		{[]int{10, 8}, tensor.Block{}, 1, fp8.Policy{}, nil, true},
		{[]int{10, 8}, tensor.Block{}, 320, fp8.Policy{}, []int{80}, false},
		{[]int{10, 8}, tensor.Block{Cols: 4}, 1, fp8.Policy{}, []int{80}, false},
		{[]int{10, 8}, tensor.Block{Rows: 1}, 1, fp8.Policy{Rounding: fp8.Stochastic}, []int{80}, false},
		{[]int{10, 8}, tensor.Block{}, 1, fp8.Policy{Rounding: fp8.Stochastic}, []int{80}, false},
	} {
		recipe := scaling.Recipe{Block: c.block, Policy: c.policy}
		m := newMatrix(safetensors.Info{DType: safetensors.F32, Shape: c.shape}, false, recipe, c.bytes)
		var got []int
		next := int64(0)
		for s := range m.strips() {
			first, n := m.elements(s)
			require.Equal(t, next, first)
			next += int64(n)
			got = append(got, n)
		}
		require.Equal(t, int64(80), next)
		require.Equal(t, c.oneScale, m.oneScale)
		if c.elements != nil {
			require.Equal(t, c.elements, got, "%v in %v", c.shape, c.block)
		}
		for range m.strips() {
			break
		}
	}
}

// TestOneScaleStats checks that strips under one scale have the codes and Stats of
// the whole: extremes are zero, subnormal, saturated, infinite, NaN.
func TestOneScaleStats(t *testing.T) {
	for _, ends := range [][]float32{{1, -2}, {0, 0}, {1, infinity(1)}, {infinity(-1), 3}, {nan32, 5}, {nan32, infinity(-1)}, {1.9, -1.9}, {1e-42, -1e-42}, {1e-43, 0}} {
		values := append(tensorfile.Values[float32]{1, 1e-3, 1e-9, 0, 0.01, -0.4}, ends...)
		if ends[0] < 1e-40 { // nothing larger beside it
			values = tensorfile.Values[float32](append(make([]float32, 6), ends...))
		}
		for _, p := range tensorfile.ProfilesFor(fp8.E4M3) {
			for _, f := range fp8.Formats() {
				var want fp8.Stats
				x := tensor.Tensor{Shape: []int{len(values)}}
				recipe := scaling.Recipe{Profile: p, Format: f, Policy: fp8.Policy{Inf: fp8.InfPropagate}}
				require.NoError(t, values.Quantize(t.Context(), &x, scaling.Quantizer{Recipe: recipe, Options: tensor.Options{Stats: &want}}))

				m := newMatrix(safetensors.Info{DType: safetensors.F32, Shape: x.Shape}, false, recipe, 12)
				m.survey(values[:3].Extremes())
				m.survey(values[3:].Extremes())
				var err error
				m.scale, err = values.Scale(recipe, m.extremes)
				require.NoError(t, err)
				require.Equal(t, filetest.FloatBytes(x.Scales...), filetest.FloatBytes(m.scale.Stored))
				var got fp8.Stats
				var codes tensor.Tensor
				for s := range m.strips() {
					st, err := m.quantize(t.Context(), &codes, values[s.lo:s.hi], s)
					require.NoError(t, err)
					require.Equal(t, x.Codes[s.lo:s.hi], codes.Codes[:s.hi-s.lo])
					got.Merge(&st)
				}
				require.Equal(t, want, got, "%v of %v", recipe, values)
			}
		}
	}
}

// quantizeOpen writes what becomes of an open file to out.
func quantizeOpen(t *testing.T, file *safetensors.File, out string, recipe scaling.Recipe, strip int64) error {
	outputs, err := Options{Recipe: recipe}.planOutputs(file)
	require.NoError(t, err)
	infos, total := declare(outputs)
	return safetensors.WriteFileAtFunc(out, infos, nil, func(w *safetensors.WriterAt) error {
		q := newQuantizer(t.Context(), file, Options{Recipe: recipe, strip: strip}, total)
		q.out = w
		_, err := q.write(outputs)
		return err
	})
}

// TestQuantizeShrunk reads a file that is shorter than when it was opened.
func TestQuantizeShrunk(t *testing.T) {
	whole, err := os.ReadFile(filetest.Write(t, nil,
		filetest.F32("w", []int{4, 64}, make([]float32, 256)...), filetest.Raw("z", safetensors.U8, []int{300}, make([]byte, 300)...)))
	require.NoError(t, err)
	for cut, want := range map[int]string{
		1:   `tensor "z": reading 100 of its 300 bytes at data offset 1224: unexpected EOF`,
		400: `tensor "w": reading 256 of its 1024 bytes at data offset 768: unexpected EOF`,
	} {
		file, err := safetensors.NewReader(strings.NewReader(string(whole[:len(whole)-cut])), int64(len(whole)))
		require.NoError(t, err)
		for _, b := range []tensor.Block{{Rows: 1}, {}} {
			recipe, out := scaling.Recipe{Block: b}, filetest.Output(t)
			err := quantizeOpen(t, file, out, recipe, 100)
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			if b.Rows == 1 {
				require.ErrorContains(t, err, want)
			}
			filetest.RequireNothing(t, out)
		}
	}
}

// TestQuantizeInterrupted checks that a job that is stopped leaves no file behind.
func TestQuantizeInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	out := filetest.Output(t)
	_, err := File(ctx, ragged(t, safetensors.F32), out, Options{Recipe: scaling.Default(scaling.Weight)})
	require.ErrorIs(t, err, context.Canceled)
	filetest.RequireNothing(t, out)
}

// TestQuantizeInterruptedLater ends the context while strips are being done.
func TestQuantizeInterruptedLater(t *testing.T) {
	for _, b := range []tensor.Block{{Rows: 1}, {}} {
		ctx, cancel := context.WithCancel(t.Context())
		out := filetest.Output(t)
		o := Options{Recipe: scaling.Recipe{Block: b}, strip: 1}
		_, err := File(countdown{ctx, cancel, new(atomic.Int64)}, ragged(t, safetensors.F32), out, o)
		require.ErrorIs(t, err, context.Canceled)
		filetest.RequireNothing(t, out)
	}
}

// countdown is a context that ends when it has been asked 50 times.
type countdown struct {
	context.Context
	cancel context.CancelFunc
	asked  *atomic.Int64
}

func (c countdown) Err() error {
	if c.asked.Add(1) == 50 {
		c.cancel()
	}
	return c.Context.Err()
}

// lateReader takes its time over the last byte.
type lateReader struct{ *strings.Reader }

func (r lateReader) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) == r.Size() {
		time.Sleep(30 * time.Millisecond)
	}
	return r.Reader.ReadAt(p, off)
}

// TestSurveyIsAwaited reads the largest value of a tensor last.
func TestSurveyIsAwaited(t *testing.T) {
	data, err := os.ReadFile(filetest.Write(t, nil, filetest.F32("w", []int{1, 4}, 1, 1, 1, 448)))
	require.NoError(t, err)
	file, err := safetensors.NewReader(lateReader{strings.NewReader(string(data))}, int64(len(data)))
	require.NoError(t, err)
	recipe, out := scaling.Recipe{Profile: scaling.TECurrent}, filetest.Output(t)
	require.NoError(t, quantizeOpen(t, file, out, recipe, 4))
	require.Equal(t, filetest.FloatBytes(1), filetest.Bytes(t, filetest.Open(t, out), "w_scale_inv"))
	require.Equal(t, []byte{0x38, 0x38, 0x38, 0x7E}, filetest.Bytes(t, filetest.Open(t, out), "w"))
}

var nan32 = float32(math.NaN())

func infinity(sign int) float32 { return float32(math.Inf(sign)) }
