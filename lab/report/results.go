package report

// Results are reports without their charts and tables, for a program.
type Results struct {
	Length Length `json:"length"`
	Seed   uint64 `json:"seed"`
	Tally
	Experiments []Summary `json:"experiments"`
}

// Summary is a report without its charts and tables.
type Summary struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	Claim string `json:"claim"`
	Tally
	Declaration *Plan `json:"declaration,omitempty"`

	Goals    []Goal   `json:"goals"`
	Findings []string `json:"findings"`
	Limits   []string `json:"limits"`
	Seconds  float64  `json:"seconds"`
}

// ResultsOf returns the results of the reports of a run, which has one length and one seed.
func ResultsOf(length Length, seed uint64, reports ...*Report) Results {
	all := Results{Length: length, Seed: seed, Tally: TallyOf(reports...), Experiments: []Summary{}}
	for _, r := range reports {
		all.Experiments = append(all.Experiments, r.summary())
	}
	return all
}

func (r *Report) summary() Summary {
	var findings []string
	for _, f := range r.Findings {
		findings = append(findings, f.String())
	}
	return Summary{r.Name, r.Title, r.Claim, TallyOf(r), r.Plan, r.Goals, findings, r.Limits, r.Time.Seconds()}
}
