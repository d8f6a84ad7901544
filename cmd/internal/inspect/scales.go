package inspect

import (
	"fmt"
	"math"

	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/scaling"
)

// FaultyScales are scales that have the same fault.
type FaultyScales struct {
	Count int64  `json:"count"`
	First int    `json:"first"` // index of the first, row-major
	Value string `json:"value"` // of the first
}

// describe says what scales there are, and what is wrong with them.
func (s *ScalesReport) describe(scales *tensorfile.Scales) {
	var sound []float32
	for i, v := range scales.Values {
		switch fault := scales.Defect(i); fault.Kind {
		case tensorfile.NaNScale:
			addFault(&s.NaN, i, fault.Value)
		case tensorfile.NoScale:
			addFault(&s.None, i, fault.Value)
		default:
			sound = append(sound, v)
		}
	}
	if s.Min, s.Max = tensorfile.ScaleRange(sound); len(sound) == 0 && s.faulty() {
		s.Min, s.Max = scaling.Float(math.NaN()), scaling.Float(math.NaN())
	}
}

func addFault(f **FaultyScales, i int, value string) {
	if *f == nil {
		*f = &FaultyScales{First: i, Value: value}
	}
	(*f).Count++
}

// faulty reports whether something is wrong with scales, of which there may be none.
func (s *ScalesReport) faulty() bool { return s != nil && (s.NaN != nil || s.None != nil) }

// faults say what is wrong with scales, and where.
func (s *ScalesReport) faults() (all []string) {
	if !s.faulty() {
		return nil
	}
	for _, f := range []struct {
		of   *FaultyScales
		what string
	}{{s.NaN, "NaN, and so are their blocks"}, {s.None, "no scales"}} {
		if f.of != nil {
			all = append(all, fmt.Sprintf("%s: %d of the scales are %s; the first, scale %d, is %s", textout.Name(s.Name), f.of.Count, f.what, f.of.First, f.of.Value))
		}
	}
	return all
}
