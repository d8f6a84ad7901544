package granularity

import (
	"maps"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/lab/statistics"
	"github.com/octavo-fp8/octavo/scaling"
)

// Blocks whose amax is below these shares of the tensor's would, under one scale for
// the tensor, be encoded by subnormals only, or by zeros only, in E4M3.
const (
	subnormalShare = 0x1p-6 / 448
	lostShare      = 0x1p-10 / 448
)

// deepSeekLeast is the amax to which the deepseek and deepgemm arithmetics raise a
// smaller one.
const deepSeekLeast = 1e-4

// amaxLog is a tensor.Reporter that notes the amax of every block of every operand,
// each operand in one product only.
type amaxLog struct {
	mu sync.Mutex
	by map[string][]float64
}

// Block implements tensor.Reporter.
func (l *amaxLog) Block(op, name string, _, _ int, _ float32, st *fp8.Stats) {
	if op != opOf[roleOf(name)] {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.by[name] = append(l.by[name], st.Amax)
}

// NonFinite implements tensor.Reporter; the optimizer refuses such a step.
func (l *amaxLog) NonFinite(string, string, int, float64) {}

// roleOf returns the role of a tensor that a linear layer quantizes.
func roleOf(name string) scaling.Role {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case "weight":
		return scaling.Weight
	case "gradient":
		return scaling.Gradient
	}
	return scaling.Input
}

// shortName leaves out what all names of linear layers' tensors share.
func shortName(name string) string {
	name = strings.TrimPrefix(name, "model.layers.")
	name = strings.Replace(name, "_proj", "", 1)
	return strings.Replace(name, "self_attn.", "attention.", 1)
}

// amaxes are those of an operand's blocks in one step.
type amaxes struct {
	name string
	step int

	sorted []float64 // without zeros
	zeros  int
}

// take returns what was noted in a step, by name, and begins anew.
func (l *amaxLog) take(step int) (all []amaxes) {
	for _, name := range slices.Sorted(maps.Keys(l.by)) {
		all = append(all, newAmaxes(name, step, l.by[name]))
	}
	clear(l.by)
	return all
}

// newAmaxes sorts blocks.
func newAmaxes(name string, step int, blocks []float64) amaxes {
	slices.Sort(blocks)
	zeros := 0
	for zeros < len(blocks) && blocks[zeros] == 0 {
		zeros++
	}
	return amaxes{name, step, blocks[zeros:], zeros}
}

func (a amaxes) blocks() int { return a.zeros + len(a.sorted) }

// ofTensor returns the amax of the whole tensor.
func (a amaxes) ofTensor() float64 {
	if len(a.sorted) == 0 {
		return 0
	}
	return a.sorted[len(a.sorted)-1]
}

// binades returns the range of the blocks that are not zero.
func (a amaxes) binades() float64 {
	if len(a.sorted) == 0 {
		return 0
	}
	return math.Log2(a.ofTensor() / a.sorted[0])
}

// shareOfZeros returns the share of blocks that are all zero.
func (a amaxes) shareOfZeros() float64 { return float64(a.zeros) / float64(max(a.blocks(), 1)) }

// shareBelow returns the share of blocks that are not zero and below a limit.
func (a amaxes) shareBelow(limit float64) float64 {
	below, _ := slices.BinarySearch(a.sorted, limit)
	return float64(below) / float64(max(a.blocks(), 1))
}

// amaxSummary is an operand over all steps.
type amaxSummary struct {
	name   string
	blocks int

	first, last, least, most         float64 // of the tensor's amax over steps
	binades                          float64 // the median over steps
	zeros, clamped, subnormals, lost float64 // shares of all blocks, the mean over steps
}

// summarize returns a summary of each name, sorted.
func summarize(all []amaxes) (summaries []amaxSummary) {
	byName := make(map[string][]amaxes)
	for _, a := range all {
		byName[a.name] = append(byName[a.name], a)
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		summaries = append(summaries, summaryOf(byName[name]))
	}
	return summaries
}

// summaryOf sums up one operand in the order of its steps.
func summaryOf(steps []amaxes) amaxSummary {
	s := amaxSummary{
		name: steps[0].name, blocks: steps[0].blocks(),
		first: steps[0].ofTensor(), last: steps[len(steps)-1].ofTensor(), least: math.Inf(1),
	}
	n := float64(len(steps))
	var binades []float64
	for _, a := range steps {
		whole := a.ofTensor()
		s.least, s.most = min(s.least, whole), max(s.most, whole)
		binades = append(binades, a.binades())
		s.zeros += a.shareOfZeros() / n
		s.clamped += a.shareBelow(deepSeekLeast) / n
		s.subnormals += a.shareBelow(whole*subnormalShare) / n
		s.lost += a.shareBelow(whole*lostShare) / n
	}
	s.binades = statistics.Median(binades)
	return s
}
