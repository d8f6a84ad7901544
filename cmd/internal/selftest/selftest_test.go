package selftest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/progress"
)

// newTester returns a self test of one round.
func newTester(seed uint64, only ...string) *tester {
	t := &tester{Options: Options{Seed: seed}, levels: cpu.Levels(), workers: 3}
	for _, c := range checks {
		for _, name := range only {
			if c.name == name {
				t.checks = append(t.checks, c)
			}
		}
	}
	if len(only) == 0 {
		t.checks = checks
	}
	return t
}

func (t *tester) result(tb testing.TB) *Result {
	before := cpu.Current()
	r, err := t.run(tb.Context())
	require.NoError(tb, err)
	require.Equal(tb, before, cpu.Current())
	return r
}

func TestPass(t *testing.T) {
	rounds, last := 0, int64(0)
	r, err := Run(t.Context(), Options{Seed: 5, Time: 500 * time.Millisecond, Progress: progress.Func(func(op string, done, total int64) {
		rounds++
		require.Equal(t, "selftest", op)
		require.EqualValues(t, 500, total)
		require.GreaterOrEqual(t, done, last)
		last = done
	})})
	require.NoError(t, err)
	require.Nil(t, r.Failure, "%v", r.Failure)
	require.True(t, r.Pass)
	require.Positive(t, rounds)
	require.EqualValues(t, 500, last)
	require.GreaterOrEqual(t, r.Seconds, 0.5)
	require.Len(t, r.Levels, len(cpu.Levels()))
	require.Len(t, r.Checks, 7)
	for i, c := range r.Checks {
		require.Equal(t, rounds*r.Processors, c.Cases)
		require.Positive(t, c.Bytes)
		require.Equal(t, Checks()[i], c.Name)
	}
	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	require.Contains(t, strings.Join(strings.Fields(text.String()), " "), "PASS: "+r.passed())
}

// TestAtLeastOneRound has no time at all, and a context that has ended.
func TestAtLeastOneRound(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	r, err := Run(ctx, Options{Time: time.Hour})
	require.NoError(t, err)
	for _, c := range r.Checks {
		require.Equal(t, r.Processors, c.Cases)
	}
}

// TestFaults flips one bit of one result, in every output of every check and at
// every level, and demands to be told which.
func TestFaults(t *testing.T) {
	for _, c := range checks {
		for _, l := range cpu.Levels() {
			for index := 0; ; index++ {
				const seed = 11
				outputs := c.safely(seed + 1) // that of the second worker
				if index == len(outputs) {
					break
				}
				p := outputs[index]
				r := rand.New(rand.NewPCG(uint64(index), uint64(l)))
				bit := r.IntN(8 * len(p.data))
				tester := newTester(seed, c.name)
				var injected atomic.Int32
				tester.fault = func(at cpu.Level, repeat bool, name string, got []output) {
					if at == l && repeat && name == c.name && got[index].what == p.what && bytes.Equal(got[index].data, p.data) {
						got[index].data[bit/8] ^= 1 << (bit % 8)
						injected.Add(1)
					}
				}
				f := tester.result(t).Failure
				require.EqualValues(t, 1, injected.Load(), "%s, %s", c.name, p.what)
				require.NotNil(t, f, "%s at %v, bit %d of %s", c.name, l, bit, p.what)
				require.Equal(t, &Failure{
					Check: c.name, Level: l.String(), Seed: seed + 1, What: p.what, Place: p.place(bit / 8 / p.size),
					Want: f.Want, Got: f.Got,
				}, f)
				var want, got uint64
				_, err := fmt.Sscanf(f.Want+" "+f.Got, "%X %X", &want, &got)
				require.NoError(t, err)
				require.Len(t, f.Got, 2*p.size)
				require.Equal(t, uint64(1)<<(bit%(8*p.size)), want^got)
			}
		}
	}
}

// TestFaultBehindTheEnd changes what lies behind a result.
func TestFaultBehindTheEnd(t *testing.T) {
	tester := newTester(3, "encode")
	tester.fault = func(_ cpu.Level, repeat bool, _ string, got []output) {
		if repeat {
			got[0].data[len(got[0].data)-1] = 0
		}
	}
	f := tester.result(t).Failure
	require.Regexp(t, `^element \d+ of \d+, behind the last$`, f.Place)
	require.Equal(t, "A5", f.Want)
	require.Equal(t, "00", f.Got)
}

// TestPanics has checks that panic, everywhere and at a level.
func TestPanics(t *testing.T) {
	tester := newTester(3)
	tester.checks = []check{{"broken", func(*rand.Rand) []output { panic("no such shape") }}}
	require.Equal(t, &Failure{Check: "broken", Level: "generic", Seed: 3, What: "panic", Place: "in plain Go as well", Want: "no panic", Got: "panic: no such shape"},
		tester.result(t).Failure)
	var calls atomic.Int32
	tester.checks = []check{{"broken", func(*rand.Rand) []output {
		if calls.Add(1) > 3 {
			panic("index out of range")
		}
		return []output{codeOutput("codes", make([]byte, 40))}
	}}}
	f := tester.result(t).Failure
	require.Equal(t, "as a whole", f.Place)
	require.Equal(t, "panic: index out of range", f.Got)
	require.Equal(t, "codes, 40 bytes", f.Want)

	require.Equal(t, "nothing", compare([]output{{what: "x", size: 1}}, nil).Got)
}

// TestSeedRepeats demands that the seed of a case makes it the first.
func TestSeedRepeats(t *testing.T) {
	a, err := newTester(100).all(cpu.Generic, false, 100, 0)
	require.NoError(t, err)
	b, err := newTester(102).all(cpu.Generic, false, 102, 0)
	require.NoError(t, err)
	for i := range checks {
		require.Equal(t, a[3*i+2], b[3*i])
		require.NotEqual(t, a[3*i+1], b[3*i])
	}
}

// TestRounds demands that every case of every round has its own seed.
func TestRounds(t *testing.T) { synctest.Test(t, testRounds) }

func testRounds(t *testing.T) {
	var mu sync.Mutex
	seen := make(map[uint64]int)
	tester := newTester(9)
	tester.Time = 20 * time.Millisecond
	rounds := 0
	tester.Progress = progress.Func(func(string, int64, int64) { rounds++ })
	tester.checks = []check{{"seen", func(r *rand.Rand) []output {
		mu.Lock()
		seen[r.Uint64()]++
		mu.Unlock()
		time.Sleep(time.Millisecond)
		return nil
	}}}
	tester.result(t)
	require.Greater(t, rounds, 1)
	require.Len(t, seen, 3*rounds)
	for _, n := range seen {
		require.Equal(t, 1+len(tester.levels), n)
	}
}

// TestShift demands that other workers do a case at the next level.
func TestShift(t *testing.T) {
	for w := range 3 {
		require.Equal(t, w, newTester(1).dealt(w, 0))
		require.Equal(t, (w+2)%3, newTester(1).dealt(w, 2))
	}
	a, err := newTester(1).all(cpu.Generic, false, 1, 0)
	require.NoError(t, err)
	b, err := newTester(1).all(cpu.Generic, true, 1, 2)
	require.NoError(t, err)
	require.Equal(t, a, b)
}

// TestInputs demands that cases do not panic and hardly ever repeat.
func TestInputs(t *testing.T) {
	for _, c := range checks {
		seen := make(map[uint64]bool)
		for seed := range uint64(40) {
			h := fnv.New64a()
			for _, p := range c.safely(seed) {
				require.NotEqual(t, panicked, p.what, "%s", p.data)
				h.Write(p.data)
			}
			seen[h.Sum64()] = true
		}
		require.GreaterOrEqual(t, len(seen), 39, c.name)
	}
}

// TestPassed: a level that was refused, or that is not there, is not said to be right.
func TestPassed(t *testing.T) {
	for says, r := range map[string]Result{
		"every bit of these cases is the same at levels generic, avx2":                                    {Levels: []string{"generic", "avx2"}},
		"every bit of these cases is the same at levels generic, avx2; not judged: amx":                   {Levels: []string{"generic", "avx2", "amx"}, Refused: []string{"amx"}},
		"plain Go gave every bit of these cases twice; there is no other level to judge":                  {Levels: []string{"generic"}},
		"plain Go gave every bit of these cases twice; there is no other level to judge; not judged: amx": {Levels: []string{"generic", "amx"}, Refused: []string{"amx"}},
	} {
		require.Equal(t, says, r.passed())
	}
}

func TestReport(t *testing.T) {
	r := newTester(7).newResult()
	r.Levels, r.Refused = []string{"generic", "amx"}, []string{"amx"}
	r.Failure = &Failure{Check: "encode", Level: "amx", Seed: 9, What: "codes", Place: "element 1 of 2", Want: "7F", Got: "7E"}
	var text bytes.Buffer
	require.NoError(t, r.WriteText(&text))
	require.Contains(t, text.String(), "levels generic, amx against plain Go on 3 processors, seed 7, 0.0 s\n")
	require.Contains(t, text.String(), "the system refuses amx: its products were those of the level below\n")
	require.Contains(t, text.String(), "FAIL: encode at level amx: codes, element 1 of 2: got 7E, want 7F\nTo repeat it: octavo selftest --seed 9\n")
	b, err := json.Marshal(r)
	require.NoError(t, err)
	require.Contains(t, string(b), `"fault":{"check":"encode","level":"amx","seed":9,"what":"codes","place":"element 1 of 2","want":"7F","got":"7E"}`)
}
