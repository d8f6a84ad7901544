package plan

import "github.com/octavo-fp8/octavo/internal/pipeline"

// chunkMemory is what a micro-batch takes on a chunk: what its forward pass leaves, and where
// memory is highest in both passes.
type chunkMemory struct {
	kept              int64
	forward, backward peak
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
	// After a few rounds the sequence repeats itself.
	schedule := pipeline.Schedule{
		Ranks: l.Pipeline, Chunks: l.Virtual, Group: l.Group, Micro: min(batches, 4*l.Group),
	}
	for _, p := range schedule.Passes(stage) {
		c := chunks[p.Chunk]
		if p.Backward {
			now -= c.kept
			count--
			see(c.backward)
			continue
		}
		see(c.forward)
		now += c.kept
		count++
		flying = max(flying, count)
	}
	return highest, flying
}
