package fp8_test

import (
	"math"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
)

func FuzzEncode(f *testing.F) {
	for _, d := range definitions {
		for _, x := range []float64{0, 1, -1.0625, d.value[d.max], d.midpoint(d.max), d.value[1], d.midpoint(0), math.Inf(1), math.NaN()} {
			f.Add(math.Float64bits(x), byte(d.format), byte(0), uint64(1), uint64(2))
			f.Add(uint64(math.Float32bits(float32(x))), byte(d.format), byte(0x17), uint64(1), uint64(1<<32))
		}
	}
	f.Fuzz(func(t *testing.T, bits uint64, format, knobs byte, seed, index uint64) {
		d := definitions[int(format)%len(definitions)]
		p := fp8.Policy{
			Overflow: fp8.Overflow(knobs & 1),
			Inf:      fp8.Inf(knobs >> 1 & 1),
			NaN:      fp8.NaN(knobs >> 2 & 1),
			Rounding: fp8.Rounding(knobs >> 3 % 3),
			Seed:     seed,
		}
		double, single := math.Float64frombits(bits), math.Float32frombits(uint32(bits))
		fuzzOne(t, d, double, double, p, index)
		fuzzOne(t, d, single, float32Value(single), p, index)
		// The format's own range, in which random float64 bits seldom lie.
		double = math.Ldexp(1+float64(bits>>12)*0x1p-52, int(bits&63)-40)
		fuzzOne(t, d, double, double, p, index)
	})
}

func fuzzOne[T float32 | float64](t *testing.T, d *definition, x T, value float64, p fp8.Policy, index uint64) {
	var st fp8.Stats
	var got [1]byte
	fp8.EncodeScaled(got[:], []T{x}, d.format, p, fp8.Scale{}, index, &st)
	want, saturated := d.encode(value, p, index)
	if got[0] != want || (st.Saturated() == 1) != saturated {
		t.Fatalf("%v of %T %v (%x), %+v, element %d: code %02x, saturated %v; want %02x, %v",
			d.format, x, x, x, p, index, got[0], st.Saturated() == 1, want, saturated)
	}
}
