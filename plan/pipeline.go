package plan

// chunkMemory is what a micro-batch takes on a chunk: what its forward pass leaves, and where
// memory is highest in both passes.
type chunkMemory struct {
	kept              int64
	forward, backward peak
}

// pass is one micro-batch going forward or backward through a chunk.
type pass struct {
	chunk    int
	backward bool
}

// schedule calls do with the passes of a stage in their order: 1F1B (Narayanan et al., arXiv
// 2104.04473), interleaved where there are several chunks.
func schedule(l Layout, stage, batches int, do func(pass)) {
	order := chunkOrder(l, batches)
	warm := l.Pipeline - stage - 1
	if l.Virtual > 1 {
		warm = 2*warm + (l.Virtual-1)*l.Group
	}
	warm = min(warm, len(order))
	for _, c := range order[:warm] {
		do(pass{c, false})
	}
	for i, c := range order {
		if warm+i < len(order) {
			do(pass{order[warm+i], false})
		}
		do(pass{l.Virtual - 1 - c, true})
	}
}

// chunkOrder lists the chunks that micro-batches go forward through: each does Group of them
// in turn.
func chunkOrder(l Layout, batches int) []int {
	// After a few rounds the sequence repeats itself.
	batches = min(batches, 4*l.Group)
	order := make([]int, 0, batches*l.Virtual)
	for done := 0; done < batches; done += l.Group {
		for c := range l.Virtual {
			for range min(l.Group, batches-done) {
				order = append(order, c)
			}
		}
	}
	return order
}

// inFlight walks the schedule of a stage. It returns what is live at the highest moment, and
// how many micro-batches have gone forward through a chunk and not yet back.
func inFlight(l Layout, stage, batches int, chunks []chunkMemory) (highest peak, flying int) {
	var now int64
	count := 0
	see := func(p peak) {
		p.kept += now
		if p.kept+p.live > highest.kept+highest.live {
			highest = p
		}
	}
	schedule(l, stage, batches, func(p pass) {
		c := chunks[p.chunk]
		if p.backward {
			now -= c.kept
			count--
			see(c.backward)
			return
		}
		see(c.forward)
		now += c.kept
		count++
		flying = max(flying, count)
	})
	return highest, flying
}
