package quantizer

import (
	"math"
	"slices"
	"sync"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/parallel"
	"github.com/octavo-fp8/octavo/scaling"
)

// rule is how a quantizer works. Each part is the claim's where it is nil or 0, but for
// policy and format.
type rule struct {
	changes []Change
	sets    []func(r *rule) // what they do

	scale func(b int) fp8.Scale // of a block: what is stored, and by what values are encoded
	outer func(i int) float32   // what is stored of outer scale i
	loose bool                  // scale fits whatever is stored
	opens bool                  // it may be right where nobody claims otherwise

	fitted bool // to what was got: others that fit as well come first

	with    func(b int, s fp8.Scale) fp8.Scale // by what values are encoded, where scale says s
	blocks  *partition                         // with is of these blocks of codes
	before  func(x float32) float32            // what values become first
	after   func(x float32) float32            // what scaled values become before they are rounded
	round   rounding
	policy  fp8.Policy
	format  fp8.Format
	largest float32 // what is larger becomes this
	flush   bool    // subnormal codes become 0
	swap    bool    // codes of a byte change places
	zeroNaN bool    // codes of blocks of zeros are NaN
	turn    bool    // codes are those of the transposed matrix, row after row
	sign    byte    // bits of codes that are lost

	codes func() []byte // all of them, whatever the other parts are
}

// rounding is how values are rounded that no [fp8.Policy] rounds so.
type rounding uint8

const (
	byPolicy rounding = iota
	tiesAway
	towardZero
	awayFromZero
	upward
	downward
)

// claimed is the rule of the claim.
func (j *job) claimed() rule {
	return rule{policy: j.recipe.EncodePolicy(), format: j.recipe.Format}
}

// changed returns r with another part.
func (r rule) changed(kind Kind, words string, set func(r *rule)) rule {
	r.changes, r.sets = append(slices.Clip(r.changes), Change{kind, words}), append(slices.Clip(r.sets), set)
	set(&r)
	return r
}

// and returns r with the changes of another.
func (r rule) and(c rule) rule {
	for n, set := range c.sets {
		r = r.changed(c.changes[n].Kind, c.changes[n].Words, set)
	}
	return r
}

// vary changes a part of the claim: the kind is that of the row of the table.
func (j *job) vary(words string, set func(r *rule)) rule { return j.claimed().changed("", words, set) }

// scaling has other scales, which are stored and by which values are encoded.
func (j *job) scaling(words string, scale func(b int) fp8.Scale) rule {
	return j.vary(words, func(r *rule) { r.scale = scale })
}

// storing stores another scale than s, the claimed one, by which values are encoded.
func (j *job) storing(words string, store func(b int, s fp8.Scale) float32) rule {
	return j.scaling(words, j.stored(store))
}

func (j *job) stored(store func(b int, s fp8.Scale) float32) func(b int) fp8.Scale {
	return func(b int) fp8.Scale {
		s := j.claimedScale(b)
		by := encodesBy(s)
		by.Stored = store(b, s)
		return by
	}
}

// encodesBy is s, in which what is stored does not matter to codes.
func encodesBy(s fp8.Scale) fp8.Scale {
	if s.Multiplier == 0 && s.Divisor == 0 {
		s.Divisor = s.Stored
	}
	return s
}

// encoding encodes values by another scale than s.
func (j *job) encoding(words string, with func(b int, s fp8.Scale) fp8.Scale) rule {
	return j.vary(words, func(r *rule) { r.with = with })
}

// amaxes are the largest magnitudes of blocks, without NaN, and whether there is one.
type amaxes struct {
	of  []float32
	nan []bool
}

// amaxesOf finds those of a part of x that keep allows, of all if that is nil.
func (j *job) amaxesOf(p *partition, x []float32, keep func(i, k int) bool) amaxes {
	a := amaxes{make([]float32, p.blocks()), make([]bool, p.blocks())}
	tall := p.height * p.lanes // rows of which no other has blocks
	parallel.For(ceilDiv(p.rows, max(tall, 1)), 1+1<<14/max(1, tall*p.cols), j.workers, func(lo, hi int) {
		for i := lo * tall; i < min(hi*tall, p.rows); i++ {
			first := p.line(i) * p.gridCols
			for c := range p.gridCols {
				j0, j1 := c*p.width, min((c+1)*p.width, p.cols)
				if keep == nil {
					amax, nan := fp8.Amax(x[i*p.cols+j0 : i*p.cols+j1])
					a.of[first+c], a.nan[first+c] = max(a.of[first+c], amax), a.nan[first+c] || nan
					continue
				}
				for k := j0; k < j1; k++ {
					if keep(i, k) {
						v := abs(x[i*p.cols+k])
						if v != v {
							a.nan[first+c] = true
						} else {
							a.of[first+c] = max(a.of[first+c], v)
						}
					}
				}
			}
		}
	})
	return a
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// lazy are amaxes of other parts, found when they are asked for.
type lazy struct {
	sync.Mutex
	of map[string]*once
}

type once struct {
	sync.Once
	amaxes
}

func (j *job) lazily(name string, find func() amaxes) amaxes {
	j.lazy.Lock()
	if j.lazy.of == nil {
		j.lazy.of = map[string]*once{}
	}
	o := j.lazy.of[name]
	if o == nil {
		o = new(once)
		j.lazy.of[name] = o
	}
	j.lazy.Unlock()
	o.Do(func() { o.amaxes = find() })
	return o.amaxes
}

// levelOf is the number of the outer scale of a block.
func (j *job) levelOf(b int) int {
	if j.want == nil || j.want.Outer.Rows == 0 {
		return 0
	}
	return b / j.part.gridCols * j.part.height / j.want.Outer.Rows
}

// scaleOf is the scale of an amax by a recipe; of outer scales it takes those of x's amax.
func (j *job) scaleOf(r scaling.Recipe, b int, amax float32, nan bool) fp8.Scale {
	return j.scaleUnder(r, j.outerAmax, b, amax, nan)
}

func (j *job) scaleUnder(r scaling.Recipe, outerAmax []float32, b int, amax float32, nan bool) fp8.Scale {
	if !r.Profile.Outer() {
		s, err := j.typed(r, amax, nan)
		if err != nil {
			return fp8.Scale{Stored: float32(math.NaN())}
		}
		return s
	}
	if nan && !leavesNaN(r.Profile) {
		amax = float32(math.NaN())
	}
	return r.ScaleUnder(outerAmax[min(j.levelOf(b), len(outerAmax)-1)], amax)
}

// claimedScale is the claim's of a block.
func (j *job) claimedScale(b int) fp8.Scale { return j.claimedScales()[b] }

func (j *job) findScales() []fp8.Scale {
	all := make([]fp8.Scale, j.part.blocks())
	parallel.For(len(all), 1024, j.workers, func(lo, hi int) {
		for b := lo; b < hi; b++ {
			all[b] = j.findScale(b)
		}
	})
	return all
}

func (j *job) findScale(b int) fp8.Scale {
	switch {
	case j.recipe.Profile.Delayed():
		return fp8.Scale{Stored: j.scales[b], Multiplier: 1 / j.scales[b]}
	case chooses(j.recipe.Profile):
		return j.under(j.want.Scales[b], b, nil)
	}
	return j.scaleOf(j.recipe, b, j.amaxes.of[b], j.amaxes.nan[b])
}

// under is by what values are encoded under a scale that is stored, and an outer one, by
// the claim's arithmetic. Without outer scales they are the claimed ones.
func (j *job) under(stored float32, b int, outer func(i int) float32) fp8.Scale {
	n := j.levelOf(b)
	g, amax := float32(1), float32(0)
	if !j.want.Outer.None() {
		if g = j.want.Outer.Scales[n]; outer != nil {
			g = outer(n)
		}
	}
	if j.recipe.Profile.Outer() {
		amax = j.outerAmax[n]
	}
	switch p := j.recipe.Profile; {
	case j.own != nil && j.want.Outer.Divide:
		return fp8.FactorScale(stored, stored/g, true)
	case j.own != nil && j.own.Multiply:
		return fp8.FactorScale(stored, min(1/float32(stored*g), math.MaxFloat32), false)
	case j.own != nil:
		return fp8.FactorScale(stored, stored*g, true)
	case leavesNaN(p):
		return fp8.FactorScale(stored, min(1/float32(stored*g), math.MaxFloat32), false)
	case p == scaling.NVFP4TorchAOGlobal:
		return fp8.FactorScale(stored, float32(1/g)/stored, false)
	case p == scaling.NVFP4CompressedTensors:
		return fp8.FactorScale(stored, stored/g, true)
	case p == scaling.NVFP4ModelOpt:
		return fp8.FactorScale(stored, stored*g, true)
	case p.Outer(): // fouroversix
		largest := j.outerLargest()
		if outer != nil {
			amax = float32(g * largest)
		}
		if stored == 0 || amax == 0 {
			return fp8.FactorScale(0, 0, false)
		}
		return fp8.FactorScale(stored, 1/float32(float32(1/float32(largest/amax))*stored), false)
	case p == scaling.DeepSeek || p == scaling.DeepSeekUE8M0:
		return fp8.Scale{Stored: stored, Divisor: stored}
	}
	return fp8.Scale{Stored: stored, Multiplier: 1 / stored}
}

// segment is a row of a block.
type segment struct{ row, from, to, block int }

// encode writes what r makes of a segment to dst. It reports whether it says so.
func (j *job) encode(dst []byte, r *rule, s segment, scratch []float32) {
	if r.codes != nil {
		copy(dst, r.codes()[s.row*j.cols+s.from:s.row*j.cols+s.to])
		return
	}
	if r.turn {
		for k := s.from; k < s.to; k++ {
			at := s.row*j.cols + k
			dst[k-s.from] = j.want.Codes[at%j.rows*j.cols+at/j.rows]
		}
		return
	}
	if r.swap {
		inner, codes := *r, make([]byte, s.to-s.from+2)
		inner.swap = false
		from := s.from &^ 1
		j.part.cut(s.row, from, min((s.to+1)&^1, j.cols), func(lo, hi, b int) {
			j.encode(codes[lo-from:hi-from], &inner, segment{s.row, lo, hi, b}, scratch)
		})
		for k := s.from; k < s.to; k++ {
			if dst[k-s.from] = codes[k-from]; k^1 < j.cols {
				dst[k-s.from] = codes[k^1-from]
			}
		}
		return
	}
	if r.blocks != nil {
		inner := *r
		inner.blocks = nil
		r.blocks.cut(s.row, s.from, s.to, func(lo, hi, b int) {
			by := r.with(b, fp8.Scale{})
			inner.with = func(int, fp8.Scale) fp8.Scale { return by }
			j.encode(dst[lo-s.from:hi-s.from], &inner, segment{s.row, lo, hi, s.block}, scratch)
		})
		return
	}
	by := fp8.Scale{}
	if r.scale != nil {
		by = r.scale(s.block)
	} else {
		by = j.claimedScale(s.block)
	}
	if r.with != nil {
		by = r.with(s.block, by)
	}
	x := j.x[s.row*j.cols+s.from : s.row*j.cols+s.to]
	if r.before != nil {
		y := scratch[:len(x)]
		for i, v := range x {
			y[i] = r.before(v)
		}
		x = y
	}
	switch {
	case r.zeroNaN && j.amaxes.of[s.block] == 0:
		for i := range x {
			dst[i] = r.format.NaNCode()
		}
	case r.after == nil && r.round == byPolicy && r.largest == 0:
		fp8.EncodeScaled(dst, x, r.format, r.policy, by, 0, nil)
	default:
		for i, v := range x {
			y := scaled(v, by)
			if r.after != nil {
				y = r.after(y)
			}
			if r.largest != 0 && abs(y) > r.largest {
				y = float32(math.Copysign(float64(r.largest), float64(y)))
			}
			dst[i] = r.one(y)
		}
	}
	if r.flush {
		for i, c := range dst[:len(x)] {
			if v := abs(r.format.Float32(c)); v < r.format.MinNormal() {
				dst[i] = fp8.EncodeOne(float32(math.Copysign(0, float64(r.format.Float32(c)))), r.format, r.policy)
			}
		}
	}
	if r.sign != 0 {
		for i := range x {
			dst[i] &^= r.sign
		}
	}
}

// scaled is what of a value is rounded.
func scaled(x float32, s fp8.Scale) float32 {
	switch {
	case s.Multiplier != 0:
		return x * s.Multiplier
	case s.Divisor != 0:
		return x / s.Divisor
	case s.Stored != 0:
		return x / s.Stored
	}
	return x
}

// one rounds a scaled value.
func (r *rule) one(y float32) byte {
	if r.round == byPolicy || y != y || math.IsInf(float64(y), 0) || r.format == fp8.MXINT8 {
		return fp8.EncodeOne(y, r.format, r.policy)
	}
	low, high := neighbours(y, r.format, r.policy)
	lo, hi := float64(abs(r.format.Float32(low))), float64(abs(r.format.Float32(high)))
	away := false
	switch size := float64(abs(y)); r.round {
	case tiesAway:
		away = size-lo >= hi-size
	case awayFromZero:
		away = true
	case upward:
		away = y > 0
	case downward:
		away = y < 0
	}
	if away {
		return high
	}
	return low
}

// neighbours are the codes next to a finite value toward zero and away from it, which are
// the same where one has the value, or beyond the largest.
func neighbours(y float32, f fp8.Format, p fp8.Policy) (low, high byte) {
	p.Rounding, p.Overflow = fp8.TowardZero, fp8.OverflowSaturate
	low = fp8.EncodeOne(y, f, p)
	v := f.Float32(low)
	if v == y || abs(v) >= f.Max() {
		return low, low
	}
	high = low + 1
	if v == 0 && y < 0 { // which may be +0
		high = fp8.EncodeOne(-f.MinSubnormal(), f, fp8.Policy{})
	}
	return low, high
}

func throughBF16(x float32) float32 { return fp8.BFloat16FromFloat32(x).Float32() }
func throughFP16(x float32) float32 { return float16.Fromfloat32(x).Float32() }
func throughE4M3(x float32) float32 {
	return fp8.E4M3.Float32(fp8.EncodeOne(x, fp8.E4M3, fp8.Policy{}))
}
