package comparison

import (
	"fmt"
	"io"
	"sort"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/internal/textout"
)

// Experts says what share of the tokens of all steps each expert of a layer was given.
type Experts struct {
	Layer  int       `json:"layer"`
	Shares []float64 `json:"shares"` // of each expert, 1 in all
}

// Experts returns the loads of experts of the FP8 model, layer by layer. They are the number
// of elements of what is multiplied by each expert's gate in forward products.
func (r *Result) Experts() (all []Experts) {
	loads := map[int]map[int]float64{}
	for _, t := range r.Totals {
		var layer, expert int
		name, ok := strings.CutSuffix(t.Tensor, ".gate_proj.input")
		_, err := fmt.Sscanf(name, "model.layers.%d.mlp.experts.%d", &layer, &expert)
		if !ok || err != nil || t.Op != "forward" {
			continue
		}
		if loads[layer] == nil {
			loads[layer] = map[int]float64{}
		}
		loads[layer][expert] = float64(t.Stats.Elements)
	}
	_, experts, _ := r.Options.mixture()
	for layer, load := range loads {
		e := Experts{Layer: layer, Shares: make([]float64, experts.Router.Experts)}
		var sum float64
		for _, n := range load {
			sum += n
		}
		for i, n := range load { // an expert without tokens is heard of without elements, if at all
			if sum > 0 {
				e.Shares[i] = n / sum
			}
		}
		all = append(all, e)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Layer < all[j].Layer })
	return all
}

// writeExperts writes a line for each layer with experts.
func (r *Result) writeExperts(w io.Writer) {
	all := r.Experts()
	if len(all) == 0 {
		return
	}
	fmt.Fprintf(w, "\nTokens of each expert of %s in percent:\n", r.Options.Model())
	for _, e := range all {
		var shares []string
		for _, s := range e.Shares {
			shares = append(shares, strconv.FormatFloat(100*s, 'f', 1, 64))
		}
		line := fmt.Sprintf("layer %d: %s", e.Layer, strings.Join(shares, " "))
		fmt.Fprintln(w, textout.Wrap(line, lineWidth, ""))
	}
}
