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

// Changes compares ratios with those of an earlier run. One has become worse, or
// better, if the two intervals have nothing in common. It also returns how many ratios
// both runs know, of which the others are as they were as far as anybody can tell.
func Changes(before, now []RatioEntry) (worse, better []Change, both int) {
	type key struct {
		what      string
		workers   int
		level, to string
		packed    bool
	}
	keyOf := func(r RatioEntry) key { return key{r.What, r.Workers, r.Level, r.To, r.Packed} }
	earlier := make(map[key]Ratio)
	for _, r := range before {
		earlier[keyOf(r)] = r.Ratio
	}
	for _, r := range now {
		old, ok := earlier[keyOf(r)]
		if !ok || !old.Known() || !r.Known() {
			continue
		}
		both++
		switch {
		case r.High < old.Low:
			worse = append(worse, Change{r, old})
		case r.Low > old.High:
			better = append(better, Change{r, old})
		}
	}
	return worse, better, both
}
