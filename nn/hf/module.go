package hf

import (
	"strings"

	"github.com/octavo-fp8/octavo/nn"
)

// Module returns the name of the module that has a parameter of the model in the checkpoint, by
// itself or with others, and the shape of what it has there. It is "" for a parameter of another model.
func (l *Unread) Module(p *nn.Param) (name string, shape []int) {
	w := l.weights[p].w
	if w == nil {
		return "", nil
	}
	return strings.TrimSuffix(w.Name, ".weight"), w.Shape
}
