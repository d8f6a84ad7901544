package declaration

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab/report"
	"github.com/octavo-fp8/octavo/lab/statistics"
)

const head = `
experiment = "example"
declared = "2026-11-23"
known = "a pilot"
`

const gap = `
[[hypothesis]]
name = "gap"
family = "loss"
hypothesis = "There is none."
metric = "held-out loss above that of BF16, paired by seed"
unit = "%"
test = "equivalent"
margin = 0.25
sample = 12
power = 0.9
truth = 0.0
sd = 0.2
published = 0.25
source = "a paper"
refuted = "a gap of more than the margin"
`

const coarse = `
[[control]]
name = "coarse"
family = "loss"
hypothesis = "It is worse."
metric = "the same"
unit = "%"
test = "above"
bound = 0.25
sample = 12
power = 0.9
truth = 1.0
sd = 0.5
ours = true
refuted = "it is not seen"
`

const equal = `
[[hypothesis]]
name = "equal"
family = "codes"
hypothesis = "They are the same."
metric = "codes that differ"
test = "exact"
upper = 3
ours = true
refuted = "more"

[[hypothesis]]
name = "said"
family = "codes"
hypothesis = "They are the same."
metric = "whether"
test = "exact"
ours = true
refuted = "no"
`

const changed = `
[[change]]
date = "2026-11-24"
of = ["gap"]
what = "margin from 0.2 to 0.25."
why = "It was a slip."
seen = true
`

const whole = head + gap + coarse + equal + changed

func TestParse(t *testing.T) {
	d, err := Parse([]byte(whole))
	require.NoError(t, err)
	require.Equal(t, []string{"gap", "equal", "said", "coarse"}, d.Names())
	require.Equal(t, 0.25, *d.Hypotheses[0].Margin)
	sum := sha256.Sum256([]byte(whole))
	require.Equal(t, &report.Plan{
		Date: "2026-11-23", Known: "a pilot", SHA256: hex.EncodeToString(sum[:]),
		Changes: []report.Change{{Date: "2026-11-24", Of: []string{"gap"}, What: "margin from 0.2 to 0.25.", Why: "It was a slip.", Seen: true}},
	}, d.Plan())
	require.NotNil(t, mustParse([]byte(head+gap)).Plan().Changes)
	require.Panics(t, func() { OnUse(nil)() })
}

// TestParseRefuses replaces a part of a declaration that is right.
func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ old, new, says string }{
		{`experiment = "example"`, ``, "it lacks experiment"},
		{`experiment =`, `experimnt =`, "line 2, column 1: there is no field experimnt"},
		{`margin = 0.25`, `margins = 0.25`, "there is no field hypothesis.margins"},
		{`margin = 0.25`, `margin = "0.25"`, "line 13, column 10: "},
		{`margin = 0.25`, ``, "gap: it lacks margin"},
		{`margin = 0.25`, `margin = nan`, "gap: margin is NaN"},
		{`margin = 0.25`, `margin = -0.25`, "gap: nothing is between its limits"},
		{`margin = 0.25`, "margin = 0.25\nbound = 1", "gap: it has bound, which equivalent has not"},
		{`"2026-11-23"`, `"yesterday"`, `declared is "yesterday": want a date as 2026-11-23`},
		{`known = "a pilot"`, ``, "it lacks known"},
		{`name = "coarse"`, `name = "gap"`, "there are two of the name gap"},
		{`name = "gap"`, `name = "The gap"`, `the name "The gap"`},
		{`family = "loss"`, ``, "gap: it lacks family"},
		{`hypothesis = "There is none."`, ``, "gap: it lacks hypothesis"},
		{`metric = "the same"`, ``, "coarse: it lacks metric"},
		{`refuted = "it is not seen"`, ``, "coarse: it lacks refuted"},
		{`test = "equivalent"`, `test = "alike"`, `gap: test is "alike": want equivalent, within, above, below or exact`},
		{`source = "a paper"`, ``, "gap: it has neither source"},
		{`source = "a paper"`, "source = \"a paper\"\nours = true", "gap: it is ours, and has published or source too"},
		{`sample = 12`, `sample = 1`, "gap: sample is 1"},
		{`power = 0.9`, ``, "gap: it lacks power"},
		{`power = 0.9`, `power = 90`, "gap: power is 90: want a chance"},
		{`truth = 0.0`, ``, "gap: it lacks truth"},
		{`sd = 0.2`, ``, "gap: it lacks sd"},
		{`sd = 0.2`, `sd = -1`, "gap: sd is -1"},
		{`sd = 0.2`, `sd = 0`, "gap: sd is 0: want"},
		{`sd = 0.2`, `sd = 0.4`, "gap: power is 0.9, and with 12 values of sd 0.4 around 0, 1 compared, it is 0."},
		{`truth = 0.0`, `truth = 0.25`, "it is 0.025"},
		{`test = "exact"`, "test = \"exact\"\nsample = 3", "equal: an exact figure has no sample"},
		{`upper = 3`, `upper = 3` + "\nlower = 4", "equal: nothing is between its limits"},
		{`date = "2026-11-24"`, ``, "change 1: date"},
		{`of = ["gap"]`, `of = []`, "change 1: it lacks of"},
		{`what = "margin from 0.2 to 0.25."`, ``, "change 1: it lacks what"},
		{`why = "It was a slip."`, ``, "change 1: it lacks why"},
	} {
		require.Contains(t, whole, c.old)
		_, err := Parse([]byte(strings.Replace(whole, c.old, c.new, 1)))
		require.ErrorContains(t, err, c.says, "%s for %s", c.new, c.old)
	}
	_, err := Parse([]byte(head))
	require.ErrorContains(t, err, "it has no hypothesis")
}

// TestPowerOfAFamily: what is compared with others needs more.
func TestPowerOfAFamily(t *testing.T) {
	second := strings.Replace(strings.Replace(gap, `"gap"`, `"second"`, 1), "0.9", "0.5", 1)
	_, err := Parse([]byte(head + gap + second))
	require.ErrorContains(t, err, "2 compared")
	d := mustParse([]byte(strings.ReplaceAll(whole, "0.9", "0.5") + second))
	require.Equal(t, 2, d.Compared("gap"))
	require.Equal(t, 1, d.Compared("coarse"), "a control is compared with controls")
	require.Panics(t, func() { d.Compared("none") })
}

// TestJudge has intervals by hand: 12 values, half of them above and half below the mean by
// the same distance, have a standard error of distance/sqrt(11), and t is 2.201.
func TestJudge(t *testing.T) {
	d := mustParse([]byte(whole))
	around := func(mean, distance float64) (values []float64) {
		for i := range 12 {
			values = append(values, mean+distance*float64(i%2*2-1))
		}
		return values
	}
	for _, c := range []struct {
		name           string
		mean, distance float64
		want           report.Outcome
	}{
		{"gap", 0, 0.3, report.Met}, // ± 0.199
		{"gap", 0.1, 0.22, report.Met},
		{"gap", 0.1, 0.23, report.Undecided},
		{"gap", -0.1, 0.23, report.Undecided},
		{"gap", 0.4, 0.22, report.Missed}, // 0.254 is outside
		{"gap", 0.4, 0.23, report.Undecided},
		{"gap", -0.4, 0.22, report.Missed},
		{"gap", 0, 1, report.Undecided},
		{"gap", math.NaN(), 1, report.Undecided},
		{"gap", math.Inf(1), 1, report.Undecided},
		{"coarse", 0.5, 0.37, report.Caught}, // 0.254
		{"coarse", 0.5, 0.38, report.Undecided},
		{"coarse", 0, 0.37, report.NotCaught},
	} {
		got := d.Judge(c.name, around(c.mean, c.distance))
		require.Equal(t, c.want, got.Outcome, "%s: %v ± %v: %s", c.name, c.mean, c.distance, got.Got)
		half := 2.201 * c.distance / math.Sqrt(11)
		if !math.IsNaN(c.mean) && !math.IsInf(c.mean, 0) {
			require.InDelta(t, c.mean-half, float64(got.Found.Low), 1e-4)
			require.InDelta(t, c.mean+half, float64(got.Found.High), 1e-4)
		}
		require.Equal(t, c.want == report.Undecided, got.Undecided != "")
	}
	g := d.Judge("gap", around(0.1, 0.23))
	require.Equal(t, "gap", g.Name)
	require.Equal(t, "held-out loss above that of BF16, paired by seed", g.What)
	require.Equal(t, "within ±0.25 %", g.Want)
	require.Equal(t, "0.1 %, from -0.05263 to 0.2526 % (12 values)", g.Got)
	require.Equal(t, "0.25 % (a paper)", g.Reproduces)
	require.Equal(t, "0.9 if the truth is 0 % and the standard deviation 0.2 %", g.Power)
	require.Equal(t, "The truth may be anywhere from -0.05263 to 0.2526 %, and wanted is within ±0.25 %. "+
		"With this mean and spread it would take some 13 values to decide.", g.Undecided)
}

// TestJudgeTooLittle: what a run has too little of is shown, and not judged.
func TestJudgeTooLittle(t *testing.T) {
	d := mustParse([]byte(whole))
	got := d.Judge("gap", []float64{0, 0, 0})
	require.Equal(t, report.NotJudged, got.Outcome)
	require.Equal(t, "0 %, from 0 to 0 % (3 values)", got.Got)
	require.Equal(t, "It wants 12 values, and this run has 3.", got.Undecided)
	require.Equal(t, "7 % (one value)", d.Judge("gap", []float64{7}).Got)
	require.Equal(t, report.NotJudged, d.Judge("coarse", []float64{7}).Outcome)
	require.Equal(t, report.NotJudged, d.Judge("coarse", nil).Outcome)
}

// TestJudgeWithoutSpread: values that are all equal decide nothing, on either side of a limit
// and of either kind, even where their mean is rounded; one that differs is enough.
func TestJudgeWithoutSpread(t *testing.T) {
	d := mustParse([]byte(whole))
	for _, name := range []string{"gap", "coarse"} {
		for _, value := range []float64{0, 0.1, -0.1, 0.3, 7} {
			values := slices.Repeat([]float64{value}, 12)
			got := d.Judge(name, values)
			require.Equal(t, report.Undecided, got.Outcome, "%s: %v", name, value)
			require.Contains(t, got.Undecided, "All 12 values are equal")
			values[3] += 1e-6
			require.NotEqual(t, report.Undecided, d.Judge(name, values).Outcome, "%s: %v", name, value)
		}
	}
	require.Equal(t, report.Undecided, d.JudgeInterval("gap", statistics.Interval{}, 12).Outcome)
}

func TestJudgeInterval(t *testing.T) {
	d := mustParse([]byte(whole))
	require.Equal(t, report.Met, d.JudgeInterval("gap", statistics.Interval{At: 0, Low: -0.1, High: 0.2}, 12).Outcome)
	require.Equal(t, report.Missed, d.JudgeInterval("gap", statistics.Interval{At: 1, Low: 0.3, High: 2}, 12).Outcome)
	require.Equal(t, report.NotJudged, d.JudgeInterval("gap", statistics.Interval{}, 11).Outcome)
}

func TestJudgeExact(t *testing.T) {
	d := mustParse([]byte(whole))
	require.Equal(t, report.Met, d.JudgeExact("said", "yes", true).Outcome)
	require.Equal(t, report.Missed, d.JudgeExact("said", "no", false).Outcome)
	require.Equal(t, report.Met, d.JudgeFigure("equal", 3).Outcome)
	require.Equal(t, report.Missed, d.JudgeFigure("equal", 4).Outcome)
	require.Equal(t, report.Missed, d.JudgeFigure("equal", math.NaN()).Outcome)
	require.Equal(t, "at most 3", d.JudgeFigure("equal", 4).Want)
	for _, misuse := range []func(){
		func() { d.JudgeExact("gap", "", true) }, func() { d.JudgeExact("equal", "", true) },
		func() { d.JudgeFigure("gap", 0) }, func() { d.JudgeFigure("said", 0) },
		func() { d.Judge("said", nil) }, func() { d.Judge("none", nil) },
	} {
		require.Panics(t, misuse)
	}
}

func TestWants(t *testing.T) {
	at := func(x float64) *float64 { return &x }
	for want, g := range map[string]Goal{
		"within ±2 dB":    {Test: Equivalent, Margin: at(2), Unit: "dB"},
		"from 1 to 2.5 %": {Test: Within, Lower: at(1), Upper: at(2.5), Unit: "%"},
		"above 1e-6":      {Test: Above, Bound: at(1e-6)},
		"above 12346":     {Test: Above, Bound: at(12345.6)},
		"below 0":         {Test: Below, Bound: at(math.Copysign(0, -1))},
		"42":              {Test: Exact, Lower: at(42), Upper: at(42)},
		"at least 3":      {Test: Exact, Lower: at(3)},
		"from 3 to 4":     {Test: Exact, Lower: at(3), Upper: at(4)},
		"yes":             {Test: Exact},
	} {
		require.Equal(t, want, g.want())
	}
}
