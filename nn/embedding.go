package nn

// embedding looks rows of its table, [vocab, dim], up by token.
type embedding struct {
	table  *Param
	tokens []int32
	out    []float32
}

// forward returns a [len(tokens), dim] slice that stays valid until the next
// call. It keeps a copy of tokens, which must be in range.
func (e *embedding) forward(tokens []int32) []float32 {
	e.tokens = append(e.tokens[:0], tokens...)
	dim := e.table.Cols
	out := sized(&e.out, len(tokens)*dim)
	for i, t := range tokens {
		copy(out[i*dim:(i+1)*dim], e.table.Value[int(t)*dim:])
	}
	return out
}

// backward adds dy to the gradient of the rows looked up, in order: a token may
// occur many times.
func (e *embedding) backward(dy []float32) {
	dim := e.table.Cols
	for i, t := range e.tokens {
		grad := e.table.Grad[int(t)*dim : (int(t)+1)*dim]
		addTo(grad, grad, dy[i*dim:(i+1)*dim])
	}
}
