package lint

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/tensor"
)

// surveyed calls do for the quantized weights that have been read.
func (m *model) surveyed(do func(w *checkpoint.Weight, st *stats)) {
	for _, w := range m.quantized() {
		if st := m.stats[w]; st != nil && st.scales > 0 {
			do(w, st)
		}
	}
}

// of is a finding at a part of a weight.
func of(w *checkpoint.Weight, r checkpoint.Role, format string, args ...any) Finding {
	e := w.Parts[r]
	return Finding{File: e.File, Tensors: []string{e.Name}, What: fmt.Sprintf(format, args...)}
}

func isScale(x float64) bool { return x > 0 && !math.IsInf(x, 0) }

func checkScaleInvalid(m *model, found func(Finding)) {
	m.surveyed(func(w *checkpoint.Weight, st *stats) {
		if st.bad.count > 0 {
			found(of(w, checkpoint.Scales, "scale %d is %v; %d of %d are NaN, infinite or negative", st.bad.first, st.bad.value, st.bad.count, st.scales))
		}
		if w.Has(checkpoint.Outer) && !isScale(st.outer) {
			found(of(w, checkpoint.Outer, "it is %v", st.outer))
		}
		if w.Has(checkpoint.Input) && !isScale(st.input) {
			found(of(w, checkpoint.Input, "it is %v", st.input))
		}
	})
}

// checkScaleZero warns of the E8M0 byte 0, which is a number, if an unlikely one.
func checkScaleZero(m *model, found func(Finding)) {
	m.surveyed(func(w *checkpoint.Weight, st *stats) {
		if st.zero.count == 0 {
			return
		}
		f := of(w, checkpoint.Scales, "scale %d is %v; so are %d of %d over codes that are not zero", st.zero.first, st.zero.value, st.zero.count, st.scales)
		if hasE8M0(w) {
			f.Severity = Warning
		}
		found(f)
	})
}

// checkOuterEqual compares global scales, and those of inputs, of weights that are fused.
// Those of experts are worse: loaders do not even warn.
func checkOuterEqual(m *model, found func(Finding)) {
	for _, group := range m.groups() {
		for _, r := range []checkpoint.Role{checkpoint.Outer, checkpoint.Input} {
			var names []string
			least, most := math.Inf(1), 0.0
			for _, w := range group {
				st := m.stats[w]
				if st == nil || !w.Has(r) || !w.Has(checkpoint.Outer) {
					continue
				}
				x := st.outer
				if r == checkpoint.Input {
					x = st.input
				}
				if isScale(x) { // others have been found
					names = append(names, w.Parts[r].Name)
					least, most = min(least, x), max(most, x)
				}
			}
			if len(names) < 2 || least == most {
				continue
			}
			f := Finding{File: group[0].Parts[r].File, Tensors: names, What: fmt.Sprintf("%.6g to %.6g: a factor of %.4g", least, most, most/least)}
			if strings.Contains(names[0], "experts.") {
				f.Severity = Error
			}
			found(f)
		}
	}
}

// checkReciprocal looks whether the largest weight that a global scale admits is one that
// models have, and whether that of its reciprocal is.
func checkReciprocal(m *model, found func(Finding)) {
	m.surveyed(func(w *checkpoint.Weight, st *stats) {
		if !w.Has(checkpoint.Outer) || !isScale(st.outer) || st.largest == 0 {
			return
		}
		read, other := 6*st.largest*st.outer, 6*st.largest/st.outer
		if w.Scheme.Divide {
			read, other = other, read
		}
		if !sane(read) && sane(other) {
			found(of(w, checkpoint.Outer, "it is %.6g: weights would be up to %.3g, and %.3g with the reciprocal", st.outer, read, other))
		}
	})
}

// mostWeight is more than the largest magnitude of any weight of a model.
const mostWeight = 1e3

// sane reports whether the largest magnitude of a weight is one that models have.
func sane(x float64) bool { return x >= 1e-4 && x <= mostWeight }

// checkScaleReciprocal looks at codes of eight bits whose scales are numbers: as they are stored
// all weights would be too large for a model, and with the reciprocals they would not.
func checkScaleReciprocal(m *model, found func(Finding)) {
	m.surveyed(func(w *checkpoint.Weight, st *stats) {
		if w.Scheme.Packed() || hasE8M0(w) || st.least == 0 || st.counts == st.scales { // which are bytes
			return
		}
		least := counted(st.scales, "the scale", "the least of %d scales")
		top := float64(w.Scheme.Format.Max())
		if read, other := top*st.least, top/st.least; read > mostWeight && sane(other) {
			found(of(w, checkpoint.Scales, "%s is %.6g: the largest weight under it would be %.3g, and %.3g with the reciprocal", least, st.least, read, other))
		}
	})
}

// Rounded to a power of two a scale leaves the largest code of a block anywhere from half of the
// largest there is up to it: in one of 19 blocks it is that one, and in somewhat more where blocks
// of one size are much alike. Where it is in all of so many, it was the scale's before it was
// rounded.
const (
	fullOfModel  = 8
	fullOfWeight = 16
)

// checkRoundedLate has weights that have enough blocks for themselves, or all of a model that has
// enough. Scales that are numbers must all be powers of two, or be said to be: those of single
// weights may be by chance.
func checkRoundedLate(m *model, found func(Finding)) {
	sized, full := int64(0), int64(0)
	uneven := false
	m.surveyed(func(_ *checkpoint.Weight, st *stats) { uneven = uneven || st.uneven.count > 0 })
	uneven = uneven && text(m.declaration(), "scale_fmt") != "ue8m0"
	powers := func(do func(w *checkpoint.Weight, st *stats)) {
		m.surveyed(func(w *checkpoint.Weight, st *stats) {
			if !w.Scheme.Packed() && (hasE8M0(w) || !uneven) && st.uneven.count == 0 && st.bad.count == 0 && st.sized > 0 {
				do(w, st)
			}
		})
	}
	powers(func(_ *checkpoint.Weight, st *stats) {
		sized += st.sized
		full += st.full
	})
	all := full == sized && sized >= fullOfModel
	powers(func(w *checkpoint.Weight, st *stats) {
		if all || st.full == st.sized && st.sized >= fullOfWeight {
			found(of(w, checkpoint.Codes, "under all %d scales, which are powers of two, the largest code is %g", st.sized, w.Scheme.Format.Max()))
		}
	})
}

// checkBias looks at the exponent in the middle of all of a weight's. A single weight may be
// rather large or small; where the middle of all weights is, bounds are those of models.
func checkBias(m *model, found func(Finding)) {
	all := new(stats)
	about := map[*checkpoint.Weight]float64{}
	m.surveyed(func(w *checkpoint.Weight, st *stats) {
		if hasE8M0(w) && st.exponents[0] < st.scales { // not all zero
			all.merge(st)
			about[w] = float64(st.median()) + math.Log2(float64(w.Scheme.Format.Max()))
		}
	})
	low, high := -30.0, 16.0
	if e := all.median(); e+9 < -20 || e+2 > 8 {
		low, high = -20, 8
	}
	m.surveyed(func(w *checkpoint.Weight, st *stats) {
		if e, ok := about[w]; ok && (e < low || e > high) {
			found(of(w, checkpoint.Scales, "half of the scales are below 2^%d: weights would be about 2^%.0f", st.median()+1, e))
		}
	})
}

func checkOldWriter(m *model, found func(Finding)) {
	q := m.declaration()
	version := text(q, "version")
	if m.c.Config.Method() != compressedTensors || text(q, "format") != "mxfp4-pack-quantized" || version == "" {
		return
	}
	parts := strings.SplitN(version, ".", 3)
	if len(parts) < 2 {
		return
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err1 == nil && err2 == nil && major == 0 && minor < 13 {
		found(Finding{File: checkpoint.ConfigName, What: "version is " + version})
	}
}

func checkNumbers(m *model, found func(Finding)) {
	m.surveyed(func(w *checkpoint.Weight, st *stats) {
		if isValues(w.Parts[checkpoint.Scales].DType) && st.counts == st.scales {
			found(of(w, checkpoint.Scales, "all %d scales are whole numbers from 90 to 140", st.scales))
		}
	})
}

func checkPowersOfTwo(m *model, found func(Finding)) {
	if text(m.declaration(), "scale_fmt") != "ue8m0" {
		return
	}
	m.surveyed(func(w *checkpoint.Weight, st *stats) {
		if isValues(w.Parts[checkpoint.Scales].DType) && st.uneven.count > 0 {
			found(of(w, checkpoint.Scales, "scale %d is %.6g; %d of %d are no powers of two", st.uneven.first, st.uneven.value, st.uneven.count, st.scales))
		}
	})
}

// checkPowersUndeclared has models of at least a few scales, all of them powers of two.
func checkPowersUndeclared(m *model, found func(Finding)) {
	q := m.declaration()
	if m.c.Config.Method() != "fp8" || q["scale_fmt"] != nil {
		return
	}
	scales, uneven := int64(0), int64(0)
	m.surveyed(func(w *checkpoint.Weight, st *stats) {
		if w.Parts[checkpoint.Scales].DType == safetensors.F32 && isGrid(w.Block) {
			scales += st.scales
			uneven += st.uneven.count + st.bad.count
		}
	})
	if scales >= 16 && uneven == 0 {
		found(Finding{File: checkpoint.ConfigName, What: fmt.Sprintf("all %d scales are powers of two", scales)})
	}
}

func checkCodesNaN(m *model, found func(Finding)) {
	m.surveyed(func(w *checkpoint.Weight, st *stats) {
		if n := st.notNumbers; n.count > 0 {
			found(of(w, checkpoint.Codes, "element %d is NaN; so are %d in all", n.first, n.count))
		}
	})
}

// checkCodesLow looks at weights that loaders fuse together where each has one scale: that of
// the largest may have been given to all.
func checkCodesLow(m *model, found func(Finding)) {
	shared := map[*checkpoint.Weight]bool{}
	for _, group := range m.groups() {
		if slices.ContainsFunc(group, func(w *checkpoint.Weight) bool { return m.stats[w] != nil && m.stats[w].top >= half }) {
			for _, w := range group {
				shared[w] = w.Block == tensor.Block{}
			}
		}
	}
	m.surveyed(func(w *checkpoint.Weight, st *stats) {
		if st.low.count > 0 && !shared[w] {
			found(of(w, checkpoint.Codes, "under scale %d the largest code is %.4g; so it is under %d of %d scales", st.low.first, st.low.value, st.low.count, st.units))
		}
	})
}

func checkCodesClipped(m *model, found func(Finding)) {
	m.surveyed(func(w *checkpoint.Weight, st *stats) {
		if c := st.clipped; c.count > 0 {
			found(of(w, checkpoint.Codes, "under scale %d %.1f%% of the codes are the largest; so it is under %d of %d scales", c.first, 100*c.value, c.count, st.units))
		}
	})
}
