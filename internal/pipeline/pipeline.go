// Package pipeline is the order in which stages of a pipeline run micro-batches forward and
// backward.
package pipeline

// Pass is one micro-batch going forward or backward through one of a rank's chunks of layers.
type Pass struct {
	Backward     bool
	Chunk, Micro int
}

// Schedule is how ranks that have Chunks stages each run Micro micro-batches: each chunk runs
// Group of them, as many as ranks at least, and then the next chunk does. A rank runs one more
// forward than there are stages from here on, and then one backward for each forward: 1F1B
// (PipeDream-Flush, Narayanan et al., arXiv 2006.09503), which is interleaved where there are
// several chunks (Megatron-LM, arXiv 2104.04473). With AllForward it runs all forward and then
// all backward (GPipe, arXiv 1811.06965).
type Schedule struct {
	Ranks, Chunks, Group, Micro int
	AllForward                  bool
}

// Passes returns what a rank does, in order.
func (s Schedule) Passes(rank int) (all []Pass) {
	var forward, backward []Pass
	for first := 0; first < s.Micro; first += s.Group {
		for chunk := range s.Chunks {
			for micro := first; micro < min(first+s.Group, s.Micro); micro++ {
				forward = append(forward, Pass{false, chunk, micro})
				backward = append(backward, Pass{true, s.Chunks - 1 - chunk, micro})
			}
		}
	}
	ahead := len(forward)
	if !s.AllForward {
		ahead = s.Ranks - 1 - rank
		if s.Chunks > 1 {
			ahead = 2*ahead + (s.Chunks-1)*s.Group
		}
		ahead = min(ahead, len(forward))
	}
	all = append(all, forward[:ahead]...)
	for i, b := range backward {
		if next := ahead + i; next < len(forward) {
			all = append(all, forward[next])
		}
		all = append(all, b)
	}
	return all
}
