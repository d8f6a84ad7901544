package quantizer

import (
	"encoding/json"
	"strconv"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle/fault"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// Verdict is what is said of a quantizer's result. Its JSON is stable: keys are added, never
// changed.
type Verdict struct {
	Pass    bool   `json:"pass"`
	Outcome string `json:"outcome"` // "pass", "fail" or "undecided"
	Name    string `json:"name"`    // of the codes
	Rows    int    `json:"rows"`
	Cols    int    `json:"cols"`
	Type    string `json:"type"` // of the values

	Recipe   scaling.Recipe  `json:"-"`
	Profile  scaling.Profile `json:"profile"` // that is claimed, as what follows
	Format   fp8.Format      `json:"format"`
	Block    tensor.Block    `json:"block"`
	Rounding string          `json:"rounding"`

	Layout fault.GridLayout `json:"layout"` // in which scales lie

	Outer  Count `json:"outer"`
	Scales Count `json:"scales"`
	Codes  Count `json:"codes"`
	// UnderStored counts codes by what they have to be under the scales that are stored,
	// where those are wrong.
	UnderStored *Count `json:"underStored,omitempty"`

	FirstOuter *wrongOuter `json:"firstOuter,omitempty"`
	FirstScale *wrongScale `json:"firstScale,omitempty"`
	FirstCode  *wrongCode  `json:"firstCode,omitempty"`

	Undefined []string  `json:"undefined,omitempty"` // why something is undecided
	Findings  []Finding `json:"findings,omitempty"`  // what explains what is wrong
	Interval  *Interval `json:"interval,omitempty"`  // of scales that codes admit
	Random    *Random   `json:"random,omitempty"`    // of codes that were rounded stochastically

	rounding fp8.Rounding
	job      *job
}

// Count counts what has the bits that are claimed.
type Count struct {
	All       int `json:"all"`
	Wrong     int `json:"wrong"`
	Undecided int `json:"undecided"`
}

// Number is a number, which may be NaN or infinite: text in JSON then.
type Number float64

func number64(x float32) Number { return Number(x) }

// MarshalJSON writes a number, or a text.
func (n Number) MarshalJSON() ([]byte, error) {
	if n-n != 0 {
		return json.Marshal(strconv.FormatFloat(float64(n), 'g', -1, 64))
	}
	return json.Marshal(float64(n))
}

// String is the shortest text of a float32.
func (n Number) String() string { return strconv.FormatFloat(float64(n), 'g', -1, 32) }

// wrongOuter is an outer scale.
type wrongOuter struct {
	Number int    `json:"number"`
	Got    Number `json:"got"`
	Want   Number `json:"want"`
	Amax   Number `json:"amax"`
}

// wrongScale is the scale of a block.
type wrongScale struct {
	Block string `json:"block"`
	Got   Number `json:"got"`
	Want  Number `json:"want"`
	Amax  Number `json:"amax"`
}

// wrongCode is the code of an element.
type wrongCode struct {
	Row       int    `json:"row"`
	Col       int    `json:"col"`
	X         Number `json:"x"`
	Got       byte   `json:"got"`
	Want      byte   `json:"want"`
	GotValue  Number `json:"gotValue"` // before it is scaled
	WantValue Number `json:"wantValue"`
	Scale     Number `json:"scale"` // that is stored
	WantScale Number `json:"wantScale"`
}

// Change is one part of a quantizer that is not as it is claimed.
type Change struct {
	Kind  Kind   `json:"kind"`
	Words string `json:"words"`
}

// Finding is a fault that explains a part of what is wrong: changes that give its bits.
type Finding struct {
	Changes []Change   `json:"changes"`
	Others  [][]Change `json:"others,omitempty"` // which give the same bits
	Where   string     `json:"where,omitempty"`  // "": wherever it makes a difference
	Weak    bool       `json:"weak,omitempty"`   // chance may look the same

	Outer        bool    `json:"outer,omitempty"` // it explains outer scales that are wrong
	Scales       int     `json:"scales"`          // wrong ones that it explains
	Codes        int     `json:"codes"`           // likewise
	Missed       int     `json:"missed"`          // codes and scales that are wrong in another way
	Contradicted int     `json:"contradicted"`
	Evidence     float64 `json:"evidence"` // in bits
}

// wrong reports whether something is.
func (v *Verdict) wrong() bool { return v.Outer.Wrong+v.Scales.Wrong+v.Codes.Wrong > 0 }

// decide sets the outcome.
func (v *Verdict) decide() {
	r := v.Random
	switch {
	case v.wrong() || r != nil && r.Alarm != "":
		v.Outcome = verdict.Fail
	case v.Scales.Undecided+v.Codes.Undecided > 0 || r != nil && r.Blind:
		v.Outcome = verdict.Undecided
	default:
		v.Pass, v.Outcome = true, verdict.Pass
	}
}
