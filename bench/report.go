package bench

// Report is what a [Suite] has measured.
type Report struct {
	Cases       int          `json:"cases"`          // of the suite
	Done        int          `json:"done"`           // of these, before it was stopped
	Seconds     float64      `json:"secondsPerCase"` // at least
	Limits      Limits       `json:"limits"`
	Products    []Product    `json:"products"`
	Conversions []Conversion `json:"conversions"`
}

// Product is the rates of a product, in GFLOP/s.
type Product struct {
	Shape   Shape   `json:"shape"`
	By      string  `json:"by"`    // [Octavo] or one of [Peers]
	Level   string  `json:"level"` // of octavo's kernels; "" for a peer
	Packed  bool    `json:"packed"`
	Workers int     `json:"workers"`
	Runs    int     `json:"runs"`
	Best    float64 `json:"best"`
	Median  float64 `json:"median"`

	Intensity float64 `json:"intensity"` // of the product in FP8, in FLOP per byte
	Roof      float64 `json:"roof"`      // at this intensity; 0 if it was not measured, and for a peer
}

// OfRoof returns the best rate in percent of the roof, or 0 if there is none.
func (p Product) OfRoof() float64 {
	if p.Roof == 0 {
		return 0
	}
	return 100 * p.Best / p.Roof
}

// Conversion is the rates of a conversion on one processor, in GB/s of the float32
// side.
type Conversion struct {
	Name     string  `json:"name"`
	Level    string  `json:"level"` // "" for what octavo is compared with
	Elements int     `json:"elements"`
	Runs     int     `json:"runs"`
	Best     float64 `json:"best"`
	Median   float64 `json:"median"`
}

func (r *Report) addProduct(s Shape, c Case, t Timing) {
	p := Product{Shape: s, By: c.By, Packed: c.Packed, Workers: c.Workers, Runs: t.Runs, Intensity: s.Intensity()}
	p.Best, p.Median = t.Rates(s.FLOP())
	if c.By == Octavo {
		p.Level = c.Level.String()
	}
	r.Products = append(r.Products, p)
	r.Done++
}

func (r *Report) addConversion(c Case, n int, t Timing) {
	result := Conversion{Name: c.Name, Elements: n, Runs: t.Runs}
	result.Best, result.Median = t.Rates(4 * float64(n))
	if c.By == Octavo {
		result.Level = c.Level.String()
	}
	r.Conversions = append(r.Conversions, result)
	r.Done++
}

// finish puts the roofs in, once the machine is known.
func (r *Report) finish() {
	for i := range r.Products {
		p := &r.Products[i]
		if p.Shape.Recipe.of().integer {
			continue // there is no roof of theirs
		}
		p.Roof = r.Limits.Roof(p.Level, p.Workers, p.Intensity)
	}
}
