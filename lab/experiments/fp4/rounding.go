package fp4

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// rounding is what a way of rounding to NVFP4 loses of some values: the sum of squared
// differences over that of squares.
type rounding struct {
	values, way string
	once        float64 // of one rounding, mean over the draws
	ofMean      float64 // of the mean of all draws: what is left is bias
	draws       int
}

// roundingWay rounds values, [1, len]; draw is the number of the attempt.
type roundingWay struct {
	name  string
	means string
	round func(ctx context.Context, values []float32, draw uint64) ([]float32, error)
}

// The ways to round, by their places in roundingWays.
const (
	nearestRounding = iota
	fourOverSixRounding
	stochasticRounding
	edenRounding
	roomyRounding
	roundingCount
)

func roundingWays() []roundingWay {
	recipe := func(name string) scaling.Recipe {
		r, err := nn.ParseRecipe(name)
		if err != nil {
			panic(err) // of a name in this file
		}
		return r.FP8.Forward.A
	}
	at := func(r scaling.Recipe, random bool) func(context.Context, []float32, uint64) ([]float32, error) {
		return func(ctx context.Context, values []float32, draw uint64) ([]float32, error) {
			r := r
			if random {
				r.Policy.Rounding, r.Policy.Seed = fp8.Stochastic, draw
			}
			t := tensor.Tensor{Name: "values", Shape: []int{1, len(values)}}
			if err := scaling.Quantize(ctx, &t, values, scaling.Quantizer{Recipe: r, Options: tensor.Options{Workers: 1}}); err != nil {
				return nil, err
			}
			rounded := make([]float32, len(values))
			tensor.Dequantize(rounded, &t)
			return rounded, nil
		}
	}
	return []roundingWay{
		{"to nearest", "under the scales of TransformerEngine, as nvfp4 has them", at(recipe("nvfp4"), false)},
		{"to nearest, four over six", "under the better of two scales", at(recipe("nvfp4-4over6"), false)},
		{"at random", "up or down, so that the mean is right, under the scales of TransformerEngine", at(recipe("nvfp4"), true)},
		{"MS-EDEN", "to nearest, after a random rotation of 128 values, under scales that are corrected and rounded at random", inFloats(eden)},
		{"at random, with room", "under scales 17/16 as large, so that nothing saturates", inFloats(roomy)},
	}
}

// inFloats is a way to round that needs no tensor.
func inFloats(round func(values []float32, seed uint64) []float32) func(context.Context, []float32, uint64) ([]float32, error) {
	return func(_ context.Context, values []float32, draw uint64) ([]float32, error) {
		return round(values, draw), nil
	}
}

// The kinds of values, by their places in what measureRoundings returns.
const (
	normalValues = iota
	valuesWithOutliers
)

var valueNames = []string{normalValues: "normal", valuesWithOutliers: "normal, every 64th times 16"}

func roundingWork(values, draws int) int64 {
	return int64(len(valueNames) * roundingCount * values * draws)
}

// measureRoundings returns what each way loses of each kind of values.
func measureRoundings(ctx context.Context, p *lab.Steps, seed uint64, n, draws int) (list []rounding, err error) {
	r := rand.New(rand.NewPCG(seed, 2))
	for kind, name := range valueNames {
		values := make([]float32, n)
		for i := range values {
			values[i] = float32(r.NormFloat64())
			if kind == valuesWithOutliers && i%64 == 0 {
				values[i] *= 16
			}
		}
		for _, w := range roundingWays() {
			sum := make([]float64, n)
			of := rounding{values: name, way: w.name, draws: draws}
			for range draws {
				rounded, err := w.round(ctx, values, r.Uint64())
				if err != nil {
					return nil, err
				}
				wide := make([]float64, n)
				for i, v := range rounded {
					wide[i] = float64(v)
					sum[i] += wide[i]
				}
				of.once += lost(values, wide, 1) / float64(draws)
				if err := p.Done(ctx, "rounding by itself", int64(n)); err != nil {
					return nil, err
				}
			}
			of.ofMean = lost(values, sum, 1/float64(draws))
			list = append(list, of)
		}
	}
	return list, nil
}

// lost is the share of the squares of values that is in their differences to others times
// a factor.
func lost(values []float32, others []float64, factor float64) float64 {
	var squares, differences float64
	for i, v := range values {
		d := others[i]*factor - float64(v)
		squares += float64(v) * float64(v)
		differences += d * d
	}
	return differences / squares
}

// roundingsOf returns what a way loses of a kind of values, by seed.
func (s *study) roundingsOf(kind, way int) (list []rounding) {
	for _, of := range s.roundings {
		list = append(list, of[kind*roundingCount+way])
	}
	return list
}

// rounding returns the mean over the seeds.
func (s *study) rounding(kind, way int) rounding {
	list := s.roundingsOf(kind, way)
	mean := list[0]
	mean.once = statistics.Mean(statistics.Each(list, func(r rounding) float64 { return r.once }))
	mean.ofMean = statistics.Mean(statistics.Each(list, func(r rounding) float64 { return r.ofMean }))
	return mean
}

// meanRoundings returns the means of all kinds and ways, in their order.
func (s *study) meanRoundings() (list []rounding) {
	for i := range s.roundings[0] {
		list = append(list, s.rounding(i/roundingCount, i%roundingCount))
	}
	return list
}

// What Quartet II's src/models/quantization does with blocks.
const (
	edenRotation = 128
	edenBlock    = 16
	edenMax      = 6 / (17.0 / 16 * 0.93) // what the largest value of a block becomes, for MS-EDEN
	edenTop      = 255.99                 // largest scale, which leaves room to correct it
	roomyMax     = 6 / (17.0 / 16)        // and for rounding at random, which then never saturates
)

// block is 16 values over their scale, which is one of UE4M3 times that of all values.
type block struct {
	scaled []float32
	scale  float64
}

// newBlock has the largest value become most, but for the rounding of the scale.
func newBlock(x []float64, most, global float64) block {
	wanted := largest(x) / most / global
	low, high := neighbours(wanted)
	b := block{scaled: make([]float32, len(x)), scale: low}
	if high-wanted < wanted-low {
		b.scale = high
	}
	if b.scale == 0 {
		b.scale = 1
	}
	for i, v := range x {
		b.scaled[i] = float32(v / (b.scale * global))
	}
	return b
}

// globalScale returns the scale of all values.
func globalScale(x []float64, most float64) float64 {
	if a := largest(x); a > 0 {
		return a / edenTop / most
	}
	return 1
}

func largest(x []float64) (a float64) {
	for _, v := range x {
		a = max(a, math.Abs(v))
	}
	return a
}

// rounded returns values as E2M1 has them.
func rounded(values []float32, p fp8.Policy) []float32 {
	codes, y := make([]byte, len(values)), make([]float32, len(values))
	fp8.Encode(codes, values, fp8.E2M1, p, nil)
	fp8.Decode(y, codes, fp8.E2M1)
	return y
}

// roomy rounds values at random under scales so large that none saturates, as Quartet II
// does where it compares.
func roomy(values []float32, seed uint64) []float32 {
	x := make([]float64, len(values))
	for i, v := range values {
		x[i] = float64(v)
	}
	global, y := globalScale(x, roomyMax), make([]float32, 0, len(x))
	r := rand.New(rand.NewPCG(seed, 4))
	for values := range slices.Chunk(x, edenBlock) {
		b := newBlock(values, roomyMax, global)
		for _, v := range rounded(b.scaled, fp8.Policy{Rounding: fp8.Stochastic, Seed: r.Uint64()}) {
			y = append(y, float32(float64(v)*b.scale*global))
		}
	}
	return y
}

// eden rounds values to E2M1 under UE4M3 scales of 16 by MS-EDEN (arXiv 2601.22813): to
// nearest after a random rotation of 128 values, with scales that make up for what the
// rotated vector shrinks by, rounded at random. The length is a multiple of 128.
func eden(values []float32, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, 3))
	x, signs := make([]float64, len(values)), make([]float64, edenRotation)
	for i := range signs {
		signs[i] = float64(1 - 2*r.IntN(2))
	}
	for i, v := range values {
		x[i] = float64(v) * signs[i%edenRotation]
	}
	for group := range slices.Chunk(x, edenRotation) {
		rotate(group)
	}
	global := globalScale(x, edenMax)
	for group := range slices.Chunk(x, edenRotation) {
		edenGroup(group, global, r)
		rotate(group)
	}
	y := make([]float32, len(values))
	for i, v := range x {
		y[i] = float32(v * signs[i%edenRotation])
	}
	return y
}

// edenGroup rounds the values of a rotation.
func edenGroup(x []float64, global float64, r *rand.Rand) {
	var blocks []block
	var nearest [][]float32
	var squares, product float64
	for values := range slices.Chunk(x, edenBlock) {
		b := newBlock(values, edenMax, global)
		y := rounded(b.scaled, fp8.Policy{})
		for i, v := range b.scaled {
			squares += float64(v) * float64(v)
			product += float64(v) * float64(y[i])
		}
		blocks, nearest = append(blocks, b), append(nearest, y)
	}
	correction := 1.0
	if product != 0 {
		correction = squares / product
	}
	for i, b := range blocks {
		wanted := b.scale * correction
		scale, high := neighbours(wanted)
		if high > scale && r.Float64() < (wanted-scale)/(high-scale) {
			scale = high
		}
		for k, v := range nearest[i] {
			x[i*edenBlock+k] = float64(v) * scale * global
		}
	}
}

// neighbours returns the largest UE4M3 value that is not above x and the smallest that is
// not below it, of 0 to 448.
func neighbours(x float64) (low, high float64) {
	i, found := slices.BinarySearch(ue4m3, x)
	switch {
	case found:
		return x, x
	case i == len(ue4m3):
		return ue4m3[i-1], ue4m3[i-1]
	}
	return ue4m3[i-1], ue4m3[i]
}

// ue4m3 are all finite values of UE4M3 in order.
var ue4m3 = func() (all []float64) {
	for code := range scaleCount + 1 {
		all = append(all, float64(fp8.UE4M3(code).Float32()))
	}
	return all
}()

// rotate multiplies x, whose length is a power of two, by a Hadamard matrix that keeps its
// length.
func rotate(x []float64) {
	for d := 1; d < len(x); d *= 2 {
		for i := range x {
			if i&d == 0 {
				x[i], x[i+d] = x[i]+x[i+d], x[i]-x[i+d]
			}
		}
	}
	for i := range x {
		x[i] /= math.Sqrt(float64(len(x)))
	}
}

// division says how many codes of E2M1 differ between a value divided by its scale and
// the value times the scale's reciprocal, both rounded to float32.
type division struct {
	of      string // kind of values
	values  int
	differ  int
	example string // of one that differs
}

func (d division) share() float64 { return float64(d.differ) / float64(d.values) }

// scaleCount are the scales: the finite codes of UE4M3 but that of zero.
const scaleCount = 126

// boundaries lie halfway between two neighbours of E2M1.
var boundaries = []float32{0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5}

// beside is how many float32 on each side of a boundary are looked at too.
const beside = 3

func divisionWork(randomValues int) int64 {
	return int64(scaleCount * (randomValues + len(boundaries)*(2*beside+2)))
}

// measureDivisions compares both for every scale: of random values, of boundaries, and of
// float32 beside those.
func measureDivisions(ctx context.Context, p *lab.Steps, seed uint64, randomValues int) ([]division, error) {
	random, exact := division{of: "random"}, division{of: "on a boundary"}
	near := division{of: fmt.Sprintf("up to %d float32 beside one", beside)}
	r := rand.New(rand.NewPCG(seed, 1))
	for code := 1; code <= scaleCount; code++ {
		scale := fp8.UE4M3(code).Float32()
		values := make([]float32, randomValues)
		for i := range values {
			values[i] = 6 * r.Float32() * scale
		}
		random.compare(values, scale)
		var on, off []float32
		for _, b := range boundaries {
			at := math.Float32bits(b * scale) // exact: eight bits
			for d := -beside; d <= beside; d++ {
				v := math.Float32frombits(at + uint32(d))
				if d == 0 {
					on = append(on, v)
				} else {
					off = append(off, v)
				}
			}
		}
		exact.compare(on, scale)
		near.compare(off, scale)
		if err := p.Done(ctx, "division and reciprocals", divisionWork(randomValues)/scaleCount); err != nil {
			return nil, err
		}
	}
	return []division{random, exact, near}, nil
}

// compare counts values of which the codes differ.
func (d *division) compare(values []float32, scale float32) {
	divided, multiplied := make([]float32, len(values)), make([]float32, len(values))
	reciprocal := 1 / scale
	for i, v := range values {
		divided[i], multiplied[i] = v/scale, v*reciprocal
	}
	a, b := make([]byte, len(values)), make([]byte, len(values))
	fp8.Encode(a, divided, fp8.E2M1, fp8.Policy{}, nil)
	fp8.Encode(b, multiplied, fp8.E2M1, fp8.Policy{}, nil)
	d.values += len(values)
	for i := range a {
		if a[i] == b[i] {
			continue
		}
		if d.differ++; d.example == "" {
			d.example = fmt.Sprintf("%v / %v is %v, code %d; times %v it is %v, code %d", values[i], scale, divided[i], a[i], reciprocal, multiplied[i], b[i])
		}
	}
}
