package comparison

import (
	"sort"
	"strings"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/telemetry"
)

// Layer is what happened to the operands of one linear layer in all products
// and steps.
type Layer struct {
	Name     string  `json:"name"`
	Input    Operand `json:"input"`
	Weight   Operand `json:"weight"`
	Gradient Operand `json:"gradient"`
}

// Operand sums up one matrix of a layer.
type Operand struct {
	Stats fp8.Stats

	// What is suspect or sick in a step; see [Result.Diagnosis].
	SaturatedHealth, FlushedHealth, NonFiniteHealth telemetry.Health
}

// Saturated returns the share of values beyond the range, in percent.
func (o Operand) Saturated() float64 { return percent(o.Stats.Saturated(), o.Stats.Elements) }

// Underflowed returns the share of values that became zero, in percent.
func (o Operand) Underflowed() float64 { return percent(o.Stats.Flushed, o.Stats.Elements) }

func percent(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}

// Layers returns the linear layers of a result in the order of their names.
func (r *Result) Layers() []Layer {
	byName := make(map[string]*Layer)
	for _, t := range r.Totals {
		if t.Blocks == 0 { // it is the gradient of a step that was skipped
			continue
		}
		role := roleOf(t.Tensor)
		name := shortName(strings.TrimSuffix(t.Tensor, "."+role))
		l := byName[name]
		if l == nil {
			l = &Layer{Name: name}
			byName[name] = l
		}
		if o := l.operand(role); o != nil {
			o.add(t)
		}
	}
	for _, f := range r.findings() {
		if l := byName[f.Layer]; l != nil && l.operand(f.Operand) != nil {
			*l.operand(f.Operand).healthOf(f.What) = f.Health
		}
	}
	var layers []Layer
	for _, l := range byName {
		layers = append(layers, *l)
	}
	sort.Slice(layers, func(i, j int) bool { return natural(layers[i].Name, layers[j].Name) })
	return layers
}

// roleOf returns the last part of a tensor's name: input, weight or gradient.
func roleOf(tensor string) string { return tensor[strings.LastIndexByte(tensor, '.')+1:] }

// natural orders layers 2 and 10 by number, and the rest by name.
func natural(a, b string) bool {
	blockA, restA, _ := strings.Cut(a, ".")
	blockB, restB, _ := strings.Cut(b, ".")
	if len(blockA) != len(blockB) {
		return len(blockA) < len(blockB)
	}
	return blockA < blockB || blockA == blockB && restA < restB
}

// shorter makes names of layers fit into a line.
var shorter = strings.NewReplacer(
	"self_attn.", "attn.", "_proj_with_mqa", "", "mlp.experts.", "expert.", "mlp.shared_experts.", "shared.",
)

// shortName leaves out what all layers' names share.
func shortName(weight string) string {
	name := strings.TrimPrefix(weight, "model.layers.")
	name = shorter.Replace(name)
	return strings.TrimSuffix(name, "_proj")
}

func (l *Layer) operand(role string) *Operand {
	switch role {
	case "input":
		return &l.Input
	case "weight":
		return &l.Weight
	case "gradient":
		return &l.Gradient
	}
	return nil
}

func (o *Operand) add(t telemetry.Summary) { o.Stats.Merge(&t.Stats) }

// merge adds another operand.
func (o *Operand) merge(other Operand) {
	o.Stats.Merge(&other.Stats)
	o.SaturatedHealth = max(o.SaturatedHealth, other.SaturatedHealth)
	o.FlushedHealth = max(o.FlushedHealth, other.FlushedHealth)
	o.NonFiniteHealth = max(o.NonFiniteHealth, other.NonFiniteHealth)
}

// healthOf returns the field of one way to lose values.
func (o *Operand) healthOf(what string) *telemetry.Health {
	switch what {
	case saturated:
		return &o.SaturatedHealth
	case flushed:
		return &o.FlushedHealth
	}
	return &o.NonFiniteHealth
}
