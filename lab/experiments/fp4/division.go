package fp4

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab"
)

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

// scaleOf returns the value of a code of UE4M3, which is that of E4M3.
func scaleOf(code byte) float32 {
	var value [1]float32
	fp8.Decode(value[:], []byte{code}, fp8.E4M3)
	return value[0]
}

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
		scale := scaleOf(byte(code))
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
