package identify

import (
	"context"
	"fmt"
	"html"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// answer has a candidate compute the probes.
func answer(t testing.TB, p *Probes, c Candidate, typ safetensors.DType) *Answers {
	t.Helper()
	a, err := p.Run(t.Context(), typ, func(ctx context.Context, product Product) ([]float32, error) {
		return c.multiply(ctx, typ, &product)
	})
	require.NoError(t, err)
	return a
}

// identify returns the report on a candidate's own answers.
func identify(t testing.TB, p *Probes, c Candidate, typ safetensors.DType) *Report {
	t.Helper()
	r, err := Identify(t.Context(), p, answer(t, p, c, typ), Options{})
	require.NoError(t, err)
	var b strings.Builder
	require.NoError(t, r.WriteText(&b))
	t.Logf("%s:\n%s", c.Name, b.String())
	return r
}

// names lists the kernels that give all answers.
func names(r *Report) (all []string) {
	for _, c := range r.Kernels {
		all = append(all, c.Name)
	}
	return all
}

func setup(t testing.TB, s Setup) *Probes {
	t.Helper()
	p, err := New(s)
	require.NoError(t, err)
	return p
}

// TestFiles goes the way through files.
func TestFiles(t *testing.T) {
	p := setup(t, Setup{K: 64, BlockA: tensor.Block{Rows: 1, Cols: 32}, BlockB: tensor.Block{Rows: 1, Cols: 32}, E8M0: true})
	path := filepath.Join(t.TempDir(), "probes.safetensors")
	require.NoError(t, p.WriteFile(path))
	again, err := ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, p, again)
	for _, typ := range []safetensors.DType{safetensors.F32, safetensors.BF16, safetensors.F16} {
		a := answer(t, p, Setup{}.others()[0], typ)
		answers := filepath.Join(t.TempDir(), "answers.safetensors")
		require.NoError(t, a.WriteFile(answers, p))
		b, err := again.ReadAnswers(answers)
		require.NoError(t, err)
		require.Equal(t, a, b)
	}
	_, err = ReadFile(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = p.ReadAnswers(path)
	require.ErrorIs(t, err, ErrFile)
	other := setup(t, Setup{K: 128})
	require.NoError(t, other.WriteFile(path))
	_, err = ReadFile(path)
	require.NoError(t, err)
}

// TestOtherCodes refuses probes of which one code, scale, number or element of the old C is
// another: a kernel would have answered something else.
func TestOtherCodes(t *testing.T) {
	block := tensor.Block{Rows: 1, Cols: 32}
	for name, c := range map[string]struct {
		setup Setup
		spoil func(p *Product)
	}{
		"order.a":           {Setup{K: 64}, func(p *Product) { p.A.Codes[70] ^= 1 }},
		"order.a_scale_inv": {Setup{K: 64}, func(p *Product) { p.A.Scales[0] *= 2 }},
		"order.b_scale_inv": {Setup{K: 64, BlockA: block, BlockB: block, E8M0: true}, func(p *Product) { p.B.Scales[1] *= 2 }},
		"old.old":           {Setup{K: 64, Old: true}, func(p *Product) { p.Old[3]++ }},
		"order.b":           {Setup{K: 64, Float: oracle.BF16}, func(p *Product) { p.BFloats.Values[5] = 3 }},
	} {
		p := setup(t, c.setup)
		path := filepath.Join(t.TempDir(), "probes.safetensors")
		at := slices.IndexFunc(p.Products, func(p Product) bool { return strings.HasPrefix(name, p.Name+".") })
		c.spoil(&p.Products[at])
		require.NoError(t, p.WriteFile(path))
		_, err := ReadFile(path)
		require.ErrorIs(t, err, ErrFile, name)
		require.ErrorContains(t, err, "write the probes again")
		require.ErrorContains(t, err, strconv.Quote(name))
	}
}

// TestOtherAnswers refuses C of another shape, of as many elements, and of two types.
func TestOtherAnswers(t *testing.T) {
	p := setup(t, Setup{K: 64})
	path := filepath.Join(t.TempDir(), "answers.safetensors")
	for _, wrong := range []string{"shape", "type"} {
		var tensors []safetensors.Tensor
		for i := range p.Products {
			m, n, _ := p.Products[i].Size()
			x := safetensors.Tensor{Info: safetensors.Info{Name: p.Products[i].Name + ".c", DType: safetensors.F32, Shape: []int{m, n}}, Data: make([]byte, 4*m*n)}
			switch {
			case i == 1 && wrong == "shape":
				x.Shape = []int{m * n, 1}
			case i == 1:
				x.DType, x.Data = safetensors.BF16, x.Data[:2*m*n]
			}
			tensors = append(tensors, x)
		}
		require.NoError(t, safetensors.WriteFile(path, tensors, nil))
		_, err := p.ReadAnswers(path)
		require.ErrorIs(t, err, ErrFile, wrong)
	}
}

// FuzzFiles reads damaged probes and answers.
func FuzzFiles(f *testing.F) {
	p := setup(f, Setup{K: 64})
	path := filepath.Join(f.TempDir(), "file.safetensors")
	seed := func(err error) {
		require.NoError(f, err)
		data, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(data[:min(len(data), 1<<13)])
	}
	seed(p.WriteFile(path))
	seed(answer(f, p, Setup{}.others()[2], safetensors.BF16).WriteFile(path, p))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "file.safetensors")
		require.NoError(t, os.WriteFile(path, data, 0o666))
		if read, err := ReadFile(path); err == nil {
			require.NoError(t, read.Setup.Check())
		}
		if a, err := p.ReadAnswers(path); err == nil {
			_, err = Identify(t.Context(), p, a, Options{})
			require.NoError(t, err)
		}
	})
}

// TestErrors are told apart.
func TestErrors(t *testing.T) {
	for _, s := range []Setup{{Format: 99}, {K: 32}, {K: 100}, {K: 4096}, {K: -64}, {BlockA: tensor.Block{Rows: -1}}, {BlockB: tensor.Block{Cols: 24}}, {BlockA: tensor.Block{Rows: 129}}, {K: 256, BlockA: tensor.Block{Cols: 32}, BlockB: tensor.Block{Cols: 48}}} {
		_, err := New(s)
		require.ErrorIs(t, err, ErrSetup, "%+v", s)
	}
	p := setup(t, Setup{K: 64})
	a := answer(t, p, Setup{}.others()[2], safetensors.F32)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Identify(ended, p, a, Options{})
	require.ErrorIs(t, err, context.Canceled)
	a.C["order"] = a.C["order"][1:]
	_, err = Identify(t.Context(), p, a, Options{})
	require.ErrorIs(t, err, ErrFile)
	delete(a.C, "order")
	_, err = Identify(t.Context(), p, a, Options{})
	require.ErrorContains(t, err, "there is no C of order")
	_, err = p.Run(t.Context(), safetensors.F32, func(context.Context, Product) ([]float32, error) { return nil, os.ErrInvalid })
	require.ErrorIs(t, err, os.ErrInvalid)
}

// TestOneBit has one answer that is off by a bit, to either side.
func TestOneBit(t *testing.T) {
	p := setup(t, Setup{K: 64})
	c := newCandidate(oracle.Kernel{Model: oracle.AdaMMA(), Scales: oracle.AThenB}, true)
	for _, product := range p.Products {
		for _, side := range []float32{-1e9, 1e9} {
			a := answer(t, p, c, safetensors.F32)
			x := &a.C[product.Name][5]
			*x = math.Nextafter32(*x, side)
			r, err := Identify(t.Context(), p, a, Options{})
			require.NoError(t, err)
			require.Empty(t, r.Kernels, "%s %v", product.Name, side)
			require.Equal(t, c.Name, r.Nearest[0].Name)
			require.Equal(t, 1, r.Nearest[0].Differ)
		}
	}
}

// TestSignsOfZero has answers in which every zero is negative: models do not pin that.
func TestSignsOfZero(t *testing.T) {
	p := setup(t, Setup{K: 64})
	c := newCandidate(oracle.Kernel{Model: oracle.AdaMMA(), Scales: oracle.AThenB}, true)
	a := answer(t, p, c, safetensors.F32)
	zeros := 0
	for _, answers := range a.C {
		for i, x := range answers {
			if x == 0 {
				answers[i] = float32(math.Copysign(0, -1))
				zeros++
			}
		}
	}
	require.NotZero(t, zeros)
	r, err := Identify(t.Context(), p, a, Options{})
	require.NoError(t, err)
	require.Contains(t, names(r), c.Name)
}

// TestRoundings reads ladders that were rounded in a known way.
func TestRoundings(t *testing.T) {
	const bits = 9
	for how, round := range map[Rounding]func(float64) float64{
		towardZero: math.Trunc, nearestEven: math.RoundToEven, nearestAway: math.Round, downward: math.Floor, upward: math.Ceil,
		noRounding: nil,
	} {
		var l ladder
		for v, x := range variants {
			l[v] = make([]float64, 30)
			for d := range l[v] {
				l[v][d] = math.Ldexp(float64(x), -d)
				if round != nil {
					l[v][d] = math.Ldexp(round(math.Ldexp(l[v][d], bits)), -bits)
				}
			}
		}
		kept, got := l.kept()
		require.Equal(t, how, got)
		if round != nil {
			require.Equal(t, bits, kept)
		}
	}
}

// TestModels recovers every model from its own answers, alone and promoted, and what is no
// model; MODELS.md says how.
func TestModels(t *testing.T) {
	block := tensor.Block{Rows: 1, Cols: 32}
	var table modelTable
	ran, wanted := 0, 0
	for _, m := range oracle.Models() {
		for _, f := range fp8.Formats() {
			if !m.Takes(f) {
				continue
			}
			s := Setup{Format: f, K: 128}
			if m.ScalesInside() {
				s.E8M0, s.BlockA, s.BlockB = true, block, block
			}
			if f.Bits() < 8 { // which have no numbers so far apart
				_, err := New(s)
				require.ErrorIs(t, err, ErrSetup)
				continue
			}
			p := setup(t, s)
			for _, promote := range []int{0, 64} {
				wanted++
				t.Run(fmt.Sprintf("%v/%v/%d", m, f, promote), func(t *testing.T) {
					k := oracle.Kernel{Model: m, Promote: promote, Scales: oracle.BThenA}
					if s.E8M0 {
						k.Scales = oracle.AnyOrder
					}
					c := newCandidate(k, !s.E8M0)
					r := identify(t, p, c, safetensors.F32)
					require.NotEmpty(t, r.Kernels)
					for _, found := range r.Kernels {
						require.NotNil(t, found.Kernel)
						same := found.Kernel.Model
						same.Name, same.Evidence = m.Name, m.Evidence
						require.Equal(t, m, same)
						require.Contains(t, found.Name, m.Name)
						require.Equal(t, k.Scales, found.Kernel.Scales)
						// A sum of instructions that add c last, and one promoted after each, are one.
						if last := m.Unit == oracle.Emulated || m.Last; last && promote <= m.K && found.Kernel.Promote <= m.K {
							continue
						}
						require.Equal(t, promote, found.Kernel.Promote)
					}
					ran++
					table.add(fmt.Sprintf("%v, K = %d", f, s.K), c.Name, r)
					require.Equal(t, m.L, r.Measured.Fused)
					kept := m.F
					if m.Unit == oracle.SingleRounding { // exact as far as probes see
						kept = -1
						require.True(t, r.Described)
						require.Equal(t, nearestEven, r.Measured.ResultRounding)
						require.Equal(t, m.Last, !r.Measured.Carried)
					}
					require.Equal(t, kept, r.Measured.Aligned)
					require.Equal(t, m.Keep, r.Measured.Result)
				})
			}
		}
	}
	floatModels(t, &table)
	p := setup(t, Setup{NVFP4: true, K: 1024})
	for _, name := range []string{"blackwell-nvfp4", "nvfp4-k96", "nvfp4-k128"} {
		m, err := oracle.ParseModel(name)
		require.NoError(t, err)
		r := identify(t, p, newCandidate(oracle.Kernel{Model: m}, false), safetensors.F32)
		require.Equal(t, []string{name}, names(r))
		require.Equal(t, []int{m.K, 35, 23}, []int{r.Measured.Fused, r.Measured.Aligned, r.Measured.Result})
		table.add("NVFP4, K = 1024", name, r)
	}
	p = setup(t, Setup{K: 128})
	for _, c := range (Setup{}).others() {
		if c.Evidence != "" && !strings.HasSuffix(c.Name, "b-then-a") {
			continue // TestAMXReadings has it
		}
		r := identify(t, p, c, safetensors.F32)
		require.Equal(t, []string{c.Name}, names(r))
		if strings.Contains(c.Name, "pairs of lanes are added, and") {
			require.Equal(t, 1, r.Measured.Fused, "pairs are rounded")
			require.False(t, r.Described)
		}
		table.add("E4M3, K = 128", c.Name, r)
	}
	if ran == wanted { // and -run has left none out
		table.check(t)
	}
}

// TestDeepGEMM has scales by blocks, promotion within them and C in bfloat16.
func TestDeepGEMM(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	p := setup(t, Setup{K: 512, BlockA: tensor.Block{Rows: 1, Cols: 256}, BlockB: tensor.Block{Rows: 128, Cols: 256}})
	k := oracle.Kernel{Model: oracle.HopperWGMMA(), Promote: 128, Scales: oracle.ProductThenFMA}
	for _, typ := range []safetensors.DType{safetensors.F32, safetensors.BF16} {
		r := identify(t, p, newCandidate(k, true), typ)
		require.Equal(t, k, *r.Kernels[0].Kernel)
		if typ == safetensors.F32 {
			require.Len(t, r.Kernels, 1)
			require.Equal(t, "product-then-fma", strings.Join(r.Measured.Scales, ", "))
		}
		for _, c := range r.Kernels { // bfloat16 hides the order of scales
			require.Equal(t, []any{k.Model, k.Promote}, []any{c.Kernel.Model, c.Kernel.Promote})
		}
		require.Equal(t, 32, r.Measured.Fused)
		require.Equal(t, 13, r.Measured.Aligned)
	}
}

// TestTallBlocks has rows of A that share a scale, more than are compared first.
func TestTallBlocks(t *testing.T) {
	p := setup(t, Setup{K: 64, BlockA: tensor.Block{Rows: 32, Cols: 32}})
	r := identify(t, p, newCandidate(oracle.Kernel{Model: oracle.AdaMMA(), Scales: oracle.AThenB}, true), safetensors.F32)
	require.Equal(t, []string{"ada-mma, a-then-b"}, names(r))
}

// TestPromotion sees what sums of sums keep.
func TestPromotion(t *testing.T) {
	p := setup(t, Setup{K: 256})
	r := identify(t, p, newCandidate(oracle.Kernel{Model: oracle.HopperMMA(), Promote: 64, Scales: oracle.AThenB}, true), safetensors.F32)
	require.Equal(t, []int{32, 64, 23}, []int{r.Measured.Chain, r.Measured.Outer, r.Measured.Promoted})
	require.Equal(t, nearestEven, r.Measured.PromotedRounding)
	require.Len(t, r.Kernels, 1)
	require.True(t, r.Described)
}

// TestNVFP4 recovers the model of NVFP4.
func TestNVFP4(t *testing.T) {
	p := setup(t, Setup{NVFP4: true, K: 1024})
	path := filepath.Join(t.TempDir(), "probes.safetensors")
	require.NoError(t, p.WriteFile(path))
	again, err := ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, p, again)
	m := oracle.BlackwellNVFP4()
	r := identify(t, p, newCandidate(oracle.Kernel{Model: m}, false), safetensors.F32)
	require.Equal(t, []string{m.Name}, names(r))
	require.Equal(t, []int{64, 35, 23}, []int{r.Measured.Fused, r.Measured.Aligned, r.Measured.Result})
	require.True(t, r.Measured.Carried)
	m.F, m.Keep = 30, 20
	r = identify(t, p, newCandidate(oracle.Kernel{Model: m}, false), safetensors.F32)
	require.Empty(t, r.Kernels)
	require.Equal(t, []int{64, 30, 20}, []int{r.Measured.Fused, r.Measured.Aligned, r.Measured.Result})
	require.Equal(t, towardZero, r.Measured.AlignedRounding)
}

// TestControls has answers of what is no tensor core.
func TestControls(t *testing.T) {
	p := setup(t, Setup{K: 128})
	strided := sums("float32 in eight lanes", aThenB, func(x []float32) (sum float32) {
		for lane := range 8 {
			var s float32
			for i := lane; i < len(x); i += 8 {
				s += x[i]
			}
			sum += s
		}
		return sum
	})
	r := identify(t, p, strided, safetensors.F32)
	require.Empty(t, r.Kernels)
	require.NotEmpty(t, r.Nearest)
	require.Equal(t, 1, r.Measured.Fused)
	require.Zero(t, r.Measured.Odd)

	r = identify(t, p, Candidate{Name: "nothing", multiply: func(_ context.Context, _ safetensors.DType, p *Product) ([]float32, error) {
		m, n, _ := p.Size()
		return make([]float32, m*n), nil
	}}, safetensors.F32)
	require.Empty(t, r.Kernels)
	require.True(t, r.Measured.Silent)
	require.Equal(t, "unknown: all answers are 0, as if C had not been written", r.Found())

	random := rand.New(rand.NewPCG(1, 1))
	r = identify(t, p, Candidate{Name: "noise", multiply: func(_ context.Context, _ safetensors.DType, p *Product) ([]float32, error) {
		m, n, _ := p.Size()
		c := make([]float32, m*n)
		for i := range c {
			c[i] = float32(random.NormFloat64())
		}
		return c, nil
	}}, safetensors.F32)
	require.Empty(t, r.Kernels)
	require.NotZero(t, r.Measured.Odd)
	require.False(t, r.Measured.Silent)
	require.Contains(t, r.Found(), "unknown")
}

// TestUnknownHardware describes hardware that no model is of by its parameters.
func TestUnknownHardware(t *testing.T) {
	p := setup(t, Setup{K: 256})
	for _, k := range []oracle.Kernel{
		{Model: oracle.Model{L: 8, K: 16, F: 17, Keep: 18}, Scales: oracle.AThenB},
		{Model: oracle.Model{L: 16, K: 16, F: 21, Keep: 16}, Promote: 32, Scales: oracle.ProductThenFMA},
		{Model: oracle.Model{Unit: oracle.Emulated, K: 32, L: 16, F: 15, Keep: 23, First: 0x0000FFFF}, Promote: 64, Scales: oracle.AThenB},
		{Model: oracle.Model{L: 4, K: 4, F: 24, Keep: 23}, Scales: oracle.AThenB},
		{Model: oracle.Model{L: 64, K: 64, F: 11, Keep: 9}, Promote: 128, Scales: oracle.BThenA},
	} {
		r := identify(t, p, newCandidate(k, true), safetensors.F32)
		require.Len(t, r.Kernels, 1, "%+v", k)
		require.True(t, r.Described)
		require.True(t, r.Kernels[0].Measured)
		found, ok := r.Kernel()
		require.True(t, ok)
		require.Equal(t, k.Promote, found.Promote)
		require.Equal(t, []int{k.Model.L, k.Model.F, k.Model.Keep}, []int{found.Model.L, found.Model.F, found.Model.Keep})
		require.Equal(t, k.Scales, found.Scales)
	}
}

// TestSentences has each sentence of a report for answers of which it is true, and not for
// others.
func TestSentences(t *testing.T) {
	p := setup(t, Setup{K: 128})
	ada := newCandidate(oracle.Kernel{Model: oracle.AdaMMA(), Scales: oracle.AThenB}, true)
	texts := map[string]string{}
	say := func(name string, c Candidate, typ safetensors.DType) {
		r, err := Identify(t.Context(), p, answer(t, p, c, typ), Options{})
		require.NoError(t, err)
		var b strings.Builder
		require.NoError(t, r.WriteText(&b))
		require.NoError(t, r.WritePage(&b, "", ""))
		texts[name] = strings.Join(strings.Fields(html.UnescapeString(b.String())), " ")
	}
	of := func(value func(i int) float32) Candidate {
		return Candidate{multiply: func(_ context.Context, _ safetensors.DType, p *Product) ([]float32, error) {
			m, n, _ := p.Size()
			c := make([]float32, m*n)
			for i := range c {
				c[i] = value(i)
			}
			return c, nil
		}}
	}
	say("ada", ada, safetensors.F32)
	say("bfloat16", ada, safetensors.BF16)
	say("no model", newCandidate(oracle.Kernel{Model: oracle.Model{L: 8, K: 16, F: 17, Keep: 18}, Scales: oracle.AThenB}, true), safetensors.F32)
	arm, err := oracle.ParseModel("arm-fdot4")
	require.NoError(t, err)
	say("arm", newCandidate(oracle.Kernel{Model: arm, Scales: oracle.AThenB}, true), safetensors.F32)
	say("exact", Setup{}.others()[1], safetensors.F32)
	say("silent", of(func(int) float32 { return 0 }), safetensors.F32)
	say("odd", of(func(i int) float32 { return float32(i) + 0.3 }), safetensors.F32)
	say("strided", sums("in two lanes", aThenB, func(x []float32) float32 {
		var lanes [2]float32
		for i, v := range x {
			lanes[i%2] += v
		}
		return lanes[0] + lanes[1]
	}), safetensors.F32)
	for _, x := range []struct{ sentence, of, not string }{
		{"ada-mma", "ada", "no model"},
		{"one of ", "bfloat16", "ada"},
		{" kernels that cannot be told apart by these probes", "bfloat16", "no model"},
		{"and so does", "bfloat16", "ada"},
		{"gives all answers", "ada", "strided"},
		{"a kernel of the measured parameters, of which there is no model", "no model", "ada"},
		{"its bits octavo verify --model ada-mma", "ada", "no model"},
		{"confirmed a kernel of the measured parameters gives all answers too", "ada", "no model"},
		{"confirmed", "ada", "strided"},
		{"evidence verified on Ada vectors", "ada", "no model"},
		{"evidence specified (Arm ARM", "arm", "exact"},
		{"fused products 4 fraction bits 29 or more below the largest sum of two exponents: all that these probes see", "arm", "ada"},
		{"fused products 128 fraction bits 29 or more", "exact", "arm"},
		{"sum so far one more term of a step", "arm", "exact"},
		{"excluded fused products = 2", "arm", "exact"},
		{"c added last: ", "arm", "ada"},
		{"not excluded subnormal sums flushed", "arm", "ada"},
		{"subnormal sums flushed: no answer tells it from the kernel that was found", "arm", "ada"},
		{"no answer tells it from the kernel that was found", "bfloat16", "strided"},
		{`<h1 class="pass">`, "ada", "bfloat16"},
		{`<h1 class="fail">`, "strided", "bfloat16"},
		{"unknown: all answers are 0, as if C had not been written", "silent", "odd"},
		{"unknown: the answers are no sums of the products that were asked for", "odd", "silent"},
		{"unknown: none of the kernels that were tried gives these answers", "strided", "ada"},
		{"nearest ", "strided", "ada"},
		{" excluded ", "ada", "strided"},
		{"not excluded ", "bfloat16", "ada"},
	} {
		require.Contains(t, texts[x.of], x.sentence, x.of)
		require.NotContains(t, texts[x.not], x.sentence, x.not)
	}
}
