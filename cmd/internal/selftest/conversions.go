package selftest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// checks are all checks. Their random numbers depend on their names.
var checks = []check{
	{"encode", func(r *rand.Rand) []output {
		switch r.IntN(6) {
		case 0:
			return encode[float64](r)
		case 1:
			return encode[float16.Float16](r)
		case 2:
			return encode[fp8.BFloat16](r)
		}
		return encode[float32](r)
	}},
	{"encode blocks", encodeBlocks},
	{"decode", func(r *rand.Rand) []output {
		switch r.IntN(6) {
		case 0:
			return decode[float64](r)
		case 1:
			return decode[float16.Float16](r)
		case 2:
			return decode[fp8.BFloat16](r)
		}
		return decode[float32](r)
	}},
	{"amax", amax},
	{"quantize", quantize},
	{"products", func(r *rand.Rand) []output {
		switch r.IntN(4) {
		case 0:
			return multiply[fp8.BFloat16](r)
		case 1:
			return multiply[float16.Float16](r)
		}
		return multiply[float32](r)
	}},
	{"grouped products", grouped},
}

// encode encodes values under one scale, with and without Stats.
func encode[T fp8.Float](r *rand.Rand) []output {
	n, f, p, s := anyLength(r), anyFormat(r), anyPolicy(r), anyScale(r)
	x := narrow[T](anyValues(r, 1, n, f, tensor.Block{Rows: 1, Cols: 1 + r.IntN(200)}))
	first := r.Uint64N(1 << r.IntN(64))
	whole, codes := codeMemory(r, n)
	var st fp8.Stats
	fp8.EncodeScaled(codes, x, f, p, s, first, &st)
	wholePlain, plain := codeMemory(r, n)
	fp8.EncodeScaled(plain, x, f, p, s, first, nil)
	of := fmt.Sprintf("%T to %v, %+v, %+v", *new(T), f, p, s)
	return []output{
		codeOutput("codes of "+of, whole),
		statsOutput("Stats of "+of, &st),
		codeOutput("codes without Stats of "+of, wholePlain),
	}
}

// encodeBlocks encodes values under a scale for each block.
func encodeBlocks(r *rand.Rand) []output {
	n, f, p := anyLength(r), anyFormat(r), anyPolicy(r)
	block := anyOf(r, []int{1 + r.IntN(300), 16, 32, 128})
	x := anyValues(r, 1, n, f, tensor.Block{Rows: 1, Cols: block})
	scales := make([]fp8.Scale, (n+block-1)/block)
	divide := r.IntN(3) == 0
	for i := range scales {
		s := anyScale(r)
		for divide && s.Multiplier != 0 || !divide && s.Multiplier == 0 && s.Stored != 0 {
			s = anyScale(r)
		}
		scales[i] = s
	}
	var b fp8.BlockScales
	b.Set(scales, block)
	e := fp8.NewEncoder(f, p)
	whole, codes := codeMemory(r, n)
	var st fp8.Stats
	fp8.EncodeBlocks(&e, codes, x, &b, uint64(r.IntN(1000)), &st)
	of := fmt.Sprintf("%v in blocks of %d, %+v", f, block, p)
	return []output{codeOutput("codes of "+of, whole), statsOutput("Stats of "+of, &st)}
}

// decode decodes codes, with and without a scale.
func decode[T interface {
	fp8.Float
	number
}](r *rand.Rand) []output {
	n, f, scale := anyLength(r), anyFormat(r), anyScale(r).Stored
	codes := make([]byte, n)
	for i := range codes {
		codes[i] = byte(r.Uint32())
	}
	whole, values := memory(r, n, filler[T]())
	fp8.Decode(values, codes, f)
	wholeScaled, scaled := memory(r, n, filler[T]())
	fp8.DecodeScaled(scaled, codes, f, scale)
	of := fmt.Sprintf("%v as %T", f, *new(T))
	return []output{
		numbers("values of "+of, whole),
		numbers(fmt.Sprintf("values of %s times %v", of, scale), wholeScaled),
	}
}

// amax looks for the largest magnitudes of a slice and of its blocks.
func amax(r *rand.Rand) []output {
	n, block := anyLength(r), 1+r.IntN(300)
	x := anyValues(r, 1, n, anyFormat(r), tensor.Block{Rows: 1, Cols: block})
	whole, one := memory(r, 2, filler[float32]())
	var nan bool
	if one[0], nan = fp8.Amax(x); nan {
		one[1] = 1
	}
	wholeBlocks, blocks := memory(r, (n+block-1)/block, filler[float32]())
	clear(blocks)
	fp8.AmaxBlocks(blocks, x, block)
	for i, x := range blocks {
		if x != x {
			blocks[i] = float32(math.NaN()) // whose payload is not promised
		}
	}
	all := numbers(fmt.Sprintf("amax of %d values", n), whole)
	all.names = []string{"amax", "whether there is a NaN"}
	return []output{all, numbers(fmt.Sprintf("amax of %d values in blocks of %d", n, block), wholeBlocks)}
}

// quantize quantizes a matrix under a library's recipe and dequantizes it.
func quantize(r *rand.Rand) []output {
	f := anyFormat(r)
	p := anyOf(r, scaling.ProfilesFor(f))
	for p.Delayed() || p.Outer() {
		p = anyOf(r, scaling.ProfilesFor(f))
	}
	rows, cols := 1+r.IntN(60), 1+r.IntN(400)
	recipe := scaling.Recipe{Profile: p, Format: f, Policy: anyPolicy(r), Block: anyOf(r, []tensor.Block{
		{}, {Rows: 1}, {Rows: 1, Cols: 128}, {Rows: 128, Cols: 128}, {Rows: 1, Cols: 32}, {Rows: 128, Cols: 1}, {Rows: 1 + r.IntN(9), Cols: 1 + r.IntN(99)},
	})}
	x := anyValues(r, rows, cols, recipe.Format, recipe.Block)
	t := &tensor.Tensor{Name: "x", Shape: []int{rows, cols}}
	var st fp8.Stats
	// A case runs to its end: what was cancelled would look like a fault.
	if err := scaling.Quantize(context.Background(), t, x, scaling.Quantizer{Recipe: recipe, Options: tensor.Options{Stats: &st}}); err != nil {
		panic(err)
	}
	back := make([]float32, len(x)+guard)
	tensor.Dequantize(back[:len(x)], t)
	of := fmt.Sprintf("%dx%d by %v, %+v", rows, cols, recipe, recipe.Policy)
	return []output{
		numbers("scales of "+of, append(t.Scales, make([]float32, guard)...)),
		codeOutput("codes of "+of, append(t.Codes, make([]byte, guard)...)),
		statsOutput("Stats of "+of, &st),
		numbers("values of "+of, back),
	}
}
