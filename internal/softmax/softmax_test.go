package softmax

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/internal/kernels/kernelstest"
	"github.com/octavo-fp8/octavo/internal/rounding"
	"github.com/octavo-fp8/octavo/internal/testutil"
)

func TestMain(m *testing.M) { os.Exit(kernelstest.Main(m, "softmax.")) }

var (
	negInf = float32(math.Inf(-1))
	posInf = float32(math.Inf(1))
	nan    = math.Float32frombits(0x7FC00000)
)

// formats are those of P, and how package fp8 rounds to them.
var formats = []struct {
	name    string
	lattice *rounding.Lattice
	offset  float32
	round   func(p float32) float32
}{
	{"bf16", nil, 0, func(p float32) float32 { return fp8.BFloat16FromFloat32(p).Float32() }},
	{"e4m3", &rounding.Lattice{Mantissa: 3, MinNormal: 121 << 23, Max: 448}, 8, func(p float32) float32 {
		return fp8.E4M3.Float32(fp8.EncodeOne(p, fp8.E4M3, fp8.Policy{}))
	}},
	{"e5m2", &rounding.Lattice{Mantissa: 2, MinNormal: 113 << 23, Max: 57344}, 15, func(p float32) float32 {
		return fp8.E5M2.Float32(fp8.EncodeOne(p, fp8.E5M2, fp8.Policy{}))
	}},
}

// want is what a tile makes of a row, by the words of package attention's description.
func want(z []float32, r Row, t *Tile, round func(float32) float32) ([]float32, Row) {
	if r.Kept == 0 {
		return z, r
	}
	kept := func(j int) bool { return r.Kept>>j&1 == 1 }
	m := r.Max
	scores := make([]float32, Keys)
	for j := range z {
		if scores[j] = t.Scale * z[j]; kept(j) {
			m = max(m, scores[j])
		}
	}
	r.Alpha = 1
	if r.Begun {
		r.Alpha = elementary.Exp2(r.Max - m)
	}
	p := make([]float32, Keys)
	var lanes [16]float32
	for j, x := range scores {
		if kept(j) {
			shifted := float32(x - m)
			p[j] = elementary.Exp2(float32(shifted + t.Offset))
		}
		lanes[j%16] += p[j]
	}
	for n := 8; n > 0; n /= 2 {
		for i := range n {
			lanes[i] += lanes[i+n]
		}
	}
	r.Sum = float32(r.Sum*r.Alpha) + lanes[0]
	for j := range p {
		if !kept(j) {
			continue
		}
		if t.Shares != nil {
			p[j] *= t.Shares[j]
		}
		p[j] = round(p[j]) * t.Unit
	}
	r.Begun, r.Max = true, m
	return p, r
}

func same(x, y float32) bool {
	return x != x && y != y || math.Float32bits(x) == math.Float32bits(y)
}

func requireRow(t *testing.T, wantP, p []float32, wantRow, row Row, note string) {
	t.Helper()
	for _, c := range []struct {
		name      string
		want, got float32
	}{{"Max", wantRow.Max, row.Max}, {"Sum", wantRow.Sum, row.Sum}, {"Alpha", wantRow.Alpha, row.Alpha}} {
		if !same(c.want, c.got) {
			t.Fatalf("%s: %s %v (%08x), want %v (%08x)", note, c.name,
				c.got, math.Float32bits(c.got), c.want, math.Float32bits(c.want))
		}
	}
	require.Equal(t, wantRow.Begun, row.Begun, note)
	for j := range wantP {
		if !same(wantP[j], p[j]) {
			t.Fatalf("%s: element %d: %v (%08x), want %v (%08x)", note, j,
				p[j], math.Float32bits(p[j]), wantP[j], math.Float32bits(wantP[j]))
		}
	}
}

// edges are scores that are special, and those about which results change.
func edges() []float32 {
	list := []float32{0, float32(math.Copysign(0, -1)), posInf, negInf, nan, math.Float32frombits(0xFFFFFFFF),
		math.Float32frombits(0x7F800001), math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, -0x1p-126}
	for _, at := range []float32{-200, -151, -150, -149, -126, -24, -17, -9, -1, 1, 1.0 / 32, -1.0 / 32, 100} {
		list = append(list, math.Nextafter32(at, negInf), at, math.Nextafter32(at, posInf))
	}
	return list
}

// TestUpdate has rows of each kind in one tile: few or no keys, edges among the scores, and
// a second tile after the first.
func TestUpdate(t *testing.T) {
	test := func(t *testing.T, _ cpu.Level) {
		r := rand.New(rand.NewPCG(1, 1))
		special := edges()
		for _, f := range formats {
			for round := range 60 {
				tile := Tile{Scale: 1.4426951, Offset: f.offset, Lattice: f.lattice, Unit: 1}
				if round%3 == 0 {
					tile.Unit, tile.Scale = 256, 1
				}
				if round%4 == 0 {
					tile.Shares = new([Keys]float32)
					for j := range tile.Shares {
						tile.Shares[j] = r.Float32()
					}
					if round%8 == 0 {
						tile.Shares[5], tile.Shares[40], tile.Shares[63] = nan, -0.5, 2.5
					}
				}
				rows := make([]Row, 1+r.IntN(20))
				for i := range rows {
					rows[i] = Row{Max: negInf}
				}
				for range 2 {
					z := make([]float32, Keys*len(rows)+1)
					z[len(z)-1] = 77
					var wantP [][]float32
					var wantRows []Row
					for i := range rows {
						row := z[i*Keys:][:Keys]
						for j := range row {
							row[j] = float32(r.NormFloat64() * 9)
							if i%3 == 0 && r.IntN(4+4*i) == 0 {
								row[j] = special[r.IntN(len(special))]
							}
							if i%7 == 4 {
								row[j] = float32(math.Copysign(0, float64(r.IntN(9)-8)))
							}
						}
						switch rows[i].Kept = ^uint64(0); r.IntN(4) {
						case 0:
							rows[i].Kept >>= r.IntN(65)
						case 1:
							rows[i].Kept &= r.Uint64()
						}
						p, after := want(row, rows[i], &tile, f.round)
						wantP, wantRows = append(wantP, p), append(wantRows, after)
					}
					tile.Update(z, rows)
					require.EqualValues(t, 77, z[len(z)-1])
					for i := range rows {
						note := fmt.Sprintf("%s, tile %d, row %d of %d", f.name, round, i, len(rows))
						requireRow(t, wantP[i], z[i*Keys:], wantRows[i], rows[i], note)
					}
				}
			}
		}
	}
	for _, name := range []string{scaled.Name(), weights.Name(), sum.Name()} {
		kernelstest.Compare(t, name, test)
	}
}

// TestExp2 has the kernel of weights compute 2^y of many float32 up to 16, or all.
func TestExp2(t *testing.T) {
	const chunk = 1 << 10
	stride := uint64(5003)
	switch {
	case testutil.Full():
		stride = 1
	case testing.Short():
		stride = 100003
	}
	hard := []uint32{
		0xB8D3D026, 0x3B429D37, 0xB52D1F9A, 0xBAEC2B40, 0xBCF3A937,
		0xC3160000, 0xC3158000, 0xC315FFFF, 0xC3160001,
	}
	kernelstest.AtLevels(t, weights.Name(), func(t *testing.T, l cpu.Level) {
		kernel, _ := weights.For(l)
		tile := Tile{Unit: 1}
		tile.prepare()
		check := func(z []float32, rows []Row, y []float32) {
			for i := range y {
				for j := range Keys {
					z[i*Keys+j] = negInf
				}
				z[i*Keys+i%Keys] = y[i]
			}
			kernel(z, rows[:len(y)], &tile.job)
			for i, x := range y {
				if want := elementary.Exp2(x); math.Float32bits(rows[i].tile) != math.Float32bits(want) {
					t.Errorf("2^%v (%08x): %x, want %x", x, math.Float32bits(x), rows[i].tile, want)
				}
			}
		}
		var next atomic.Uint64
		var workers sync.WaitGroup
		for range runtime.GOMAXPROCS(0) {
			workers.Go(func() {
				z, rows, y := make([]float32, chunk*Keys), make([]Row, chunk), make([]float32, 0, chunk)
				for i := range rows {
					rows[i] = Row{Kept: 1, direct: true}
				}
				for _, bits := range hard {
					y = append(y, math.Float32frombits(bits))
				}
				check(z, rows, y)
				for !t.Failed() {
					first := (next.Add(1) - 1) * chunk * stride
					if first >= 1<<32 {
						return
					}
					y = y[:0]
					for i := range uint64(chunk) {
						// All but those with a result of 0 or 1, if all.
						x := math.Float32frombits(uint32(first + i*stride))
						if x <= 16 && (stride > 1 || x > -151 && (x > 0x1p-26 || x < -0x1p-26)) {
							y = append(y, x)
						}
					}
					if len(y) > 0 {
						check(z, rows, y)
					}
				}
			})
		}
		workers.Wait()
	})
}
