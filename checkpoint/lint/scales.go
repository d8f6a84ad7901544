package lint

import (
	"fmt"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/safetensors"
)

// defect is what is wrong with the scales of codes that no scheme reads.
type defect uint8

const (
	missing  defect = iota // nothing of a name that scales have
	misnamed               // something of a name that the declared layout does not have
	badType
	badGrid
)

// diagnosis says of codes without scales what is near.
type diagnosis struct {
	defect  defect
	tensors []string
	what    string
}

// diagnose compares codes with the schemes that the configuration declares, or with all.
func (m *model) diagnose(e checkpoint.Entry) diagnosis {
	schemes := m.wanted
	if len(schemes) == 0 {
		schemes = checkpoint.Schemes()
	}
	best := diagnosis{defect: missing, tensors: []string{e.Name}, what: fmt.Sprintf("%s %v has no scale", e.DType, e.Shape)}
	var absent, present []string
	for _, s := range schemes {
		shape, name, ok := weightOf(s, e)
		if !ok {
			continue
		}
		lacks := false
		for _, r := range []checkpoint.Role{checkpoint.Scales, checkpoint.Outer} {
			own := s.PartName(name, r)
			if own == "" {
				continue
			}
			scale, ok := m.c.Entry(own)
			if !ok {
				if !lacks && !slices.Contains(absent, own) {
					absent = append(absent, own)
				}
				lacks = true
				continue
			}
			present = append(present, own)
			part := s.Parts[r]
			b := s.Block
			if declared, ok := m.c.Config.Block(); ok && s.Resize {
				b = declared
			}
			want, err := part.Shape.Of(shape, b)
			readable := slices.ContainsFunc(part.DTypes, func(d safetensors.DType) bool { return d == scale.DType || d == "" && isValues(scale.DType) })
			switch {
			case !readable && best.defect < badType:
				best = diagnosis{badType, []string{own, e.Name}, fmt.Sprintf("%s is %s", own, scale.DType)}
			case readable && err == nil && !slices.Equal(scale.Shape, want):
				if best.defect < badGrid {
					best = diagnosis{badGrid, []string{own, e.Name}, fmt.Sprintf("%s is %v: want %v%s", own, scale.Shape, want, m.gridHint(scale.Shape, want, shape))}
				}
			}
		}
	}
	if best.defect != missing {
		return best
	}
	if others := m.otherScales(e.Name, present); len(others) > 0 {
		what := fmt.Sprintf("no layout has %s with codes in %s", strings.Join(others, " and "), e.DType)
		if len(m.wanted) > 0 && len(absent) > 0 {
			what = fmt.Sprintf("there is %s: want %s", strings.Join(others, " and "), strings.Join(absent, " or "))
		}
		return diagnosis{misnamed, append(others, e.Name), what}
	}
	if len(m.wanted) > 0 && len(absent) > 0 {
		best.what = "there is no " + strings.Join(absent, " or ")
	}
	return best
}

// weightOf returns the shape and the name of the weight that codes are in a scheme.
func weightOf(s *checkpoint.Scheme, codes checkpoint.Entry) (shape []int, name string, ok bool) {
	part := s.Parts[checkpoint.Codes]
	name, ok = strings.CutSuffix(codes.Name, part.Suffix)
	switch {
	case ok:
		name += ".weight"
	case s.Stacks && strings.HasPrefix(part.Suffix, ".weight"):
		name, ok = strings.CutSuffix(codes.Name, strings.TrimPrefix(part.Suffix, ".weight"))
	}
	if !ok || !slices.Contains(part.DTypes, codes.DType) || len(codes.Shape) < 2 {
		return nil, "", false
	}
	shape = slices.Clone(codes.Shape)
	last := len(shape) - 1
	switch part.Shape {
	case checkpoint.Nibbles:
		shape[last] *= 2
	case checkpoint.Chunks:
		if len(shape) < 3 {
			return nil, "", false
		}
		shape[last-1] *= 32
		shape = shape[:last]
	}
	return shape, name, true
}

// gridHint says how a grid came to be wrong, if that can be told.
func (m *model) gridHint(got, want, shape []int) string {
	if len(got) < 2 || len(got) != len(want) {
		return ""
	}
	last := len(got) - 1
	switch {
	case got[last] == want[last-1] && got[last-1] == want[last]:
		return ", it is transposed"
	case got[last-1] == want[last-1] && 2*got[last] >= want[last] && 2*got[last] <= want[last]+1:
		return ", it has half of the columns: the packed shape was taken for that of the weight"
	case got[last-1] <= want[last-1] && got[last] <= want[last] && got[last-1]+1 >= want[last-1] && got[last]+1 >= want[last]:
		return ", sizes were rounded down"
	case last == 2 && shape[0] > 1:
		return ", each expert has a grid of its own"
	}
	return ""
}

// otherScales returns scales of the module of codes but for those of given names.
func (m *model) otherScales(codes string, but []string) (others []string) {
	module := moduleOf(codes)
	for _, s := range scaleSuffixes {
		if strings.HasPrefix(s, ".input") || s == ".activation_scale" || s == ".scale_input" {
			continue
		}
		name := module + s
		if _, ok := m.c.Entry(name); ok && !slices.Contains(but, name) {
			others = append(others, name)
		}
	}
	return others
}

// faulty is the check for codes with a fault.
func faulty(kind defect) func(m *model, found func(Finding)) {
	return func(m *model, found func(Finding)) {
		if !m.known {
			return
		}
		for _, e := range m.unscaled() {
			if d := m.diagnose(e); d.defect == kind {
				found(Finding{File: e.File, Tensors: d.tensors, What: d.what})
			}
		}
	}
}

// checkScaleMisnamed has, beside codes that no scheme reads, those in a scheme that the
// configuration does not declare.
func checkScaleMisnamed(m *model, found func(Finding)) {
	faulty(misnamed)(m, found)
	if len(m.wanted) == 0 {
		return
	}
	for _, w := range m.quantized() {
		if slices.Contains(m.wanted, w.Scheme) || m.wantsName(w) {
			continue
		}
		own := w.Parts[checkpoint.Scales]
		var want []string
		for _, s := range m.wanted {
			if name := s.PartName(w.Name, checkpoint.Scales); name != "" && !slices.Contains(want, name) {
				want = append(want, name)
			}
		}
		found(Finding{File: own.File, Tensors: []string{own.Name, w.Parts[checkpoint.Codes].Name}, What: fmt.Sprintf("want %s", strings.Join(want, " or "))})
	}
}

// orphans returns scales that are no part of a weight: without codes of their module, or
// beside the scales that are used.
func (m *model) orphans(beside bool, found func(Finding)) {
	if !m.known {
		return
	}
	for _, e := range m.entries {
		module, suffix, ok := scaleOf(e.Name)
		if w := m.c.Weight(e.Name); !ok || w == nil || w.Scheme != nil || isValues(e.DType) && (suffix == ".scale" || suffix == "_scales") {
			continue // such as a norm's .scale
		}
		codes, state := m.codesOf(module)
		switch {
		case state == scaled && beside && !strings.Contains(suffix, "input") && suffix != ".activation_scale":
			found(Finding{File: e.File, Tensors: []string{e.Name, codes.Parts[checkpoint.Scales].Name}, What: "the weight has both"})
		case state == values && !beside:
			found(Finding{File: e.File, Tensors: []string{e.Name, codes.Name}, What: fmt.Sprintf("%s is %s", codes.Name, codes.Parts[checkpoint.Codes].DType)})
		case state == nothing && !beside:
			found(Finding{File: e.File, Tensors: []string{e.Name}, What: "there is no weight of " + module})
		}
	}
}

// state is what a module has.
type state uint8

const (
	nothing  state = iota
	values         // that are not quantized
	unscaled       // codes whose scales no scheme finds
	scaled
)

// codesOf returns the weight of a module.
func (m *model) codesOf(module string) (*checkpoint.Weight, state) {
	w := m.c.Weight(module + ".weight")
	for _, s := range append([]string{""}, codeSuffixes...) {
		if w == nil {
			w = m.c.Weight(module + s)
		}
	}
	switch {
	case w == nil:
		return nil, nothing
	case w.Scheme != nil:
		return w, scaled
	case isValues(w.Parts[checkpoint.Codes].DType):
		return w, values
	}
	return w, unscaled
}

func checkOrphans(m *model, found func(Finding))    { m.orphans(false, found) }
func checkScaleTwice(m *model, found func(Finding)) { m.orphans(true, found) }

// checkInputMissing has weights without the input scale that the configuration promises.
func checkInputMissing(m *model, found func(Finding)) {
	if !m.static() {
		return
	}
	for _, w := range m.quantized() {
		if s := w.Scheme; !w.Has(checkpoint.Input) && !s.Parts[checkpoint.Input].None() {
			found(Finding{File: w.Parts[checkpoint.Codes].File, Tensors: []string{w.Parts[checkpoint.Codes].Name}, What: "there is no " + s.PartName(w.Name, checkpoint.Input)})
		}
	}
}

// static reports whether the configuration says that inputs have scales that are stored.
func (m *model) static() bool {
	q := m.declaration()
	if text(q, "activation_scheme") == "static" {
		return true
	}
	if algo := text(q, "quant_algo"); algo == "FP8" || algo == "NVFP4" {
		return true
	}
	groups, _ := q["config_groups"].(map[string]any)
	for _, group := range groups {
		object, _ := group.(map[string]any)
		input, _ := object["input_activations"].(map[string]any)
		if input == nil || input["dynamic"] == true {
			return false
		}
	}
	return m.c.Config.Method() == compressedTensors && len(groups) > 0
}

// checkStraddle has blocks of several rows that cross the bounds of parts. On one device
// loaders give every part of its own name whole blocks: then only stacks that hold gate and
// up together can be wrong.
func checkStraddle(m *model, found func(Finding)) {
	for _, w := range m.quantized() {
		_, rows, cols := w.Dims()
		module := moduleOf(w.Name)
		e := w.Parts[checkpoint.Codes]
		if isGrid(w.Block) && m.stacksGate(w, module) {
			if half := rows / 2; half%w.Block.Rows != 0 {
				found(Finding{File: e.File, Tensors: []string{e.Name}, What: fmt.Sprintf("gate and up have %d rows each, in blocks of %d: a block has rows of both", half, w.Block.Rows)})
			}
		}
		if m.parallel == 1 {
			continue
		}
		n, size, what := rows, w.Block.Rows, "rows"
		if rowParallel(module) {
			n, size, what = cols, w.Block.Cols, "columns"
		}
		if size > 1 && (n%m.parallel != 0 || n/m.parallel%size != 0) {
			found(Finding{Severity: Error, File: e.File, Tensors: []string{e.Name}, What: fmt.Sprintf("%d %s over %d devices, in blocks of %d", n, what, m.parallel, size)})
		}
	}
}

// checkRagged tells blocks that readers refuse from those of which a reader that derives the block
// from the shapes takes another.
func checkRagged(m *model, found func(Finding)) {
	derived, refused := Finding{}, Finding{}
	for _, w := range m.quantized() {
		_, rows, cols := w.Dims()
		gridRows, gridCols := w.Grid()
		height, width := w.Block.Extents(rows, cols)
		if w.Len() == 0 || rows%height == 0 && cols%width == 0 {
			continue
		}
		e := w.Parts[checkpoint.Codes]
		f, what := &refused, fmt.Sprintf("%d rows and %d columns in blocks of %d x %d", rows, cols, height, width)
		if rows%gridRows == 0 && cols%gridCols == 0 {
			f = &derived
			what += fmt.Sprintf(": rows // grid is %d, columns // grid is %d", rows/gridRows, cols/gridCols)
		}
		if f.What == "" {
			f.File, f.What = e.File, what
		}
		f.Tensors = append(f.Tensors, e.Name)
	}
	for _, f := range []Finding{derived, refused} {
		if len(f.Tensors) > 0 {
			found(f)
		}
	}
}

// stacksGate reports whether rows of a stack of experts are those of gate and up. Models such
// as gpt-oss have them as columns, which is seen where down_proj's are not half as many.
func (m *model) stacksGate(w *checkpoint.Weight, module string) bool {
	experts, ok := strings.CutSuffix(module, "gate_up_proj")
	if !ok || len(w.Shape) < 3 {
		return false
	}
	_, rows, _ := w.Dims()
	down := m.c.Weight(experts + "down_proj")
	return down == nil || len(down.Shape) == 0 || 2*down.Shape[len(down.Shape)-1] == rows
}

// rowParallel reports whether loaders split the columns of a module among devices, rather
// than its rows.
func rowParallel(module string) bool {
	name := module[strings.LastIndexByte(module, '.')+1:]
	return slices.Contains([]string{"o_proj", "down_proj", "w2", "out_proj", "wo"}, name)
}
