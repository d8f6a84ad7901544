package report

// Plan is the declaration of an experiment, as far as a page shows it beside the goals.
type Plan struct {
	Date    string   `json:"declared"`
	SHA256  string   `json:"sha256"` // of declaration.toml
	Known   string   `json:"known"`  // before it was declared
	Changes []Change `json:"changes"`
}

// Change is what of a declaration is not as it was when it was first committed.
type Change struct {
	Date string   `json:"date"`
	Of   []string `json:"of"` // names of goals
	What string   `json:"what"`
	Why  string   `json:"why"`
	Seen bool     `json:"seen"` // a result was known by then
}

// Hypotheses returns the goals that are not controls.
func (r *Report) Hypotheses() []Goal { return r.goals(false) }

// Controls returns the goals that must be caught.
func (r *Report) Controls() []Goal { return r.goals(true) }

func (r *Report) goals(controls bool) (list []Goal) {
	for _, g := range r.Goals {
		if g.isControl() == controls {
			list = append(list, g)
		}
	}
	return list
}

// Open returns the goals that the run could not decide, and those that it has too little for.
func (r *Report) Open() (list []Goal) {
	for _, g := range r.Goals {
		if g.Undecided != "" {
			list = append(list, g)
		}
	}
	return list
}
