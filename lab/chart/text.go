package chart

// Describe says what the chart shows: its Description, or else one made from the series.
func (c Chart) Describe() string { return newFigure(c).description() }

// Missing says how many points the chart cannot show, and why; nothing if it shows all.
func (c Chart) Missing() []string { return newFigure(c).notes }
