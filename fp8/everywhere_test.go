package fp8_test

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"sort"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/internal/testutil"
	"github.com/stretchr/testify/require"
)

// stride is the distance between the float32 bit patterns that are tried: all
// of them on request, else a prime, so that no mantissa bit stays the same.
func stride() uint64 {
	switch {
	case testutil.Full():
		return 1
	case testing.Short():
		return 8191
	}
	return 251
}

// sweep gives the float32 of positive sign, ascending and in chunks, to as many
// checkers as there are processors. NaNs are among them.
func sweep(t *testing.T, newChecker func() func(chunk []float32) error) {
	const chunk = 1 << 16
	step := stride()
	patterns := (1<<31 + step - 1) / step
	var next atomic.Uint64
	var failed atomic.Bool
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			check, src := newChecker(), make([]float32, chunk)
			for !failed.Load() {
				first := (next.Add(1) - 1) * chunk
				if first >= patterns {
					return
				}
				src := src[:min(chunk, patterns-first)]
				for i := range src {
					src[i] = math.Float32frombits(uint32((first + uint64(i)) * step))
				}
				if err := check(src); err != nil {
					failed.Store(true)
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
}

// span is consecutive bits of float32 magnitudes, up to those of the next, whose codes
// are the same.
type span struct {
	first uint32
	code  [2]byte // by sign
	kind  kind
	lost  [2]bool // saturated
}

type kind int

const (
	zero kind = iota
	flushed
	subnormal
	normal
	infinite
	notANumber
)

// spans lists all magnitudes by the definition. Codes ascend with them, so that those of a
// few hundred thresholds are those of all.
func (d *definition) spans(p fp8.Policy) (all []span) {
	add := func(first uint32, x float64, k kind) {
		s := span{first: first, kind: k}
		for sign := range s.code {
			s.code[sign], s.lost[sign] = d.encode(math.Copysign(x, 1-2*float64(sign)), p, 0)
		}
		if len(all) > 0 && all[len(all)-1].first == first {
			all = all[:len(all)-1] // no float32 is between the two thresholds
		}
		all = append(all, s)
	}
	add(0, 0, zero)
	for c, threshold := range d.first(p.Rounding) {
		x := float32(threshold)
		if float64(x) < threshold {
			x = math.Nextafter32(x, math.MaxFloat32)
		}
		if x == 0 {
			x = math.SmallestNonzeroFloat32
		}
		k := normal
		if c == 0 {
			k = flushed
		} else if d.value[c] < float64(d.format.MinNormal()) {
			k = subnormal
		}
		add(math.Float32bits(x), float64(x), k)
	}
	add(0x7F800000, math.Inf(1), infinite)
	s := span{first: 0x7F800001, kind: notANumber}
	for sign := range s.code {
		s.code[sign], _ = d.encode(signedNaN(sign == 1), p, 0)
	}
	return append(all, s)
}

// count adds n values of a span, from bits first to bits last, to st.
func (s *span) count(st *fp8.Stats, sign int, first, last uint32, n int64) {
	st.Elements += n
	switch s.kind {
	case zero:
		st.Zeros += n
		return
	case infinite:
		*[]*int64{&st.PosInf, &st.NegInf}[sign] += n
		return
	case notANumber:
		st.NaN += n
		return
	}
	st.Amax = max(st.Amax, float64(math.Float32frombits(last)))
	if smallest := float64(math.Float32frombits(first)); st.Smallest == 0 || smallest < st.Smallest {
		st.Smallest = smallest
	}
	switch {
	case s.lost[sign]:
		*[]*int64{&st.SaturatedPos, &st.SaturatedNeg}[sign] += n
	case s.kind == flushed:
		st.Flushed += n
	case s.kind == subnormal:
		st.Subnormal += n
	}
}

// magnitudes are float32 of a sign whose other bits are from, from+step, ... below to.
type magnitudes struct {
	sign           int
	from, to, step uint64
}

// beyondKernels is the magnitude, 2^100, from which on kernels leave values to plain Go.
const beyondKernels = (127 + 100) << 23

// expectation is what the definition says of a policy.
type expectation struct {
	policy fp8.Policy
	stats  bool // are compared too
	spans  []span
}

func (d *definition) expect(stats bool, policies ...fp8.Policy) (all []expectation) {
	for _, p := range policies {
		all = append(all, expectation{p, stats, d.spans(p)})
	}
	return all
}

// everywhere compares the codes of magnitudes, and what is counted, with the definition.
func everywhere(d *definition, m magnitudes, expected []expectation) error {
	const chunk = 1 << 14
	count := (m.to - m.from + m.step - 1) / m.step
	var next atomic.Uint64
	errs := make([]error, runtime.GOMAXPROCS(0))
	var failed atomic.Bool
	var workers sync.WaitGroup
	for w := range errs {
		workers.Go(func() {
			buffer, codes := make([]float32, chunk), make([]byte, chunk)
			for !failed.Load() {
				first := (next.Add(1) - 1) * chunk
				if first >= count {
					return
				}
				src := buffer[:min(chunk, count-first)]
				bits := uint32(m.from + first*m.step)
				for i := range src {
					src[i] = math.Float32frombits(bits + uint32(i)*uint32(m.step) | uint32(m.sign)<<31)
				}
				for i := range expected {
					if errs[w] = expected[i].compare(d.format, codes, src, m.step); errs[w] != nil {
						failed.Store(true)
						return
					}
				}
			}
		})
	}
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// compare encodes src, whose bits ascend by step, to codes.
func (e *expectation) compare(f fp8.Format, codes []byte, src []float32, step uint64) error {
	first, sign := bitsOf(src[0])&math.MaxInt32, int(bitsOf(src[0])>>31)
	var got, want fp8.Stats
	st := &got
	if !e.stats {
		st = nil
	}
	fp8.Encode(codes, src, f, e.policy, st)
	at := sort.Search(len(e.spans), func(i int) bool { return e.spans[i].first > first }) - 1
	for i := 0; i < len(src); {
		b := first + uint32(i)*uint32(step)
		for at+1 < len(e.spans) && e.spans[at+1].first <= b {
			at++
		}
		n := len(src) - i
		if at+1 < len(e.spans) {
			n = min(n, int((uint64(e.spans[at+1].first-b)-1)/step)+1)
		}
		s := &e.spans[at]
		if bytes.Count(codes[i:i+n], s.code[sign:sign+1]) != n {
			for codes[i] == s.code[sign] {
				i++
			}
			return fmt.Errorf("%v of %v (%08x), %+v: %02x, want %02x", f, src[i], bitsOf(src[i]), e.policy, codes[i], s.code[sign])
		}
		s.count(&want, sign, b, b+uint32(n-1)*uint32(step), int64(n))
		i += n
	}
	if e.stats && got != want {
		return fmt.Errorf("%v from %08x by %d, %+v: %+v, want %+v", f, bitsOf(src[0]), step, e.policy, got, want)
	}
	return nil
}

// TestEncodeEverywhere encodes all float32, or a sample, in every format at the machine's
// highest level, to nearest with what is counted; rounded otherwise, some of them: what is
// next to thresholds has a test of its own, TestEncodeFloat32Boundaries.
func TestEncodeEverywhere(t *testing.T) {
	levels := cpu.Levels()
	encodeEverywhere(t, levels[len(levels)-1])
}

// TestEncodeLevelsEverywhere is the same at the other levels and in plain Go.
func TestEncodeLevelsEverywhere(t *testing.T) {
	levels := cpu.Levels()
	for _, l := range levels[:len(levels)-1] {
		encodeEverywhere(t, l)
	}
}

// encodeEverywhere leaves out most of what takes the most time, in plain Go: there, codes
// of the zero policy alone are compared everywhere, and at other levels what kernels leave
// to it is a sample.
func encodeEverywhere(t *testing.T, l cpu.Level) {
	restore, err := cpu.Force(l)
	require.NoError(t, err)
	defer restore()
	beyond := fp8.Policy{Overflow: fp8.OverflowNonFinite, Inf: fp8.InfPropagate, NaN: fp8.NaNCanonical}
	for _, d := range definitions {
		t.Run(fmt.Sprintf("%v/%v", l, d.format), func(t *testing.T) {
			nearest := d.expect(false, fp8.Policy{})
			counted := d.expect(true, fp8.Policy{})
			otherwise := d.expect(true, fp8.Policy{Rounding: fp8.TowardZero},
				fp8.Policy{Rounding: fp8.NearestTowardZero, Zero: fp8.ZeroPositive})
			notSaturated := d.expect(false, beyond)
			for sign := range 2 {
				step := stride()
				if l == cpu.Generic {
					require.NoError(t, everywhere(d, magnitudes{sign, 0, 1 << 31, step}, nearest))
				}
				sample := step * 17
				if l == cpu.Generic || d.integer { // kernels do not serve it
					step = sample
				}
				require.NoError(t, everywhere(d, magnitudes{sign, 0, beyondKernels, step}, counted))
				require.NoError(t, everywhere(d, magnitudes{sign, beyondKernels, 1 << 31, sample}, counted))
				require.NoError(t, everywhere(d, magnitudes{sign, 0, 1 << 31, sample}, otherwise))
				largest := uint64(bitsOf(float32(d.value[d.max])))
				require.NoError(t, everywhere(d, magnitudes{sign, largest, 1 << 31, sample}, notSaturated))
			}
		})
	}
}

// TestStochasticEverywhere compares levels with plain Go for a sample of all float32, on
// request every 31st, since plain Go takes the most time.
func TestStochasticEverywhere(t *testing.T) {
	var levels []cpu.Level // together, for the generic one takes the most time
	forLevels(t, func(_ *testing.T, l cpu.Level) { levels = append(levels, l) })
	if len(levels) == 0 {
		return
	}
	for _, f := range fp8.Formats() {
		step := stride()
		if testutil.Full() {
			step = 31
		}
		switch f {
		case fp8.E4M3, fp8.E2M1:
		default:
			step *= 17
		}
		stochasticEverywhere(t, f, step, levels)
	}
}

func stochasticEverywhere(t *testing.T, f fp8.Format, step uint64, levels []cpu.Level) {
	const chunk = 1 << 20
	src, want, got := make([]float32, chunk), make([]byte, chunk), make([]byte, chunk)
	total := (1<<32 + step - 1) / step
	p := fp8.Policy{Rounding: fp8.Stochastic, Seed: 7}
	for first := uint64(0); first < total; first += chunk {
		n := min(chunk, total-first)
		for i := range src[:n] {
			src[i] = math.Float32frombits(uint32((first + uint64(i)) * step))
		}
		wantStats := encodeAll(cpu.Generic, want, src[:n], f, p)
		for _, l := range levels {
			gotStats := encodeAll(l, got, src[:n], f, p)
			for i := range want[:n] {
				if want[i] != got[i] {
					t.Fatalf("%v, %v, %+v: %x gives %02x, want %02x", l, f, p, bitsOf(src[i]), got[i], want[i])
				}
			}
			if gotStats != wantStats {
				t.Fatalf("%v, %v, %+v, from %x by %d: %+v, want %+v", l, f, p, bitsOf(src[0]), step, gotStats, wantStats)
			}
		}
	}
}

// encodeAll encodes with all processors at a level.
func encodeAll(l cpu.Level, dst []byte, src []float32, f fp8.Format, p fp8.Policy) (total fp8.Stats) {
	return at(l, func() fp8.Stats {
		parts := make([]fp8.Stats, runtime.GOMAXPROCS(0))
		var workers sync.WaitGroup
		for i := range parts {
			from, to := len(src)*i/len(parts), len(src)*(i+1)/len(parts)
			workers.Go(func() {
				fp8.EncodeScaled(dst[from:to], src[from:to], f, p, fp8.Scale{}, uint64(from), &parts[i])
			})
		}
		workers.Wait()
		for i := range parts {
			total.Merge(&parts[i])
		}
		return total
	})
}
