package flash

import "github.com/octavo-fp8/octavo/internal/number"

// inBase2 is M in base 2, without the offset that a frame may have put into it.
func (m *model) inBase2(s *state) float32 {
	if !s.any {
		return low32
	}
	switch m.Scores.Frame {
	case Raw, RawContracted:
		return float32(s.max * s.c)
	case Lifted:
		return s.max + m.Offset
	}
	return s.max
}

// frame is M in base 2 and what P is lifted by above it.
func (m *model) frame(s *state) (top, offset float32) {
	if m.Scores.Frame == Lifted {
		return s.max, 0
	}
	return m.inBase2(s), m.Offset
}

// finish divides O by l and the sink, unless that is nil, and takes the logarithm.
func (w *worker) finish(s *state, sink *float32) {
	m := w.m
	if !s.any {
		s.lse2 = low32
		return
	}
	top, offset := m.frame(s)
	l := m.total(s)
	if sink != nil && m.sinkInLSE() {
		l += m.Exp2.Method.exp2(float32(*sink-top) + offset)
		sink = nil
	}
	s.lse2 = top + float32(m.Exp2.Method.log2(l)-m.unless(offsetKept, offset, 0))
	if sink != nil {
		l += m.Exp2.Method.exp2(float32(*sink-top) + offset)
	}
	l = m.unless(unnormalized, l, 1)
	s.divisor = l
	for d, o := range s.out {
		f := w.head.factor[d]
		switch m.Ending {
		case ReciprocalFirst:
			o = float32(o * float32(float32(1/l)*f))
		case Quotient:
			o = float32(o * float32(f/l))
		case ScaleLast:
			o = float32(float32(o*float32(1/l)) * f)
		}
		s.out[d] = number.Canonical(o)
	}
}

// merge adds the splits' outputs by their weights, and returns the log-sum-exp.
func (w *worker) merge(parts []state, sink *float32, out []float32) float32 {
	m := w.m
	exp2, log2 := m.Exp2.Method.exp2, m.Exp2.Method.log2
	any, top := false, low32
	for n := range parts {
		s := &parts[n]
		m.misread(s, n)
		any = any || s.any
		if s.lse2 > top {
			top = s.lse2
		}
	}
	clear(out)
	if !any {
		return low32
	}
	var total float32
	for _, s := range parts {
		total += exp2(s.lse2 - top)
	}
	g := top + log2(total)
	whole := g
	if sink != nil {
		whole = g + log2(1+exp2(*sink-g))
	}
	for n := range parts {
		s := &parts[n]
		s.weight = m.unless(splitMean, exp2(s.lse2-whole), 1/float32(m.splits()))
		weight := s.weight
		for d, o := range s.out {
			out[d] = number.Canonical(out[d] + float32(weight*o))
		}
	}
	if m.sinkInLSE() {
		g = whole
	}
	return m.logSum(g)
}
