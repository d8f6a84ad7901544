package verify

import (
	"cmp"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/internal/filetest"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/octavo-fp8/octavo/oracle/flash"
	judged "github.com/octavo-fp8/octavo/oracle/judge/attention"
	"github.com/octavo-fp8/octavo/safetensors"
)

// goldens are the vectors of golden/attention, and what is read of them.
type goldens struct {
	path     string
	file     *safetensors.File
	cases    []goldenCase // the smallest first
	variants map[string]goldenVariant
}

// goldenCase is a problem, as the file's metadata have it.
type goldenCase struct {
	name     string
	HeadsQ   int    `json:"heads_q"`
	HeadsKV  int    `json:"heads_kv"`
	SeqQ     int    `json:"seq_q"`
	SeqK     int    `json:"seq_k"`
	HeadDim  int    `json:"head_dim"`
	HeadDimV int    `json:"head_dim_v"`
	Causal   bool   `json:"causal"`
	Window   [2]int `json:"window"`
	SMScale  string `json:"sm_scale"`
	P        string `json:"p"`
	VScale   string `json:"v_scale"`
	Variants string `json:"variants"`
	Sink     bool   `json:"sink"`
}

// goldenVariant is a kernel.
type goldenVariant struct {
	Block  int     `json:"block"`
	Offset float32 `json:"offset_log2"`
	PScale float32 `json:"p_scale"`
	Tau    float32 `json:"tau"`
	Splits int     `json:"splits"`
	Order  string  `json:"order"`
}

func readGoldens(t *testing.T) *goldens {
	g := &goldens{path: testutil.Shared(t, "golden", "attention", "attention.safetensors")}
	g.file = filetest.Open(t, g.path)
	for key, text := range g.file.Metadata() {
		if name, ok := strings.CutPrefix(key, "case."); ok {
			c := goldenCase{name: name}
			require.NoError(t, json.Unmarshal([]byte(text), &c))
			g.cases = append(g.cases, c)
		}
	}
	require.GreaterOrEqual(t, len(g.cases), 22)
	require.NoError(t, json.Unmarshal([]byte(g.file.Metadata()["variants"]), &g.variants))
	work := func(c goldenCase) int { return c.HeadsQ * c.SeqQ * c.SeqK * (c.HeadDim + c.HeadDimV) }
	slices.SortFunc(g.cases, func(a, b goldenCase) int {
		return cmp.Or(work(a)-work(b), strings.Compare(a.name, b.name))
	})
	return g
}

// flash is the prefix of its results.
func (c goldenCase) flash() string {
	return c.name + ".flash_" + map[string]string{"e4m3": "p8", "bf16": "bf16"}[c.P]
}

// inputs says what a user would of a case: the names of its tensors in the file, but for BF16 of
// one head, which is without heads there and is written to another.
func (g *goldens) inputs(t *testing.T, c goldenCase) Attention {
	scale, err := strconv.ParseFloat(c.SMScale, 32)
	require.NoError(t, err)
	operand := func(name string) Array {
		return Array{Values: c.name + "." + name, Scales: c.name + "." + name + "_scale"}
	}
	i := Attention{File: g.path, Got: g.path, Q: operand("q"), K: operand("k"), V: operand("v"),
		Scale: float32(scale), Keys: c.SeqK, Mask: attention.Mask{Causal: c.Causal}}
	if c.Window != [2]int{-1, -1} {
		i.Mask.Window = &attention.Window{Left: c.Window[0], Right: c.Window[1]}
	}
	if c.Sink {
		i.Sinks = c.name + ".sink"
	}
	if _, ok := g.file.Info(i.V.Values); !ok { // MLA
		i.ValueDim = c.HeadDimV
	}
	if c.P == "bf16" {
		q := filetest.Info(t, g.file, c.name+".q_bf16")
		data := filetest.Bytes(t, g.file, c.name+".kv_bf16")
		sinks := filetest.Info(t, g.file, i.Sinks)
		i.File = filetest.Write(t, nil,
			filetest.Raw("q", safetensors.BF16, q.Shape, filetest.Bytes(t, g.file, q.Name)...),
			filetest.Raw("k", safetensors.BF16, []int{1, c.SeqK, c.HeadDim}, data...),
			filetest.Raw(i.Sinks, safetensors.F32, sinks.Shape, filetest.Bytes(t, g.file, i.Sinks)...))
		i.Q, i.K = Array{Values: "q"}, Array{Values: "k"}
	}
	return i
}

// claim says what is known of a kernel: not in which order it takes tiles, nor how it adds, but
// that this is not as a GPU does.
func (v goldenVariant) claim(p string) judged.Claim {
	cast := map[string]flash.Cast{"e4m3": flash.E4M3, "bf16": flash.BFloat16}[p]
	return judged.Claim{P: &cast, Offset: &v.Offset, PScale: &v.PScale, Threshold: &v.Tau, Tile: &v.Block,
		Splits: &v.Splits, Sums: "float32"}
}

// TestGoldensAreRight reads every golden result, of every case by every kernel, and finds
// nothing wrong with any.
func TestGoldensAreRight(t *testing.T) {
	g := readGoldens(t)
	results := 0
	for n, c := range g.cases {
		if testing.Short() && n >= 16 {
			break
		}
		in := g.inputs(t, c)
		for _, name := range strings.Split(c.Variants, "") {
			prefix := c.flash() + "." + name
			in.Out, in.LSE = prefix+".out", prefix+".lse"
			v, err := in.Run(t.Context(), g.variants[name].claim(c.P), judged.Options{})
			require.NoError(t, err, prefix)
			require.True(t, v.Pass, "%s: %s\n%s", prefix, v.Title(), v.Cause())
			results++

			// The error is that of the golden exact result.
			exact, err := safetensors.Elements[float64](g.file, c.name+".exact.out")
			require.NoError(t, err)
			out, err := g.file.Float32s(in.Out)
			require.NoError(t, err)
			require.InEpsilon(t, relative(out, exact), float64(v.Sequences[0].Comparison.RelL2), 1e-9, prefix)
		}
	}
	if !testing.Short() {
		require.GreaterOrEqual(t, results, 80)
	}
}

func relative(got []float32, want []float64) float64 {
	var off, all float64
	for i, x := range got {
		off += (float64(x) - want[i]) * (float64(x) - want[i])
		all += want[i] * want[i]
	}
	return math.Sqrt(off / all)
}

// goldenMutant is a faulty result of mutants.json, which has its errors.
type goldenMutant struct {
	Variant   string   `json:"variant"`
	RelL2     float64  `json:"rel_l2"`
	Unmutated float64  `json:"unmutated"`
	LSE       *float64 `json:"lse_abs"`
}

// shows reports whether the fault changes more than rounding does.
func (m goldenMutant) shows(c goldenCase) bool {
	return math.Abs(m.RelL2-m.Unmutated) > 1e-3 || m.LSE == nil || *m.LSE > 1e-3 && c.name != "huge"
}

// mutantFaults are the faults of mutants.json, of which there are ten kinds in attention.md.
var mutantFaults = map[string]flash.Fault{
	"rescale_dropped":      {Kind: "rescale-dropped"},
	"stale_max":            {Kind: "stale-max"},
	"tail_unmasked":        {Kind: "tail-unmasked"},
	"k_descale_dropped":    {Kind: "scale-dropped", Of: flash.OfK},
	"v_descale_dropped":    {Kind: "scale-dropped", Of: flash.OfV},
	"descale_head0":        {Kind: "scale-of-head-0", Of: flash.OfKV},
	"split_weight_missing": {Kind: "split-mean"},
	"causal_off_by_one":    {Kind: "right-off", By: 1},
	"causal_top_left":      {Kind: "top-left"},
	"p_scale_kept":         {Kind: "p-scale-kept"},
	"p_saturated":          {Kind: "p-saturated"},
	"lse_base2":            {Kind: "lse-base-2"},
	"gqa_modulo":           {Kind: "head-modulo"},
	"sink_omitted":         {Kind: "sink-omitted"},
	"masked_block_max0":    {Kind: "masked-max"},
}

// TestGoldenMutantsAreNamed makes the mutants of the golden results, whose errors are those that
// mutants.json has, writes them and has the fault of each named from the file: two of each fault,
// one where tests are short and all in full tests.
func TestGoldenMutantsAreNamed(t *testing.T) {
	g := readGoldens(t)
	text, err := os.ReadFile(testutil.Shared(t, "golden", "attention", "mutants.json"))
	require.NoError(t, err)
	var entries map[string]struct{ Mutants map[string]goldenMutant }
	require.NoError(t, json.Unmarshal(text, &entries))
	most := 2
	if testing.Short() {
		most = 1
	}
	if testutil.Full() {
		most = math.MaxInt
	}
	named := map[string]int{}
	for _, c := range g.cases {
		in := g.inputs(t, c)
		for name, m := range entries[c.name].Mutants {
			f, ok := mutantFaults[name]
			require.True(t, ok, name)
			if !m.shows(c) || named[name] == most {
				continue
			}
			named[name]++
			what, v := c.name+" "+name, g.variants[m.Variant]
			if f.Kind == "p-saturated" { // the kernel that is meant does not lag
				v.Tau = 0
			}
			if f.Kind == "scale-of-head-0" && c.VScale == "channel" { // V has none of heads
				f.Of = flash.OfK
			}
			in.Got, in.Out, in.LSE = g.mutate(t, in, c, v, f), "o", "l"
			verdict, err := in.Run(t.Context(), v.claim(c.P), judged.Options{})
			require.NoError(t, err, what)
			require.False(t, verdict.Pass, what)
			require.True(t, names(verdict, f.Kind), "%s: %s\n%s", what, verdict.Title(), verdict.Cause())
			require.LessOrEqual(t, len(verdict.Fault().Same), 1, what)
			require.Contains(t, verdict.Title(), "FAIL: ")
			if verdict.Sequences[0].Comparison.NonFinite == 0 { // mutants.json counts NaN as 0
				require.InEpsilon(t, m.RelL2, float64(verdict.Sequences[0].Comparison.RelL2), 1e-8, what)
			}
		}
	}
	require.Len(t, named, len(mutantFaults), "each fault is in some case")
}

// mutate writes what a kernel with a fault makes of the inputs, the sums of which are exact.
func (g *goldens) mutate(
	t *testing.T, in Attention, c goldenCase, v goldenVariant, f flash.Fault,
) (path string) {
	source, err := openSource(in.File, false)
	require.NoError(t, err)
	defer source.File.Close()
	batch, err := in.readBatch(source)
	require.NoError(t, err)
	claim := v.claim(c.P)
	claim.Sums = "exact"
	k, err := claim.KernelOf(batch.problems[0], flash.Float32)
	require.NoError(t, err)
	k.Descending = v.Order == "rev"
	got, err := flash.Inject(t.Context(), batch.problems[0], k, f, flash.Options{})
	require.NoError(t, err)
	return write(t, c, got)
}

func write(t *testing.T, c goldenCase, p *flash.Prediction) string {
	path := filepath.Join(t.TempDir(), "got.safetensors")
	require.NoError(t, safetensors.WriteFile(path, []safetensors.Tensor{
		filetest.F32("o", []int{c.HeadsQ, c.SeqQ, c.HeadDimV}, p.Out...),
		filetest.F32("l", []int{c.HeadsQ, c.SeqQ}, p.LSE...),
	}, nil))
	return path
}
