package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// inputs opens files until the test ends.
func inputs(t *testing.T, paths ...string) []Input {
	t.Helper()
	in, err := Open(paths)
	require.NoError(t, err)
	t.Cleanup(func() { Close(in) })
	return in
}

func run(t *testing.T, j Job) *Report {
	t.Helper()
	r, err := j.Run(t.Context())
	require.NoError(t, err)
	return r
}

// ragged is a file of tensors that no block divides, of one type, some with values that
// are not finite.
func ragged(t *testing.T, d safetensors.DType) (path string) {
	r := rand.New(rand.NewPCG(1, uint64(d.Size())))
	var all []safetensors.Tensor
	add := func(name string, exponent int, shape []int, change func(values []float64)) {
		values := make([]float64, safetensors.Info{DType: d, Shape: shape}.Len())
		for i := range values {
			values[i] = math.Ldexp(r.NormFloat64(), exponent-r.IntN(20))
		}
		if change != nil {
			change(values)
		}
		all = append(all, filetest.Raw(name, d, shape, filetest.Values(d, values)...))
	}
	add("plain", 0, []int{300, 145}, nil)
	add("cube", 3, []int{3, 50, 7}, nil)
	add("line", 0, []int{1, 301}, nil)
	add("vector", 0, []int{901}, nil)
	add("zeros", 0, []int{9, 40}, func(v []float64) { clear(v) })
	add("tiny", -130, []int{20, 33}, nil)
	add("first", 0, []int{21, 34}, func(v []float64) { v[0] = math.NaN() })
	add("last", 0, []int{129, 34}, func(v []float64) { v[len(v)-1] = math.Inf(-1) })
	add("many", 0, []int{400, 33}, func(v []float64) {
		for i := 700; i < len(v); i += 97 {
			v[i] = math.Inf(1 - i%2*2)
		}
	})
	all = append(all, filetest.Raw("bytes", safetensors.U8, []int{777}, make([]byte, 777)...), filetest.Raw("none", d, []int{0, 3}))
	return filetest.Write(t, nil, all...)
}

// TestAsWhole inspects in strips of every size, with one goroutine and with several, and
// compares with quantizing whole tensors with an fp8.Detail. For one size of strips all
// figures have the same bits.
func TestAsWhole(t *testing.T) {
	for _, d := range []safetensors.DType{safetensors.F32, safetensors.BF16, safetensors.F16, safetensors.F64, safetensors.F8E5M2} {
		in := inputs(t, ragged(t, d))
		strips := []int64{1, 20_000, 0}
		if testing.Short() {
			strips = strips[1:2]
		}
		for _, strip := range strips {
			t.Run(fmt.Sprint(d, strip), func(t *testing.T) {
				one := run(t, Job{Inputs: in, workers: 1, strip: strip})
				for _, tensor := range one.Tensors {
					requireWhole(t, in[0].File, &tensor)
				}
				several := run(t, Job{Inputs: in, workers: 5, strip: strip})
				require.Equal(t, text(t, one), text(t, several))
				for i := range one.Tensors {
					require.Equal(t, one.Tensors[i].binades, several.Tensors[i].binades)
				}
			})
		}
	}
}

// TestDigitsOfAProfile checks that what is said of a recipe has the same bits whichever
// others are tried.
func TestDigitsOfAProfile(t *testing.T) {
	in := inputs(t, ragged(t, safetensors.F32))
	all := run(t, Job{Inputs: in, strip: 1})
	for _, p := range tensorfile.ProfilesFor(fp8.E4M3) {
		one := run(t, Job{Inputs: in, strip: 1, Profiles: []scaling.Profile{p}})
		for i := range one.Tensors {
			require.Equal(t, all.Tensors[i].binades, one.Tensors[i].binades)
			for k := range one.Tensors[i].Recipes {
				got := &one.Tensors[i].Recipes[k]
				require.Equal(t, fmt.Sprintf("%+v", *all.Tensors[i].under(p)), fmt.Sprintf("%+v", *got))
			}
		}
	}
}

// TestNamedTwice checks that a file counts once, however it is named.
func TestNamedTwice(t *testing.T) {
	path := ragged(t, safetensors.F32)
	dir := filepath.Dir(path)
	link := filepath.Join(dir, "link.safetensors")
	paths := []string{path, dir, path}
	if os.Symlink(path, link) == nil {
		paths = append(paths, link)
	}
	in := inputs(t, paths...)
	require.Len(t, in, 1)
	require.Equal(t, path, in[0].Path)
}

// text has every bit of a report but those of NaNs.
func text(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	require.NoError(t, r.WriteJSON(&b, View{Sort: ByFile}))
	return b.String()
}

func requireWhole(t *testing.T, file *safetensors.File, got *TensorReport) {
	t.Helper()
	info := filetest.Info(t, file, got.Name)
	if info.DType == safetensors.U8 {
		require.Nil(t, got.Values)
		return
	}
	values, err := tensorfile.NewBuffer(tensorfile.TypeIn(file, info)).Read(file, info.Name, 0, int(info.Len()))
	require.NoError(t, err)
	st := values.Measure(make([]byte, info.Len()))
	v := got.Values
	require.Equal(t, []int64{st.Elements, st.Zeros, st.NaN, st.PosInf, st.NegInf}, []int64{v.Elements, v.Zeros, v.NaN, v.PosInf, v.NegInf})
	require.Equal(t, []float64{st.Amax, st.Smallest}, []float64{float64(v.Amax), float64(v.Smallest)})
	require.InEpsilon(t, 1+othersOf(values), 1+float64(v.Others), 1e-9)
	if first, _ := values.FirstNonFinite(); first >= 0 {
		require.EqualValues(t, first, *v.FirstNonFinite, got.Name)
	} else {
		require.Nil(t, v.FirstNonFinite)
	}
	if !tensorfile.IsMatrix(file, info) {
		require.Empty(t, got.Recipes)
		return
	}
	require.Len(t, got.Recipes, len(tensorfile.ProfilesFor(fp8.E4M3)))
	for i, p := range tensorfile.ProfilesFor(fp8.E4M3) {
		want := fp8.Stats{Detail: new(fp8.Detail)}
		x := tensor.Tensor{Shape: info.Shape}
		require.NoError(t, values.Quantize(t.Context(), &x, scaling.Quantizer{Recipe: p.Recipe(scaling.Weight), Options: tensor.Options{Stats: &want}}))
		r := got.Recipes[i]
		require.Equal(t, p, r.Profile)
		require.Equal(t, []int64{want.Saturated(), want.Flushed, want.BecameNonFinite, want.Subnormal},
			[]int64{r.Saturated, r.Flushed, r.BecameNonFinite, r.Subnormal}, "%s %s", got.Name, p)
		if sqnr := want.Detail.SQNR(); sqnr-sqnr == 0 {
			require.InDelta(t, sqnr, float64(r.SQNR), 1e-9, "%s %s", got.Name, p)
		} else {
			require.Equal(t, fmt.Sprint(sqnr), fmt.Sprint(float64(r.SQNR)), "%s %s", got.Name, p)
		}
		row, block := errorsOf(values, &x)
		requireAbout(t, row, r.RowError, "%s %s", got.Name, p)
		requireAbout(t, block, r.BlockError, "%s %s", got.Name, p)
		lo, hi := tensorfile.ScaleRange(x.Scales)
		require.Equal(t, fmt.Sprint(lo, hi), fmt.Sprint(r.ScaleMin, r.ScaleMax), "%s %s", got.Name, p)
		binades, lowest := trim(&want.Detail.Exponents)
		require.Equal(t, binades, got.binades, got.Name)
		require.Equal(t, lowest, got.lowest)
	}
}

// othersOf returns the root mean square of the finite values but for one of the largest.
func othersOf(values tensorfile.Array) float64 {
	var finite []float64
	for _, v := range float64s(values) {
		if v-v == 0 {
			finite = append(finite, math.Abs(v))
		}
	}
	slices.Sort(finite)
	sum := 0.0
	for _, v := range finite[:max(len(finite)-1, 0)] {
		sum += v * v
	}
	return math.Sqrt(sum / float64(max(len(finite)-1, 1)))
}

func float64s(values tensorfile.Array) (all []float64) {
	switch v := values.Widen(new([]float32)).(type) {
	case tensorfile.Values[float32]:
		for _, y := range v {
			all = append(all, float64(y))
		}
	case tensorfile.Values[float64]:
		all = v
	}
	return all
}

// errorsOf returns the largest error of a row and the mean of those of blocks of 128 values in
// a row, by their definition: the root of the energy of the difference over that of the values.
func errorsOf(values tensorfile.Array, x *tensor.Tensor) (row, block float64) {
	all := float64s(values)
	decoded := make([]float64, len(all))
	tensor.Dequantize(decoded, x)
	rows, cols := x.Dims()
	relative := func(lo, hi int) (e float64, ok bool) {
		noise, energy := 0.0, 0.0
		for i := lo; i < hi; i++ {
			if v := all[i]; v-v == 0 {
				noise += (v - decoded[i]) * (v - decoded[i])
				energy += v * v
			}
		}
		return math.Sqrt(noise / energy), energy > 0
	}
	n := 0
	for i := range rows {
		if e, ok := relative(i*cols, (i+1)*cols); ok {
			row = max(row, e)
		}
		for at := 0; at < cols; at += 128 {
			if e, ok := relative(i*cols+at, i*cols+min(at+128, cols)); ok {
				block, n = block+e, n+1
			}
		}
	}
	return row, block / float64(max(n, 1))
}

func requireAbout(t *testing.T, want float64, got jsonout.Number, message ...any) {
	t.Helper()
	if want != want {
		require.True(t, got != got, message...)
		return
	}
	require.InDelta(t, want, float64(got), 1e-6*want+1e-12, message...)
}

// TestProfiles tries only some recipes, in the order in which they are asked for.
func TestProfiles(t *testing.T) {
	in := inputs(t, ragged(t, safetensors.F32))
	all := run(t, Job{Inputs: in, strip: 1000})
	some := run(t, Job{Inputs: in, strip: 1000, Profiles: []scaling.Profile{scaling.MXFloor, scaling.TECurrent}})
	for i, got := range some.Tensors {
		if want := all.Tensors[i]; want.Recipes != nil {
			require.Len(t, got.Recipes, 2)
			for k, p := range []scaling.Profile{scaling.MXFloor, scaling.TECurrent} {
				a, b := *want.under(p), got.Recipes[k] // strips differ, and with them the last digits
				for _, x := range []*jsonout.Number{&a.SQNR, &b.SQNR, &a.RowError, &b.RowError, &a.BlockError, &b.BlockError} {
					*x = jsonout.Number(math.Round(1e9 * float64(*x)))
				}
				require.Equal(t, fmt.Sprint(a), fmt.Sprint(b))
			}
		}
	}
}

// TestProgress checks that each byte counts once, though some are read twice.
func TestProgress(t *testing.T) {
	path := filetest.Write(t, nil, filetest.F32("w", []int{100, 100}, make([]float32, 10000)...), filetest.Raw("b", safetensors.U8, []int{500}, make([]byte, 500)...))
	for _, strip := range []int64{1, 1000, 0} {
		last := int64(0)
		run(t, Job{Inputs: inputs(t, path), strip: strip, Progress: progress.Func(func(op string, done, total int64) {
			require.Equal(t, "inspecting", op)
			require.EqualValues(t, 40500, total)
			require.GreaterOrEqual(t, done, last)
			last = done
		})})
		require.EqualValues(t, 40500, last)
	}
}

// countdown is a context that ends when it has been asked a number of times.
type countdown struct {
	context.Context
	cancel context.CancelFunc
	asked  *atomic.Int64
	at     int64
}

func (c countdown) Err() error {
	if c.asked.Add(1) == c.at {
		c.cancel()
	}
	return c.Context.Err()
}

// TestInterrupted ends the context at every place: what was finished is reported, and
// nothing else.
func TestInterrupted(t *testing.T) {
	in := inputs(t, ragged(t, safetensors.BF16))
	whole := run(t, Job{Inputs: in, strip: 5000})
	reported := map[int]bool{}
	for _, at := range []int64{1, 5, 20, 60, 100, 200, 300} {
		ctx, cancel := context.WithCancel(t.Context())
		r, err := Job{Inputs: in, strip: 5000, workers: 2}.Run(countdown{ctx, cancel, new(atomic.Int64), at})
		cancel()
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, len(whole.Tensors), r.Selected)
		require.Less(t, len(r.Tensors), r.Selected)
		reported[len(r.Tensors)] = true
		byName := map[string]*TensorReport{}
		for i := range whole.Tensors {
			byName[whole.Tensors[i].Name] = &whole.Tensors[i]
		}
		for _, got := range r.Tensors {
			want, err := json.Marshal(byName[got.Name].Recipes)
			require.NoError(t, err)
			have, err := json.Marshal(got.Recipes)
			require.NoError(t, err)
			require.Equal(t, string(want), string(have))
		}
	}
	require.Greater(t, len(reported), 2)
}

// TestSeveralFiles has tensors of the same name, and a directory.
func TestSeveralFiles(t *testing.T) {
	dir := t.TempDir()
	for i, name := range []string{"b.safetensors", "a.safetensors", "other.bin"} {
		values := []float32{float32(i + 1), 1}
		require.NoError(t, safetensors.WriteFile(filepath.Join(dir, name), []safetensors.Tensor{filetest.F32("w", []int{1, 2}, values...)}, nil))
	}
	require.NoError(t, os.Mkdir(filepath.Join(dir, "d.safetensors"), 0o755))
	r := run(t, Job{Inputs: inputs(t, dir)})
	require.Len(t, r.Tensors, 2)
	for i, name := range []string{"a.safetensors", "b.safetensors"} {
		require.Equal(t, filepath.Join(dir, name), r.Tensors[i].File)
		require.Equal(t, filepath.Join(dir, name), r.Files[i].Path)
		require.EqualValues(t, 2-i, r.Tensors[i].Values.Amax)
	}
	require.Equal(t, 2, r.Totals.Files)
	require.EqualValues(t, 4, r.Totals.Parameters)
	require.Equal(t, dir, r.title())
}

func TestOpenErrors(t *testing.T) {
	good := filetest.Write(t, nil, filetest.F32("w", []int{1}, 1))
	dir := t.TempDir()
	_, err := Open([]string{good, dir})
	require.ErrorContains(t, err, dir+": it has no index and no .safetensors file: name files")
	_, err = Open([]string{filepath.Join(dir, "missing")})
	require.ErrorContains(t, err, "missing: no such file or directory: name a safetensors file or a directory")

	whole, err := os.ReadFile(good)
	require.NoError(t, err)
	for name, data := range map[string][]byte{"cut.safetensors": whole[:len(whole)-1], "empty.safetensors": nil} {
		broken := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(broken, data, 0o600))
		_, err = Open([]string{good, broken})
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "want a complete safetensors file")
	}
}

// TestShrunk reads a file that is shorter than when it was opened: the error names it.
func TestShrunk(t *testing.T) {
	path := filetest.Write(t, nil, filetest.F32("w", []int{100, 100}, make([]float32, 10000)...))
	in := inputs(t, path)
	require.NoError(t, os.Truncate(path, 20000))
	_, err := Job{Inputs: in}.Run(t.Context())
	require.ErrorContains(t, err, path+": ")
	require.ErrorContains(t, err, `tensor "w"`)
}

func TestPlan(t *testing.T) {
	recipes := []scaling.Recipe{{}, {Block: tensor.Block{Rows: 1}}, {Block: tensor.Block{Rows: 4, Cols: 4}}, {Block: tensor.Block{Rows: 6, Cols: 2}}, {Block: tensor.Block{Rows: 1, Cols: 2}}}
	for _, c := range []struct {
		shape       []int
		recipes     []scaling.Recipe
		strip       int64
		ready, late int
		height      int
	}{
		{[]int{100, 8}, recipes, 1, 4, 1, 12},
		{[]int{100, 8}, recipes, 12 * 8 * 4 * 2, 4, 1, 24},
		{[]int{100, 8}, recipes, 1 << 20, 5, 0, 100},
		{[]int{5, 8}, recipes, 1, 5, 0, 5},
		{[]int{100, 8}, recipes[:2], 1, 1, 1, 1},
		{[]int{100, 8}, recipes[:1], 1, 0, 1, 1},
		{[]int{10, 10, 8}, recipes[2:3], 200, 1, 0, 4},
		{[]int{100}, recipes, 40, 0, 0, 10},
	} {
		in := inputs(t, filetest.Write(t, nil, filetest.F32("w", c.shape, make([]float32, safetensors.Info{DType: safetensors.F32, Shape: c.shape}.Len())...)))
		p, err := newPlan(newMeasurement(&in[0], filetest.Info(t, in[0].File, "w")), c.recipes, c.recipes, c.strip)
		require.NoError(t, err)
		require.Equal(t, []int{c.ready, c.late, c.height}, []int{len(p.ready), len(p.late), p.height}, "%v", c)
		next, n := int64(0), 0
		for i, s := range p.strips() {
			first, elements := p.elements(s)
			require.Equal(t, next, first)
			next += int64(elements)
			require.Equal(t, n, i)
			n++
		}
		require.Equal(t, safetensors.Info{DType: safetensors.F32, Shape: c.shape}.Len(), next)
		require.Equal(t, n, p.count())
	}
}

// TestLeftOut: of a directory what its index names is inspected, and what else lies there is said,
// unless that is named, too.
func TestLeftOut(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"a", "b", "c"} {
		require.NoError(t, safetensors.WriteFile(path(name+".safetensors"), []safetensors.Tensor{filetest.F32(name, []int{1, 2}, 1, 2)}, nil))
	}
	r := run(t, Job{Inputs: inputs(t, dir)})
	require.Empty(t, r.LeftOut)
	require.EqualValues(t, 6, r.Totals.Parameters)
	require.NoError(t, os.WriteFile(path("model.safetensors.index.json"), []byte(`{"weight_map": {"b": "b.safetensors"}}`), 0o666))
	r = run(t, Job{Inputs: inputs(t, dir)})
	require.Equal(t, []string{path("a.safetensors"), path("c.safetensors")}, r.LeftOut)
	require.EqualValues(t, 2, r.Totals.Parameters)
	const said = "Left out, not in the index: a.safetensors, c.safetensors."
	require.Contains(t, textOf(t, r), said)
	require.Contains(t, pageText(t, r), said)
	r = run(t, Job{Inputs: inputs(t, dir, path("a.safetensors"))})
	require.Equal(t, []string{path("c.safetensors")}, r.LeftOut)
	require.EqualValues(t, 4, r.Totals.Parameters)
	require.NoError(t, os.Truncate(path("b.safetensors"), 30))
	_, err := Open([]string{dir})
	require.ErrorContains(t, err, path("b.safetensors")+": ")
	require.ErrorContains(t, err, "past the end")
}
