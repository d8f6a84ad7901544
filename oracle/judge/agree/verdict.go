package agree

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/jsonfloat"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/scaling"
)

// Verdict is what was found of a layer. Its JSON is stable: keys are added, never changed.
type Verdict struct {
	Outcome string `json:"outcome"` // "pass", "fail" or "undecided"
	Why     string `json:"why,omitempty"`

	Claim  string `json:"claim"`
	Input  string `json:"input"`  // what is claimed of the input
	Weight string `json:"weight"` // what is claimed of the weight
	Sums   string `json:"sums,omitempty"`
	// InputOf and Of are the types of the input and of the output.
	InputOf Type `json:"inputType"`
	Of      Type `json:"outputType"`
	Tokens  int  `json:"tokens"`
	In      int  `json:"in"`
	Out     int  `json:"out"`

	// Looked is the number of elements that were compared with the claim, Outside that of
	// those outside of their bounds, Largest the largest error over its bound, and Pairs the
	// number of elements by which candidates competed.
	Looked  int              `json:"looked"`
	Outside int              `json:"outside"`
	Largest jsonfloat.Number `json:"largest"`
	Pairs   int              `json:"pairs"`

	// WrongTokens and WrongColumns are how many of those have an element outside.
	WrongTokens  int `json:"wrongTokens"`
	WrongColumns int `json:"wrongColumns"`

	// Explained are the candidates that explain all elements that were looked at: if several,
	// this output cannot tell them apart. Alike are those that fit a right output as well.
	Explained []Explanation `json:"explained,omitempty"`
	Alike     []Explanation `json:"alike,omitempty"`

	input, weight Treatment
	candidates    int
}

// Explanation is what an engine may have done in place of what it claims.
type Explanation struct {
	Kind   Kind   `json:"kind"`
	Text   string `json:"text"`
	Input  string `json:"input"`
	Weight string `json:"weight"`
	// Explained of so many elements of pairs that are outside are those of the candidate.
	Explained int `json:"explained"`
	Of        int `json:"of"`
	// Same says that what was looked at is to the bit what is claimed.
	Same bool `json:"same,omitempty"`

	input, weight Treatment
}

// Treatments returns what becomes of the operands.
func (e *Explanation) Treatments() (input, weight Treatment) { return e.input, e.weight }

// Treatments returns what is claimed of the operands.
func (v *Verdict) Treatments() (input, weight Treatment) { return v.input, v.weight }

// Right reports whether the layer is what is claimed.
func (v *Verdict) Right() bool { return v.Outcome == verdict.Pass }

// Word is "right", "wrong" or "undecided".
func (v *Verdict) Word() string {
	switch v.Outcome {
	case verdict.Pass:
		return "right"
	case verdict.Fail:
		return "wrong"
	}
	return "undecided"
}

// mostNamed is how many explanations a sentence names.
const mostNamed = 4

// Causes says what explains an output that is not right, a sentence for each kind; or that
// nothing does.
func (v *Verdict) Causes() (texts []string) {
	if v.Right() {
		return nil
	}
	for i, all := 0, v.Explained; i < len(all); {
		to := i + 1
		for to < len(all) && all[to].Kind == all[i].Kind {
			to++
		}
		texts = append(texts, groupText(all[i:to]))
		i = to
	}
	switch {
	case v.Outcome == verdict.Undecided && texts == nil:
		return []string{v.Why}
	case v.Outcome == verdict.Undecided:
		texts[0] = v.Why + ": " + texts[0]
	case texts == nil:
		return []string{fmt.Sprintf("nothing that is known explains it: %d candidates were tried", v.candidates)}
	}
	return texts
}

func groupText(all []Explanation) string {
	if all[0].Kind == "sums" {
		var each []string
		for _, e := range all {
			each = append(each, strings.TrimPrefix(e.Text, sumsText))
		}
		return sumsText + "another unit (" + alternatives(each) + ")"
	}
	// Profiles that differ in nothing else that is said are listed together.
	var texts []string
	profiles := map[string][]string{}
	for _, e := range all {
		p := e.profile()
		of := func(text string) string { return strings.Replace(text, " "+p, " "+anyProfile, 1) }
		text := "input " + of(e.Input) + "; weight " + of(e.Weight)
		if profiles[text] == nil {
			texts = append(texts, text)
		}
		if !slices.Contains(profiles[text], p) {
			profiles[text] = append(profiles[text], p)
		}
	}
	for i, text := range texts {
		texts[i] = strings.ReplaceAll(text, anyProfile, strings.Join(profiles[text], "/"))
	}
	return all[0].Text + " (" + alternatives(texts) + ")"
}

// anyProfile stands for the name of a profile.
const anyProfile = "\x00"

// profile names that of the first operand that is quantized.
func (e *Explanation) profile() string {
	for _, t := range []Treatment{e.input, e.weight} {
		if t.Quantized && !t.Static {
			return string(cmp.Or(t.Recipe.Profile, scaling.TEBlockPow2))
		}
	}
	return anyProfile
}

// alternatives joins the first of texts.
func alternatives(all []string) string {
	more := ""
	if n := len(all) - mostNamed; n > 0 {
		more = " or " + textout.Count(n, "other")
		all = all[:mostNamed]
	}
	return strings.Join(all, " or ") + more
}
