package certificate

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
)

// kind is the weights of one kind of module, such as all self_attn.q_proj.
type kind struct {
	name    string
	weights []measured
}

// measured is a weight whose SQNR is a number.
type measured struct {
	name  string
	layer int // -1: none
	sqnr  float64
}

// kindsOf sorts weights into kinds, of which the one with the lowest SQNR is first.
func kindsOf(tensors []checkpoint.WeightLoss) (kinds []kind) {
	at := map[string]int{}
	for _, t := range tensors {
		name, layer := module(t.Name)
		i, ok := at[name]
		if !ok {
			i = len(kinds)
			at[name] = i
			kinds = append(kinds, kind{name: name})
		}
		if x := float64(t.SQNR); !math.IsNaN(x) && !math.IsInf(x, 0) {
			kinds[i].weights = append(kinds[i].weights, measured{t.Name, layer, x})
		}
	}
	for _, k := range kinds {
		slices.SortStableFunc(k.weights, func(a, b measured) int { return cmp.Compare(a.sqnr, b.sqnr) })
	}
	kinds = slices.DeleteFunc(kinds, func(k kind) bool { return len(k.weights) == 0 })
	slices.SortStableFunc(kinds, func(a, b kind) int {
		return cmp.Compare(a.weights[0].sqnr, b.weights[0].sqnr)
	})
	return kinds
}

// module returns the kind of module that a weight is of, and the layer that it is in, -1 for
// none: of "model.layers.3.mlp.experts.7.up_proj.weight" these are "mlp.experts.*.up_proj" and 3.
func module(weight string) (kind string, layer int) {
	layer = -1
	var parts []string
	for part := range strings.SplitSeq(strings.TrimSuffix(weight, ".weight"), ".") {
		n, err := strconv.Atoi(part)
		switch {
		case err != nil || n < 0:
			parts = append(parts, part)
		case layer < 0:
			layer, parts = n, nil
		default:
			parts = append(parts, "*")
		}
	}
	return strings.Join(parts, "."), layer
}

// extent returns the weight of the lowest SQNR and the median of all.
func (k kind) extent() (worst measured, median float64) {
	n := len(k.weights)
	return k.weights[0], (k.weights[(n-1)/2].sqnr + k.weights[n/2].sqnr) / 2
}

// byLayer returns the weight of the lowest SQNR of each layer, in the order of layers.
func (k kind) byLayer() (worst []measured) {
	seen := map[int]bool{-1: true}
	for _, w := range k.weights {
		if !seen[w.layer] {
			seen[w.layer] = true
			worst = append(worst, w)
		}
	}
	slices.SortFunc(worst, func(a, b measured) int { return cmp.Compare(a.layer, b.layer) })
	return worst
}

// shortest returns the shortest end of a kind's name, in whole words, that no other ends in.
func shortest(name string, kinds []kind) string {
	for at := len(name); ; {
		at = strings.LastIndexByte(name[:at], '.')
		end := name[at+1:]
		same := func(k kind) bool { return k.name == end || strings.HasSuffix(k.name, "."+end) }
		others := func(k kind) bool { return k.name != name && same(k) }
		if at < 0 || !slices.ContainsFunc(kinds, others) {
			return end
		}
	}
}
