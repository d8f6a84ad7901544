package inspect

import (
	"math"
	"slices"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/loss"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
)

// Report says what is in some files and what FP8 would do to it.
type Report struct {
	Files   []FileReport
	Format  string // that the recipes encode to
	Layout  string // that the model's configuration declares; "" if none
	Totals  Totals
	Ranking []RankedRecipe  // best first; none if all matrices are codes and no recipe was asked for
	Judge   scaling.Profile // the first of Ranking, under which tensors are compared; "" if there is none
	Medians Medians         // of matrices under Judge
	Advice  Advice
	Tensors []TensorReport // in the order of their files

	Selected, All int      // tensors: to be inspected, and in the files
	Problems      []string // that keep codes and scales from being joined, perhaps
	LeftOut       []string // files that lie beside the model and that its index does not name

	format     fp8.Format
	partsAlone bool // there is no matrix but parts of models that are not quantized
}

// FileReport says what a file is.
type FileReport struct {
	Path     string            `json:"file"`
	Metadata map[string]string `json:"metadata"`
	Tensors  int               `json:"tensors"`
	Bytes    int64             `json:"bytes"`
}

// TensorReport says what is in a tensor.
type TensorReport struct {
	File    string            `json:"file,omitempty"` // where there are several
	Name    string            `json:"name"`
	DType   safetensors.DType `json:"dtype"`
	Format  string            `json:"format,omitempty"` // of codes
	Scheme  string            `json:"scheme,omitempty"` // how codes and scales are stored
	Shape   []int             `json:"shape"`
	Bytes   int64             `json:"bytes"`
	Risk    RiskReport        `json:"risk"`
	Values  *ValuesReport     `json:"values,omitempty"`  // of floating-point types
	Scales  *ScalesReport     `json:"scales,omitempty"`  // of codes
	Recipes []RecipeReport    `json:"recipes,omitempty"` // of matrices of values

	NotJudged string `json:"notJudged,omitempty"` // why values were not read

	Stays string `json:"stays,omitempty"` // the part of a model, such as a router, as which a matrix is not quantized

	part                       *checkpoint.Part
	isMatrix, isScale, isCodes bool
	method                     string // of quantization that is not read
	weightShape                []int
	place                      int // in the report
	file                       int // place of its file
	binades                    []int64
	lowest                     int // binade of binades[0], as a power of two
}

// ValuesReport says what values there are: those of codes are dequantized, where their scales
// are known.
type ValuesReport struct {
	Elements int64          `json:"elements"`
	Amax     jsonout.Number `json:"amax"`     // largest finite magnitude
	Crest    jsonout.Number `json:"crest"`    // Amax over the root mean square of finite values; NaN where that is 0
	Others   jsonout.Number `json:"others"`   // root mean square of finite values but the largest; 0 where they are 0, and a millionth of Amax where they are not known to be more
	Smallest jsonout.Number `json:"smallest"` // smallest nonzero magnitude
	Range    jsonout.Number `json:"rangeBits"`
	Zeros    int64          `json:"zeros"`
	NaN      int64          `json:"nan"`
	PosInf   int64          `json:"posInf"`
	NegInf   int64          `json:"negInf"`

	FirstNonFinite *int64 `json:"firstNonFinite,omitempty"` // index, row-major
	Largest        *int64 `json:"largest,omitempty"`        // of codes: how many have the largest finite magnitude
}

func (v *ValuesReport) nonFinite() int64 {
	if v == nil {
		return 0
	}
	return v.NaN + v.PosInf + v.NegInf
}

// ScalesReport describes the scales of a tensor of codes.
type ScalesReport struct {
	Name  string            `json:"name"`
	DType safetensors.DType `json:"dtype"`
	Shape []int             `json:"shape"`
	Min   scaling.Float     `json:"min"` // without those below; NaN if there are no others
	Max   scaling.Float     `json:"max"`

	NaN  *FaultyScales `json:"nan,omitempty"`  // bytes: their blocks are NaN
	None *FaultyScales `json:"none,omitempty"` // that nothing can be multiplied by
}

// RecipeReport says what a recipe would do to a matrix.
type RecipeReport struct {
	Profile         scaling.Profile `json:"profile"`
	Block           string          `json:"block"`
	Saturated       int64           `json:"saturated"`
	Flushed         int64           `json:"flushed"`
	BecameNonFinite int64           `json:"becameNonFinite"` // though finite
	Subnormal       int64           `json:"subnormal"`
	RowError        jsonout.Number  `json:"rowError"`   // the largest of a row: the root of the energy of its error over its own
	BlockError      jsonout.Number  `json:"blockError"` // the same of blocks of 128 values in a row, the mean
	SQNR            jsonout.Number  `json:"sqnrDecibels"`
	ScaleMin        scaling.Float   `json:"scaleMin"`
	ScaleMax        scaling.Float   `json:"scaleMax"`
}

// lost is the share of finite values other than zero that come back as something else
// altogether.
func (t *TensorReport) lost(r *RecipeReport) float64 {
	return float64(r.BecameNonFinite+r.Saturated+r.Flushed) / float64(max(t.Values.Elements-t.Values.Zeros, 1))
}

// under returns what a recipe would do to a matrix, or nil.
func (t *TensorReport) under(p scaling.Profile) *RecipeReport {
	for i := range t.Recipes {
		if t.Recipes[i].Profile == p {
			return &t.Recipes[i]
		}
	}
	return nil
}

// report makes a report of what was measured.
func (j *Job) report(all []*measurement, recipes []scaling.Recipe, asked bool) *Report {
	r := &Report{Format: j.Format.String(), format: j.Format, Selected: len(all)}
	place := map[*Input]int{}
	for i := range j.Inputs {
		in := &j.Inputs[i]
		place[in] = i
		f := FileReport{Path: in.Path, Metadata: in.File.Metadata()}
		for _, info := range in.File.Tensors() {
			f.Tensors++
			f.Bytes += info.Bytes()
		}
		r.All += f.Tensors
		r.Problems = append(r.Problems, in.problems...)
		r.LeftOut = append(r.LeftOut, in.leftOut...)
		r.Files = append(r.Files, f)
	}
	for _, m := range all {
		if m.finished() {
			t := m.report(recipes)
			t.place, t.file = len(r.Tensors), place[m.input]
			if len(j.Inputs) > 1 {
				t.File = m.input.Path
			}
			r.Tensors = append(r.Tensors, t)
		}
	}
	m := j.Inputs[0].model
	if m.Config.Method() != "" && !slices.ContainsFunc(j.Inputs, func(in Input) bool { return in.model != m }) {
		if found, err := m.Detect(); err == nil && len(found) > 0 {
			r.Layout = found[0].Name
		}
	}
	r.complete(recipes, asked)
	return r
}

// complete adds what follows from the tensors.
func (r *Report) complete(recipes []scaling.Recipe, asked bool) {
	r.Totals = totals(r.Tensors)
	r.Totals.Files = len(r.Files)
	r.partsAlone = !slices.ContainsFunc(r.Tensors, func(t TensorReport) bool { return t.isMatrix && t.part == nil })
	judged := slices.DeleteFunc(slices.Clone(r.Tensors), func(t TensorReport) bool { return !r.judges(&t) })
	if asked || slices.ContainsFunc(judged, func(t TensorReport) bool { return t.Scheme == "" }) {
		r.Ranking = rank(judged, recipes)
	}
	if len(r.Ranking) > 0 {
		r.Judge = r.Ranking[0].Profile
	}
	r.Medians = mediansOf(r.Tensors, r.Judge)
	assess(r.Tensors, r.Judge, r.Medians, halfStepOf(r.format))
	r.Advice = r.advise()
}

// judges reports whether a recipe is judged by a matrix: by those that would be quantized, or by all
// where none would.
func (r *Report) judges(t *TensorReport) bool { return t.isMatrix && (t.part == nil || r.partsAlone) }

func (m *measurement) report(recipes []scaling.Recipe) TensorReport {
	info := m.info
	t := TensorReport{Name: info.Name, DType: info.DType, Shape: info.Shape, Bytes: info.Bytes(), Scales: m.scales, NotJudged: m.why}
	t.classify(m)
	if t.isMatrix && t.Scheme == "" {
		if t.part = checkpoint.Kept(info.Name); t.part != nil {
			t.Stays = t.part.Name
		}
	}
	if !m.plan.readable {
		return t
	}
	found := m.whole
	if found == nil { // no elements
		found = &surveyed{first: -1}
	}
	t.Values = found.report()
	if t.isCodes {
		t.Values.Largest = &found.largest
	}
	t.binades, t.lowest = trim(&found.binades)
	if !t.isMatrix {
		return t
	}
	for i, e := range m.recipes {
		t.Recipes = append(t.Recipes, RecipeReport{
			Profile: recipes[i].Profile, Block: recipes[i].Block.String(),
			Saturated: e.saturated, Flushed: e.flushed, BecameNonFinite: e.becameNonFinite, Subnormal: e.subnormal,
			RowError: jsonout.Number(e.worstRow), BlockError: jsonout.Number(e.blockError()),
			SQNR:     jsonout.Number(loss.SQNR(found.squares, e.noise)),
			ScaleMin: scaling.Float(e.scaleMin), ScaleMax: scaling.Float(e.scaleMax),
		})
	}
	return t
}

// beyond is how many times the others an outlier is, from where sums of squares do not tell how many.
const beyond = 1e6

func (s *surveyed) report() *ValuesReport {
	st := &s.stats
	finite := float64(st.Elements - st.NonFinite())
	v := &ValuesReport{
		Elements: st.Elements, Amax: jsonout.Number(st.Amax), Crest: jsonout.Number(st.Amax / math.Sqrt(s.squares/finite)), Smallest: jsonout.Number(st.Smallest),
		Range: jsonout.Number(math.Log2(st.Amax) - math.Log2(st.Smallest)),
		Zeros: st.Zeros, NaN: st.NaN, PosInf: st.PosInf, NegInf: st.NegInf,
	}
	if float64(st.Zeros) < finite-1 {
		v.Others = jsonout.Number(max(math.Sqrt(max(s.squares-st.Amax*st.Amax, 0)/(finite-1)), st.Amax/beyond))
	}
	if s.first >= 0 {
		v.FirstNonFinite = &s.first
	}
	return v
}

// trim leaves out the binades at both ends that have no values, and returns the power of
// two that the first left begins with.
func trim(all *[256]int64) (binades []int64, lowest int) {
	lo, hi := 0, len(all)
	for lo < hi && all[lo] == 0 {
		lo++
	}
	for hi > lo && all[hi-1] == 0 {
		hi--
	}
	return append(binades, all[lo:hi]...), lo - 127
}
