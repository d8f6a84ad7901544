package attention

import (
	"context"
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/attention"
	"github.com/octavo-fp8/octavo/lab"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/flash"
)

// adder is a way to add the products of P·V.
type adder struct {
	name   string
	tile   int
	values flash.Product
}

// The adders, by their places in adders.
const (
	exactAdder = iota
	promoted
	promotedBy4
	promotedBy64
	carried
)

func adders() []adder {
	hopper := flash.Product{Order: flash.Instruction, Model: oracle.HopperWGMMA()}
	carry := hopper
	carry.Carry = true
	return []adder{
		{"exact", 128, flash.Product{}},
		{"Hopper, FP32 every 128 keys", 128, hopper},
		{"Hopper, FP32 every 512 keys", 512, hopper},
		{"Hopper, FP32 every 8192 keys", 8192, hopper},
		{"Hopper, no promotion", 128, carry},
	}
}

// The values of V.
const (
	centred = "normal"
	oneSign = "uniform [0, 1)"
)

// growth is what an adder loses at a length of K.
type growth struct {
	values string
	keys   int
	adder  int
	deviation
}

func (s *study) lengths() []int {
	return lab.Pick(s.o, []int{1024, 4096, 16384, 65536, 131072}, []int{1024, 4096, 16384, 65536, 131072}, []int{1024, 4096})
}

// growthJobs: P·V over more and more keys, with scores from N(0, 1).
func (s *study) growthJobs() []job {
	rows, dim, valueDim := lab.Pick(s.o, 8, 8, 4), 64, lab.Pick(s.o, 32, 32, 8)
	var jobs []job
	for _, values := range []string{centred, oneSign} {
		for _, keys := range s.lengths() {
			// A product of a tensor core takes as long as ten others.
			work := rows * keys * (dim*len(adders()) + 10*valueDim*(len(adders())-1))
			jobs = append(jobs, job{fmt.Sprintf("%d keys, %s values", keys, values), work, func(ctx context.Context) error {
				next := generator(s.o.Seed, forGrowths)
				a := random(rows, keys, dim, valueDim, next.NormFloat64)
				if values == oneSign {
					for i := range a.v {
						a.v[i] = float32(next.Float64())
					}
				}
				scale := 1 / math.Sqrt(float64(dim))
				p := a.rounded(scale)
				exact := a.exact(scale, attention.Mask{}, s.o.Workers)
				for i, way := range adders() {
					got, err := s.predict(ctx, p, flash.Kernel{Tile: way.tile, Offset: 8, P: flash.E4M3, Values: way.values})
					if err != nil {
						return err
					}
					s.growths = append(s.growths, growth{values, keys, i, deviationOf(got.Out, exact)})
				}
				return nil
			}})
		}
	}
	return jobs
}

// growthOf returns the deviation of an adder at a length.
func (s *study) growthOf(values string, keys, adder int) deviation {
	for _, g := range s.growths {
		if g.values == values && g.keys == keys && g.adder == adder {
			return g.deviation
		}
	}
	return deviation{math.NaN(), math.NaN(), math.NaN()}
}
