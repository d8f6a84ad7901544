package bench

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/octavo-fp8/octavo/internal/cpu"
)

// PeerSuite is what octavo and the program of bench/peers do by turns, and for how long.
type PeerSuite struct {
	Program  string // the file
	Shapes   []Shape
	Levels   []cpu.Level
	Workers  []int         // processors at most, for each product
	Elements int           // of each conversion, a multiple of 1024; 0 for none
	Llama    string        // the file of llama.cpp's llama-batched-bench; "" for no tokens
	Model    Model         // of the tokens
	Turn     time.Duration // that everybody takes at least
	Spread   float64       // of every ratio, at which a comparison ends
	Limit    time.Duration // after which it ends in any case, with six rounds at least
}

// NewPeerSuite returns the suite of the given levels, on one and on all processors.
func NewPeerSuite(program string, levels []cpu.Level) PeerSuite {
	return PeerSuite{
		Program:  program,
		Shapes:   Shapes(),
		Levels:   levels,
		Workers:  slices.Compact([]int{1, runtime.GOMAXPROCS(0)}),
		Elements: mebi,
		Model:    TokenModel,
		Turn:     10 * time.Millisecond,
		Spread:   0.03,
		Limit:    5 * time.Second,
	}
}

// PeerReport is what a [PeerSuite] has measured.
type PeerReport struct {
	Cases    int          `json:"cases"` // comparisons of the suite
	Program  PeerAbout    `json:"program"`
	Cores    []Core       `json:"cores"`    // that OpenBLAS was asked for
	Notes    []string     `json:"notes"`    // what could not be had
	Failures []string     `json:"failures"` // what could be had, and then failed
	Spread   float64      `json:"spread"`
	Limit    float64      `json:"limitSeconds"`
	Done     []Comparison `json:"done"`
}

// Core is a processor that OpenBLAS was told to choose its kernels for, and the one
// that it then named.
type Core struct {
	Asked string `json:"asked"` // "" if it was told nothing
	Got   string `json:"got"`   // "" if it did not start
}

// Cases returns the number of comparisons.
func (s PeerSuite) Cases() int {
	n := len(s.Shapes) * len(s.Workers)
	if s.Elements > 0 {
		n += len(conversionContests)
	}
	if s.Llama != "" {
		n += len(tokenRequests) * len(s.Workers)
	}
	return n
}

// Run makes all comparisons, or those before ctx is done or the program fails; progress
// is told of each that begins. The report has what was done, with an error too. As in
// [Suite.Run] nothing else should run.
func (s PeerSuite) Run(ctx context.Context, progress func(what string)) (*PeerReport, error) {
	r := &PeerReport{Cases: s.Cases(), Notes: []string{}, Failures: []string{}, Spread: s.Spread, Limit: s.Limit.Seconds()}
	p := &peering{PeerSuite: s, ctx: ctx, report: r}
	defer p.close()
	if err := enoughMemory(s.Shapes); err != nil {
		return r, err
	}
	if err := p.start(); err != nil {
		return r, err
	}
	if s.Elements > 0 {
		for _, c := range conversionContests {
			if ctx.Err() != nil {
				return r, nil
			}
			progress(c.what)
			if err := p.convert(c); err != nil {
				return r, err
			}
		}
	}
	if s.Llama != "" {
		if err := p.tokens(progress); err != nil {
			return r, err
		}
	}
	for _, shape := range s.Shapes {
		for _, workers := range s.Workers {
			if ctx.Err() != nil {
				return r, nil
			}
			word := "workers"
			if workers == 1 {
				word = "worker"
			}
			progress(fmt.Sprintf("%v, %d %s", shape, workers, word))
			if err := p.multiply(shape, workers); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

// peering is a PeerSuite that runs.
type peering struct {
	PeerSuite
	ctx      context.Context
	report   *PeerReport
	programs []*peerProgram // for different cores; the first was not told any
}

func (p *peering) close() {
	for _, program := range p.programs {
		program.close()
	}
}

func (p *peering) note(format string, arguments ...any) {
	addNew(&p.report.Notes, fmt.Sprintf(format, arguments...))
}

func addNew(list *[]string, text string) {
	if !slices.Contains(*list, text) {
		*list = append(*list, text)
	}
}

// coreNames are what OpenBLAS calls processors, and the features that they take.
var coreNames = []struct {
	name     string
	features []string
}{
	{"Haswell", []string{"avx2", "fma"}},
	{"SkylakeX", []string{"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl"}},
	{"Cooperlake", []string{"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512bf16"}},
	{"SapphireRapids", []string{"avx2", "fma", "avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512bf16", "amx-bf16"}},
}

// cores returns those that a processor with some features can stand in for.
func cores(features []string) (names []string) {
	for _, c := range coreNames {
		if !slices.ContainsFunc(c.features, func(f string) bool { return !slices.Contains(features, f) }) {
			names = append(names, c.name)
		}
	}
	return names
}

// start starts the program once for each core.
func (p *peering) start() error {
	first, err := startPeers(p.Program, "")
	if err != nil {
		return err
	}
	first.stop = p.ctx.Done()
	p.programs = append(p.programs, first)
	p.report.Program = first.about
	p.report.Cores = []Core{{"", first.about.Core}}
	for _, core := range cores(cpu.Features()) {
		program, err := startPeers(p.Program, core)
		if err != nil {
			p.note("OPENBLAS_CORETYPE=%s: %v", core, err)
			p.report.Cores = append(p.report.Cores, Core{core, ""})
			continue
		}
		p.report.Cores = append(p.report.Cores, Core{core, program.about.Core})
		if slices.ContainsFunc(p.programs, func(o *peerProgram) bool { return o.about.Core == program.about.Core }) {
			program.close()
			continue
		}
		program.stop = p.ctx.Done()
		p.programs = append(p.programs, program)
	}
	return nil
}

// done reports whether a comparison has gone on for long enough.
func (p *peering) done(c *Comparison) bool {
	if p.ctx.Err() != nil {
		return true
	}
	c.Settled = c.Rounds >= leastPairs && !slices.ContainsFunc(c.Ratios, func(r RatioTo) bool { return r.Spread() > p.Spread })
	return c.Settled || c.Rounds >= leastPairs && c.Seconds >= p.Limit.Seconds()
}

// contest adds a comparison to the report.
func (p *peering) contest(c Comparison, all []*contestant) error {
	c, err := contest(c, all, p.Turn, p.done, func(by string, err error) {
		addNew(&p.report.Failures, fmt.Sprintf("%s, %s by %d: %v", by, c.What, c.Workers, err))
	})
	if err == nil {
		p.report.Done = append(p.report.Done, c)
	}
	return err
}

// contestant returns who runs a routine in a program, for which it has been prepared.
func (p *peerProgram) contestant(routine, format string, amount float64) *contestant {
	run := func(count int) (time.Duration, error) { return p.run(routine, count) }
	return &contestant{Rate: Rate{By: routine, Format: format}, turn: worker(amount, run), peer: true}
}

// refused notes why a routine cannot be had, if that is what err says.
func (p *peering) refused(routine string, err error) bool {
	why, ok := err.(unable)
	if ok {
		p.note("%s: %s", routine, why)
	}
	return ok
}

// routines returns who can run routines of the first program.
func (p *peering) routines(names []string, s Shape, amount float64) (list []*contestant, err error) {
	for _, name := range names {
		format, err := p.programs[0].prepare(name, s)
		if p.refused(name, err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		list = append(list, p.programs[0].contestant(name, format, amount))
	}
	return list, nil
}

// coreTrial is a routine of OpenBLAS in a program for one core.
type coreTrial struct {
	one     *contestant
	program *peerProgram
}

// fastestCore returns the routine in the program whose core is best at it; nil if no
// program can. Each meets the best so far, and the loser's operands are forgotten, but for
// those of programs that another routine is at home in: a core that has not won takes no
// memory for long.
func (p *peering) fastestCore(routine string, s Shape, workers int, homes []*peerProgram) (best *coreTrial, err error) {
	for _, program := range slices.Clone(p.programs) {
		next, err := p.try(program, routine, s, workers, homes)
		if err != nil {
			return nil, err
		}
		winner, err := p.faster(routine, best, next)
		if err != nil {
			return nil, err
		}
		for _, trial := range []*coreTrial{best, next} {
			if trial != nil && trial != winner {
				p.forget(trial.program, homes)
			}
		}
		best = winner
	}
	return best, nil
}

// try makes a routine ready in a program; nil if it cannot be had there.
func (p *peering) try(program *peerProgram, routine string, s Shape, workers int, homes []*peerProgram) (*coreTrial, error) {
	if !slices.Contains(homes, program) {
		if err := p.shape(program, s, workers); err != nil {
			return nil, p.coreFailed(program, routine, err)
		}
	}
	if _, err := program.prepare(routine, s); err != nil {
		err = p.coreFailed(program, routine, err)
		p.forget(program, homes)
		return nil, err
	}
	one := program.contestant(routine, "", s.FLOP())
	one.Core = program.about.Core
	return &coreTrial{one, program}, nil
}

// faster returns the faster of two, of which either may be nil. They take turns, every
// second time in the other order, so that a neighbour does not choose.
func (p *peering) faster(routine string, a, b *coreTrial) (*coreTrial, error) {
	if a == nil || b == nil {
		return cmp.Or(a, b), nil
	}
	order, rates := []*coreTrial{a, b}, map[*coreTrial]float64{}
	for range turnsOfCore {
		for _, trial := range order {
			rate, err := trial.one.turn(p.Turn)
			if err != nil {
				other := a
				if trial == a {
					other = b
				}
				return other, p.coreFailed(trial.program, routine, err)
			}
			rates[trial] = max(rates[trial], rate)
		}
		slices.Reverse(order)
	}
	if rates[b] > rates[a] {
		return b, nil
	}
	return a, nil
}

const turnsOfCore = 3

// coreFailed notes why a program cannot run a routine. One that failed otherwise is ended;
// of the first, which runs all else too, that is an error.
func (p *peering) coreFailed(program *peerProgram, routine string, err error) error {
	switch {
	case p.refused(routine, err):
	case program == p.programs[0]:
		return err
	default:
		p.dropFailed(program, err)
	}
	return nil
}

// forget has a program give memory back, unless it is among homes or has failed.
func (p *peering) forget(program *peerProgram, homes []*peerProgram) {
	if slices.Contains(homes, program) || !slices.Contains(p.programs, program) {
		return
	}
	if _, err := program.shape(Shape{M: 1, N: 1, K: 1, Experts: 1}, 1); err != nil && program != p.programs[0] {
		p.dropFailed(program, err)
	}
}

// shape tells a program of a product, and notes if threads are not as many as workers.
func (p *peering) shape(program *peerProgram, s Shape, workers int) error {
	used, err := program.shape(s, workers)
	if err == nil && used > 0 && used != workers {
		p.note("OpenBLAS uses %d threads where octavo has %d workers", used, workers)
	}
	return err
}

// dropFailed ends a program, other than the first, that has failed.
func (p *peering) dropFailed(program *peerProgram, err error) {
	p.note("core %s: %v", program.about.Core, err)
	program.close()
	p.programs = slices.DeleteFunc(p.programs, func(o *peerProgram) bool { return o == program })
}

// The routines of products.
var (
	blasRoutines   = []string{"openblas-sgemm", "openblas-sbgemm"}
	blasOfOneRow   = []string{"openblas-sgemv", "openblas-sbgemm"}
	oneDNNRoutines = []string{
		"onednn-f32", "onednn-f32-reordered", "onednn-bf16", "onednn-bf16-reordered", "onednn-fp8", "onednn-fp8-reordered",
	}
)

// peers returns those of a product, which is not grouped.
func (p *peering) peers(s Shape, workers int) (list []*contestant, err error) {
	routines := blasRoutines
	if s.M == 1 {
		routines = blasOfOneRow
	}
	var homes []*peerProgram
	for _, routine := range routines {
		best, err := p.fastestCore(routine, s, workers, homes)
		if err != nil {
			return nil, err
		}
		if best != nil {
			list, homes = append(list, best.one), append(homes, best.program)
		}
	}
	if first := p.programs[0]; !slices.Contains(homes, first) {
		if err := p.shape(first, s, workers); err != nil {
			return nil, err
		}
	}
	others, err := p.routines(oneDNNRoutines, s, s.FLOP())
	return append(list, others...), err
}

// multiply compares octavo's products of a shape with the roof and with the peers, or
// grouped ones with one product of the same work.
func (p *peering) multiply(s Shape, workers int) error {
	for _, program := range slices.Clone(p.programs) {
		p.forget(program, nil) // what the product before needed
	}
	all, err := p.products(s, workers, Octavo)
	if err != nil {
		return err
	}
	var memory []byte
	if canRead() {
		memory = written(int(s.Bytes()))
	}
	for _, l := range p.Levels {
		if s.Recipe.of().integer {
			break // there is no roof of theirs
		}
		all = append(all, roof(l, workers, s, memory))
		if l == cpu.AMX {
			all = append(all, tileRoof(workers))
		}
	}
	others, err := p.others(s, workers)
	if err != nil {
		return err
	}
	return p.contest(Comparison{What: s.String(), Unit: "GFLOP/s", Workers: workers}, append(all, others...))
}

// others returns whom octavo's products of a shape are compared with: peers, or of grouped
// ones one product of the same work, and of narrow ones octavo's in FP8 too.
func (p *peering) others(s Shape, workers int) ([]*contestant, error) {
	if s.Experts > 1 {
		one := s
		one.Experts = 1
		return p.products(one, workers, OneProduct)
	}
	peers, err := p.peers(s, workers)
	if err != nil || s.Recipe == "" {
		return peers, err
	}
	wide := s
	wide.Recipe = ""
	inFP8, err := p.products(wide, workers, InFP8)
	return append(inFP8, peers...), err
}

// products returns who computes octavo's products of a shape.
func (p *peering) products(s Shape, workers int, by string) (list []*contestant, err error) {
	o, err := NewOperands(s)
	if err != nil {
		return nil, err
	}
	for _, l := range p.Levels {
		for _, c := range o.Cases(l, workers) {
			list = append(list, c.contestant(by, s.FLOP()))
		}
	}
	return list, nil
}

// conversionContest is octavo's conversion and those it is compared with.
type conversionContest struct {
	what     string
	do       func(*converted) error
	routines []string
}

var conversionContests = append([]conversionContest{
	{"encode, with Stats", (*converted).encode, []string{"memcpy", "onednn-f32-to-bf16", "onednn-f32-to-fp8"}},
	{quantizing + "1x128", (*converted).quantize, []string{"memcpy", "onednn-f32-to-bf16", "onednn-f32-to-fp8"}},
	{"decode", (*converted).decode, []string{"memcpy", "onednn-bf16-to-f32", "onednn-fp8-to-f32"}},
	{"amax", (*converted).amax, []string{"memcpy"}},
}, narrowContests()...)

// narrowContests compare conversions of narrower formats with a copy.
func narrowContests() (all []conversionContest) {
	for _, t := range narrowTasks() {
		all = append(all, conversionContest{t.name, t.do, []string{"memcpy"}})
	}
	return all
}

// convert compares a conversion on one processor.
func (p *peering) convert(c conversionContest) error {
	v := newConverted(p.Elements)
	amount := 4 * float64(p.Elements)
	var all []*contestant
	for _, one := range (task{c.what, c.do}).cases(v, p.Levels, Octavo) {
		all = append(all, one.contestant(Octavo, amount))
	}
	if strings.HasPrefix(c.what, quantizing) {
		for _, one := range (task{c.what, (*converted).encode}).cases(v, p.Levels, Octavo) {
			all = append(all, one.contestant(plainEncode, amount))
		}
	}
	s := Shape{M: 1, N: p.Elements, K: 1, Experts: 1}
	if _, err := p.programs[0].shape(s, 1); err != nil {
		return err
	}
	others, err := p.routines(c.routines, s, amount)
	if err != nil {
		return err
	}
	return p.contest(Comparison{What: c.what, Unit: "GB/s", Workers: 1}, append(all, others...))
}
