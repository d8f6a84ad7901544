package bench

// RatioEntry is a ratio of a comparison.
type RatioEntry struct {
	What    string `json:"what"`
	Workers int    `json:"workers"`
	RatioTo
}

// Ratios returns those of all comparisons.
func (r *PeerReport) Ratios() []RatioEntry {
	list := []RatioEntry{}
	for _, c := range r.Done {
		for _, ratio := range c.Ratios {
			list = append(list, RatioEntry{c.What, c.Workers, ratio})
		}
	}
	return list
}

// Change is a ratio that is not what it was in an earlier run.
type Change struct {
	RatioEntry
	Before Ratio `json:"before"`
}

// Changes compares ratios with those of an earlier run, to the same kernels of the peers
// and the same formats. One has become worse, or better, if the two intervals are further
// apart than margin times the earlier end, and the ratio of the best rates has changed in
// the same direction. An interval knows only its own run: the margin is for what differs
// between runs of one program, such as pages and the day. It also returns how many ratios
// both runs know, of which the others are as they were as far as anybody can tell.
func Changes(before, now []RatioEntry, margin float64) (worse, better []Change, both int) {
	type key struct {
		what                    string
		workers                 int
		level, to, core, format string
		packed                  bool
	}
	keyOf := func(r RatioEntry) key { return key{r.What, r.Workers, r.Level, r.To, r.Core, r.Format, r.Packed} }
	earlier := make(map[key]RatioTo)
	for _, r := range before {
		earlier[keyOf(r)] = r.RatioTo
	}
	worse, better = []Change{}, []Change{}
	for _, r := range now {
		old, ok := earlier[keyOf(r)]
		if !ok || !old.Known() || !r.Known() {
			continue
		}
		both++
		switch {
		case r.High < old.Low*(1-margin) && r.Best < old.Best:
			worse = append(worse, Change{r, old.Ratio})
		case r.Low > old.High*(1+margin) && r.Best > old.Best:
			better = append(better, Change{r, old.Ratio})
		}
	}
	return worse, better, both
}
