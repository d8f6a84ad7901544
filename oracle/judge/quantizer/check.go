package quantizer

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Check judges whether a result has the bits of a recipe. Nothing is kept of it.
//
// It returns an error for a recipe that is none, for codes, scales and values that do not
// fit together ([tensor.ErrShape], [tensor.ErrScale]) and when ctx ends; a result that is
// wrong is no error but a verdict, which does not depend on Workers. Safe for concurrent use.
func Check[T Value](ctx context.Context, r Result[T], recipe scaling.Recipe, o Options) (*Verdict, error) {
	j, err := newJob(r, recipe, o)
	if err != nil {
		return nil, err
	}
	quantize := recipe
	if j.random {
		quantize.Policy.Rounding = fp8.TowardZero
	}
	if j.want, err = octavo(ctx, r, quantize, o); err != nil {
		return nil, err
	}
	j.prepare()
	v := j.verdict(r.Got.Name)
	v.Type = nameOf[T]()
	j.compare(v)
	if j.random && v.Codes.Wrong == 0 {
		v.Random = j.statistics()
	}
	if v.wrong() {
		if err := j.explain(ctx, v); err != nil {
			return nil, err
		}
	}
	v.decide()
	return v, nil
}

// nameOf names a type of values.
func nameOf[T Value]() string {
	switch any(*new(T)).(type) {
	case fp8.BFloat16:
		return "BF16"
	case float16.Float16:
		return "F16"
	}
	return "F32"
}

// octavo is what package scaling makes of the values.
func octavo[T Value](ctx context.Context, r Result[T], recipe scaling.Recipe, o Options) (*tensor.Tensor, error) {
	t := &tensor.Tensor{Name: r.Got.Name, Shape: r.Got.Shape}
	q := scaling.Quantizer{Recipe: recipe, Options: tensor.Options{Workers: o.Workers}}
	if recipe.Profile.Delayed() {
		got := r.Got
		t.Format, t.Block = recipe.Format, recipe.Block
		return t, tensor.Quantize(ctx, t, r.X, tensor.Quantizer{Policy: recipe.EncodePolicy(), Options: q.Options,
			Scale: func(b int, _ float32, _ bool) fp8.Scale {
				return fp8.Scale{Stored: got.Scales[b], Multiplier: 1 / got.Scales[b]}
			}})
	}
	return t, scaling.Quantize(ctx, t, r.X, q)
}

// prepare finds amaxes.
func (j *job) prepare() {
	j.amaxes = j.amaxesOf(&j.part, j.x, nil)
	if !j.recipe.Profile.Outer() {
		return
	}
	j.outerAmax = make([]float32, len(j.want.Outer.Scales))
	nan := make([]bool, len(j.outerAmax))
	for b, a := range j.amaxes.of {
		n := j.levelOf(b)
		j.outerAmax[n], nan[n] = max(j.outerAmax[n], a), nan[n] || j.amaxes.nan[b]
	}
	for n := range nan {
		if nan[n] && !leavesNaN(j.recipe.Profile) {
			j.outerAmax[n] = float32(math.NaN())
		}
	}
}

// verdict is what is known before anything was compared.
func (j *job) verdict(name string) *Verdict {
	v := &Verdict{Name: name, Rows: j.rows, Cols: j.cols, Recipe: j.recipe, rounding: j.recipe.EncodePolicy().Rounding, job: j}
	v.Profile, v.Format, v.Block = j.recipe.Profile, j.recipe.Format, j.recipe.Block
	v.Rounding, v.Layout = v.rounding.String(), j.layout
	return v
}

// compare compares everything with what is claimed.
func (j *job) compare(v *Verdict) {
	v.Outer.All = len(j.want.Outer.Scales)
	for i, g := range j.want.Outer.Scales {
		if got := j.outer.Scales[min(i, len(j.outer.Scales)-1)]; !same(got, g) || j.outer.Divide != j.want.Outer.Divide {
			v.Outer.Wrong++
			if v.FirstOuter == nil {
				v.FirstOuter = &wrongOuter{Number: i, Got: number64(got), Want: number64(g), Amax: number64(j.outerAmax[i])}
			}
		}
	}
	if len(j.outer.Scales) != len(j.want.Outer.Scales) {
		v.Outer.Wrong = max(v.Outer.Wrong, 1)
	}
	v.Scales.All = len(j.scales)
	j.scaleState = make([]state, len(j.scales))
	for b, got := range j.scales {
		if same(got, j.want.Scales[b]) {
			continue
		}
		if j.scaleState[b] = wrong; j.scaleOpen(b) {
			j.scaleState[b] = open
			v.Scales.Undecided++
			continue
		}
		v.Scales.Wrong++
		if v.FirstScale == nil {
			v.FirstScale = &wrongScale{Block: j.part.place(b), Got: number64(got), Want: number64(j.want.Scales[b]), Amax: number64(j.amaxes.of[b])}
		}
	}
	if j.recipe.Profile.Delayed() {
		v.Scales.Undecided = len(j.scales)
		j.because("the scales of te-delayed follow from a history that is not in the files")
	}
	j.compareCodes(v)
	v.Undefined = j.reasons
}

// compareCodes compares codes, and counts those that are right under the stored scales.
func (j *job) compareCodes(v *Verdict) {
	v.Codes.All = len(j.codes)
	j.codeState = make([]state, len(j.codes))
	high := j.high()
	for i, got := range j.codes {
		want := j.want.Codes[i]
		if got == want || high != nil && got == high[i] {
			continue
		}
		row, col := i/j.cols, i%j.cols
		b := j.part.block(row, col)
		if j.codeState[i] = wrong; j.codeOpen(i, b) {
			j.codeState[i] = open
			v.Codes.Undecided++
			continue
		}
		v.Codes.Wrong++
		if v.FirstCode == nil {
			f := j.recipe.Format
			v.FirstCode = &wrongCode{Row: row, Col: col, X: number64(j.x[i]), Got: got, Want: want, GotValue: number64(f.Float32(got)),
				WantValue: number64(f.Float32(want)), Scale: number64(j.scales[b]), WantScale: number64(j.want.Scales[b])}
		}
	}
	if v.Scales.Wrong+v.Outer.Wrong > 0 {
		v.UnderStored = j.underStored(v.Outer.Wrong > 0)
	}
}

// high are the codes away from zero, where codes are rounded stochastically.
func (j *job) high() []byte {
	if !j.random {
		return nil
	}
	r := j.claimed()
	r.round = awayFromZero
	high := make([]byte, len(j.codes))
	j.each(j.segments(), func(s segment, scratch []float32) { j.encode(high[s.row*j.cols+s.from:], &r, s, scratch) })
	return high
}

// each does something with segments on several goroutines.
func (j *job) each(all []segment, do func(s segment, scratch []float32)) {
	parallel.For(len(all), 64, j.workers, func(lo, hi int) {
		scratch := make([]float32, segmentCols)
		for _, s := range all[lo:hi] {
			do(s, scratch)
		}
	})
}

// segmentCols is how long a segment is at most.
const segmentCols = 128

// segments cuts all rows where blocks end, and into parts.
func (j *job) segments() []segment {
	all := make([]segment, 0, j.rows*(j.part.gridCols+j.cols/segmentCols))
	for i := range j.rows {
		for k := 0; k < j.cols; {
			b := j.part.block(i, k)
			to := min(j.cols, (k/j.part.width+1)*j.part.width, k+segmentCols)
			all = append(all, segment{i, k, to, b})
			k = to
		}
	}
	return all
}

// underStored counts the codes that are right under the scales that are stored, by either of the
// ways to use them.
func (j *job) underStored(outer bool) *Count {
	rules := j.byStored(outer)
	c := &Count{All: len(j.codes)}
	var mu sync.Mutex
	parallel.For(len(j.scales), 1+1<<14/max(1, j.part.width*j.part.height), j.workers, func(lo, hi int) {
		wrong := 0
		scratch, dst := make([]float32, j.part.width), make([]byte, j.part.width)
		for b := lo; b < hi; b++ {
			wrong += j.leastWrong(b, rules, dst, scratch)
		}
		mu.Lock()
		c.Wrong += wrong
		mu.Unlock()
	})
	return c
}

// gives reports whether a code is the one that a rule gives or, where it is rounded at random, the
// next one.
func (j *job) gives(code, got byte) bool {
	return code == got || j.random && got == code+1 && abs(j.recipe.Format.Float32(code)) < j.recipe.Format.Max()
}

// leastWrong is how many codes of a block are not those of the rule that gives the most.
func (j *job) leastWrong(b int, rules []rule, dst []byte, scratch []float32) int {
	i0, i1, j0, j1 := j.part.bounds(b)
	least := math.MaxInt
	for n := range rules {
		bad := 0
		for i := i0; i < i1 && bad < least; i++ {
			j.encode(dst, &rules[n], segment{i, j0, j1, b}, scratch)
			for k, c := range dst[:j1-j0] {
				if at := i*j.cols + j0 + k; !j.gives(c, j.codes[at]) && j.codeState[at] != open {
					bad++
				}
			}
		}
		if least = min(least, bad); least == 0 {
			break
		}
	}
	return least
}

// byStored are the ways to encode under the scales that are stored.
func (j *job) byStored(outer bool) (all []rule) {
	var g func(i int) float32
	if outer {
		g = j.storedOuter
	}
	for _, with := range []func(b int, s fp8.Scale) fp8.Scale{
		func(b int, s fp8.Scale) fp8.Scale { return j.under(j.scales[b], b, g) },
		func(b int, s fp8.Scale) fp8.Scale {
			if g == nil && same(j.scales[b], s.Stored) {
				return s
			}
			s = j.under(j.scales[b], b, g)
			if s.Multiplier != 0 && !j.recipe.Profile.Outer() {
				return fp8.Scale{Stored: s.Stored}
			}
			return s
		},
	} {
		r := j.claimed()
		if j.random {
			r.policy.Rounding = fp8.TowardZero
		}
		r.with = with
		all = append(all, r)
	}
	return all
}

func (j *job) storedOuter(i int) float32 {
	return j.outer.Scales[min(i, len(j.outer.Scales)-1)]
}

// because notes why something is undecided.
func (j *job) because(format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	for _, r := range j.reasons {
		if r == reason {
			return
		}
	}
	j.reasons = append(j.reasons, reason)
}

// scaleOpen reports whether what a block's scale has to be is undefined.
func (j *job) scaleOpen(b int) bool {
	p, got, want := j.recipe.Profile, j.scales[b], j.want.Scales[b]
	amax, nan := j.amaxes.of[b], j.amaxes.nan[b]
	infinite := math.IsInf(float64(amax), 1)
	switch {
	case p == scaling.MXModelOpt && (nan || infinite):
		j.because("Model-Optimizer does not define the scale of a block with NaN or infinity")
	case p == scaling.MXCompressedTensors && nan:
		j.because("compressed-tensors does not define the scale of a block with NaN")
	case leavesNaN(p) && nan:
		j.because("TransformerEngine's kernels leave NaN out of a block's amax, its reference makes all NaN")
	case j.choiceOpen(b):
		j.because("fouroversix adds errors in an order that is not defined, and both scales of a block are as good")
	case logarithm(p) && nearPower(amax, j.recipe.Format) && (got == 2*want || want == 2*got):
		j.because("%s takes a logarithm, which GPUs round in different ways beside a power of two", p)
	default:
		return false
	}
	return true
}

// logarithm reports whether a profile is defined by a logarithm that its library leaves to the
// device.
func logarithm(p scaling.Profile) bool {
	switch p {
	case scaling.DeepSeekUE8M0, scaling.TorchAOTensorwisePow2, scaling.TorchAORowwisePow2, scaling.MXModelOpt, scaling.MXTEPow2:
		return true
	}
	return false
}

// nearPower reports whether an amax over the largest value of a format is so near a power of two
// that the rounding of its logarithm may matter.
func nearPower(amax float32, f fp8.Format) bool {
	fraction, _ := math.Frexp(float64(max(amax, 1e-12)) / float64(f.Max()))
	return fraction < 0.5*(1+64*0x1p-24) || fraction > 1-64*0x1p-24
}

// codeOpen reports whether the code of an element is undefined.
func (j *job) codeOpen(i, b int) bool {
	f, x := j.recipe.Format, j.x[i]
	switch s := j.scales[b]; {
	case f.IsNaN(j.codes[i]) && f.IsNaN(j.want.Codes[i]):
		j.because("which of the codes of NaN it is matters to no value")
	case s != s && j.scaleState[b] != wrong:
		j.because("under a scale of NaN codes have no meaning")
	case j.scaleState[b] == open:
		j.because("codes under a scale that is undefined are")
	case f == fp8.E2M1 && x != x:
		j.because("libraries make different codes of NaN in E2M1")
	case f == fp8.E2M1 && j.recipe.Profile.Outer() && j.overflows(b, x):
		j.because("fouroversix does not saturate: a code above 6 runs into the sign")
	default:
		return false
	}
	return true
}

// overflows reports whether fouroversix leaves the code of a value undefined.
func (j *job) overflows(b int, x float32) bool {
	return !leavesNaN(j.recipe.Profile) && isFourOverSix(j.recipe.Profile) && abs(scaled(x, j.claimedScale(b))) >= 7
}
