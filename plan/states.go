package plan

// addStates counts weights, gradients and the states of the optimizer, all that does not
// depend on the batch.
func (j TrainJob) addStates(st *Stage, layers [][]weight) {
	var gathered int64 // what the largest layer has when it is whole
	shapes := map[[2]int64]bool{}
	for _, layer := range layers {
		var weights, gradients int64
		for _, w := range layer {
			s := j.states(w)
			st.Parameters += s.parameters
			st.Optimizer += s.optimizer
			st.Weights += s.weights
			st.Gradients += s.gradients
			weights += s.wholeWeights
			gradients += s.wholeGradients
			if j.Library.ZeroGradients && (w.kind == linear || w.kind == expertLinear || w.kind == head) {
				out, in, _ := j.Layout.local(w)
				shapes[[2]int64{out, in}] = true
			}
		}
		gathered = max(gathered, weights+gradients)
	}
	st.Workspace += gathered
	for shape := range shapes {
		st.Workspace += half * shape[0] * shape[1]
	}
}

// states are the bytes of a weight on a rank.
type states struct {
	parameters                    int64
	weights, gradients, optimizer int64

	// What there is for a moment where ZeRO divides weights or gradients.
	wholeWeights, wholeGradients int64
}

func (j TrainJob) states(w weight) (s states) {
	l, p := j.Layout, j.Precision
	out, in, count := l.local(w)
	stored := p.weight(w)
	s.parameters = out * in * count
	s.weights = count * stored.Bytes(out, in)
	if p.Columnwise && (w.kind == linear || w.kind == expertLinear) {
		s.weights += count * stored.Bytes(in, out)
	}
	s.gradients = count * p.Gradients.Bytes(out, in)
	s.optimizer = count * (p.Master.Bytes(out, in) + p.Moment1.Bytes(out, in) + p.Moment2.Bytes(out, in))
	among := int64(l.DataParallel() * l.Context)
	if w.split == experts {
		among = int64(l.expertData())
	}
	if l.Zero >= 1 {
		s.optimizer = ceil(s.optimizer, among)
	}
	if l.Zero >= 2 && among > 1 {
		s.wholeGradients, s.gradients = s.gradients, ceil(s.gradients, among)
	}
	if l.Zero >= 3 && among > 1 {
		s.wholeWeights, s.weights = s.weights, ceil(s.weights, among)
	}
	return s
}
