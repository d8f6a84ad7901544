package nn

import (
	"fmt"
	"math"
	"slices"
)

// balancer has the biases of a router's experts, which [Scaling] remembers.
type balancer struct {
	rate float32
	bias []float32
	load []int64 // tokens that have chosen each expert in this step
}

// RouterState is what [Scaling] saves of a router with biases.
type RouterState struct {
	Bias []float32 `json:"bias"`
	Load []int64   `json:"load"` // tokens of this step that have chosen each expert
}

// add counts the tokens of a pass.
func (b *balancer) add(load []int) {
	for i, n := range load {
		b.load[i] += int64(n)
	}
}

// endStep moves each bias toward equal loads.
func (b *balancer) endStep() {
	var all int64
	for _, n := range b.load {
		all += n
	}
	for i, n := range b.load {
		switch n *= int64(len(b.load)); {
		case n < all:
			b.bias[i] += b.rate
		case n > all:
			b.bias[i] -= b.rate
		}
	}
	b.dropStep()
}

func (b *balancer) dropStep() { clear(b.load) }

func (b *balancer) state() RouterState {
	return RouterState{slices.Clone(b.bias), slices.Clone(b.load)}
}

// restore takes a state that passes check.
func (b *balancer) restore(s RouterState) {
	copy(b.bias, s.Bias)
	copy(b.load, s.Load)
}

// check returns an error unless s is of so many experts and can be.
func (s RouterState) check(experts int) error {
	if len(s.Bias) != experts {
		return fmt.Errorf("it has biases of %d experts, the model has %d", len(s.Bias), experts)
	}
	for i, b := range s.Bias {
		if math.IsNaN(float64(b)) || math.IsInf(float64(b), 0) {
			return fmt.Errorf("the bias of expert %d is %v", i, b)
		}
	}
	return checkLoad(s.Load, experts)
}

func checkLoad(load []int64, experts int) error {
	if len(load) != experts {
		return fmt.Errorf("it has loads of %d experts, the model has %d", len(load), experts)
	}
	for i, n := range load {
		if n < 0 {
			return fmt.Errorf("the load of expert %d is %d: it must not be negative", i, n)
		}
	}
	return nil
}

// addLoads returns the sum of loads, which must be of as many experts.
func addLoads(a, b []int64) ([]int64, error) {
	if len(a) != len(b) {
		return nil, fmt.Errorf("loads of %d and of %d experts", len(a), len(b))
	}
	sum := slices.Clone(a)
	for i, n := range b {
		sum[i] += n
	}
	return sum, nil
}
