package bench

import (
	"context"
	"runtime"
	"slices"
	"time"

	"github.com/octavo-fp8/octavo/internal/cpu"
)

// Suite is what to measure, and for how long.
type Suite struct {
	Shapes   []Shape
	Levels   []cpu.Level
	Workers  []int         // processors at most, for each product
	Elements int           // of each conversion, a multiple of 1024; 0 for none
	Reads    []int         // bytes of memory whose reading is a limit
	Time     time.Duration // at least, for each case
}

// NewSuite returns the suite of the given levels: [Shapes], on one and on all
// processors, and conversions of a MiB of codes. Reading is measured of 16 MiB,
// which is what the weights of 4096x4096 take, and of 256 MiB.
func NewSuite(levels []cpu.Level, perCase time.Duration) Suite {
	return Suite{
		Shapes:   Shapes(),
		Levels:   levels,
		Workers:  slices.Compact([]int{1, runtime.GOMAXPROCS(0)}),
		Elements: mebi,
		Reads:    []int{16 * mebi, 256 * mebi},
		Time:     perCase,
	}
}

const mebi = 1 << 20

// Levels returns the levels of this machine at which products differ: all but AMX
// where the system does not let it be used.
func Levels() []cpu.Level {
	return slices.DeleteFunc(cpu.Levels(), func(l cpu.Level) bool { return l == cpu.AMX && !cpu.AMXPermitted() })
}

// Cases returns the number of cases.
func (s Suite) Cases() int {
	n := 0
	if s.Elements > 0 {
		n = len(comparisons) + len(s.Levels)*len(byLevel)
	}
	for _, shape := range s.Shapes {
		perWorkers := 2 * len(s.Levels)
		if shape.hasPeers() {
			perWorkers += len(Peers())
		}
		n += len(s.Workers) * perWorkers
	}
	return n
}

// Run measures all cases, or those before ctx is done; progress is told of each
// that begins. Levels and GOMAXPROCS are set for the whole process meanwhile: let
// nothing else run.
func (s Suite) Run(ctx context.Context, progress func(Case)) (*Report, error) {
	if !canRead() {
		s.Reads = nil
	}
	r := &Report{Cases: s.Cases(), Seconds: s.Time.Seconds()}
	m := measuring{Suite: s, ctx: ctx, progress: progress, report: r, memory: written(slices.Max(append(s.Reads, 0)))}
	if err := m.conversions(); err != nil {
		return r, err
	}
	for _, shape := range s.Shapes {
		if err := m.products(shape); err != nil {
			return r, err
		}
	}
	r.finish()
	return r, nil
}

// written returns memory in pages of its own.
func written(n int) []byte {
	memory := make([]byte, n)
	for i := range memory {
		memory[i] = byte(i)
	}
	return memory
}

// measuring is a suite that runs.
type measuring struct {
	Suite
	ctx      context.Context
	progress func(Case)
	report   *Report
	memory   []byte // to be read
}

func (m *measuring) conversions() error {
	if m.Elements == 0 {
		return nil
	}
	for _, c := range conversions(m.Elements, m.Levels) {
		if m.ctx.Err() != nil {
			return nil
		}
		m.progress(c)
		t, err := c.Measure(m.Time)
		if err != nil {
			return err
		}
		m.report.addConversion(c, m.Elements, t)
	}
	return nil
}

// products measures all ways to compute a product, one after the other, and the
// limits beside them.
func (m *measuring) products(s Shape) error {
	if m.ctx.Err() != nil {
		return nil
	}
	m.report.Limits.measure(m.Levels, m.Workers, m.memory, m.Reads)
	cases, err := m.cases(s)
	if err != nil {
		return err
	}
	for _, c := range cases {
		if m.ctx.Err() != nil {
			return nil
		}
		m.progress(c)
		t, err := c.Measure(m.Time)
		if err != nil {
			return err
		}
		m.report.addProduct(s, c, t)
	}
	return nil
}

func (m *measuring) cases(s Shape) (cases []Case, err error) {
	o, err := NewOperands(s)
	if err != nil {
		return nil, err
	}
	for _, workers := range m.Workers {
		for _, l := range m.Levels {
			cases = append(cases, o.Cases(l, workers)...)
		}
		if s.hasPeers() {
			cases = append(cases, peerCases(s, workers)...)
		}
	}
	return cases, nil
}
