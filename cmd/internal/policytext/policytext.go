// Package policytext says which layers have which policies for their activations.
package policytext

import (
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/nn"
)

// Of lists policies with the layers that have them.
func Of(policies []nn.Policy) string {
	var order []nn.Policy
	layers := map[nn.Policy][]string{}
	for i := 0; i < len(policies); {
		p, end := policies[i], i+1
		for end < len(policies) && policies[end] == p {
			end++
		}
		text := strconv.Itoa(i)
		if end-1 > i {
			text += "-" + strconv.Itoa(end-1)
		}
		if !slices.Contains(order, p) {
			order = append(order, p)
		}
		layers[p], i = append(layers[p], text), end
	}
	var parts []string
	for _, p := range order {
		name := "Layer "
		if l := layers[p]; len(l) > 1 || strings.Contains(l[0], "-") {
			name = "Layers "
		}
		parts = append(parts, name+strings.Join(layers[p], ", ")+": "+p.String())
	}
	return strings.Join(parts, ". ")
}
