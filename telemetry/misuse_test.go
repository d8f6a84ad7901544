package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/telemetry"
)

// TestMisuse throws what is nil at everything that is exported.
func TestMisuse(t *testing.T) {
	var rec telemetry.Recorder
	for name, f := range map[string]func(){
		"telemetry: nil sink":   func() { telemetry.New(nil) },
		"telemetry: nil logger": func() { telemetry.Slog(nil, telemetry.Thresholds{}) },
		"telemetry: nil writer": func() { telemetry.JSONLines(nil) },
		"telemetry: nil reader": func() { telemetry.ReadJSONLines(nil) },
		"telemetry: nil Stats":  func() { rec.Block("op", "t", 0, 0, 1, nil) },
	} {
		require.PanicsWithValue(t, name, f)
	}
	require.Empty(t, rec.Totals(), "nothing was counted")
	rec.Block("", "", math.MinInt, math.MaxInt, float32(math.NaN()), &fp8.Stats{})
	rec.NonFinite("", "", -1, math.NaN())
	require.NoError(t, rec.Event(telemetry.Event{}))
	require.NoError(t, rec.Step(math.MinInt64))
	rec.Merge(nil)
	require.Len(t, rec.Totals(), 1)
	for _, share := range []float64{telemetry.Summary{}.LostShare(), telemetry.Summary{}.SaturatedShare(), telemetry.Summary{}.FlushedShare(), telemetry.Block{}.LostShare()} {
		require.Zero(t, share)
	}
}

// TestJSONLinesQuoteControlCharacters: a name is somebody else's text and may go to a
// terminal. All that cannot be printed is escaped, and reads back as it was.
func TestJSONLinesQuoteControlCharacters(t *testing.T) {
	name := "a\x1b[2J\x7f\u009b31m\u202e\u2028\U000e0001é"
	var file bytes.Buffer
	event := telemetry.Event{Summary: telemetry.Summary{Tensor: name, Op: name}}
	require.NoError(t, telemetry.JSONLines(&file).Event(event))
	for _, r := range strings.TrimSuffix(file.String(), "\n") {
		require.True(t, r == 'é' || r >= ' ' && r <= '~', "%q in %q", r, file.String())
	}
	for e, err := range telemetry.ReadJSONLines(&file) {
		require.NoError(t, err)
		require.Equal(t, name, e.Tensor)
	}
}

// TestErrorsOfLinesCanBeShown: an error is one line without control characters, whatever
// the file has in it.
func TestErrorsOfLinesCanBeShown(t *testing.T) {
	for _, line := range []string{
		"{\"amax\x1b\":1}", "{\"\x9b\":1}", "{\"\u202e\u009b\":1}", "{\"\U000e0001\":1}", "{\x9b", "{\x1b",
		`{"scaleMin":"\u001b[2J"}`, "{\"scaleMin\":\"\x9b\"}", "{\"scaleMin\":\"\u009b\x9b\"}",
		`{"` + strings.Repeat("é", 300) + `":1}`,
	} {
		for _, err := range telemetry.ReadJSONLines(strings.NewReader(line)) {
			require.ErrorIs(t, err, telemetry.ErrLine)
			require.Truef(t, utf8.ValidString(err.Error()), "%q", err.Error())
			for _, r := range err.Error() {
				require.Truef(t, unicode.IsPrint(r), "%q in %q", r, err.Error())
			}
		}
	}
}

// TestErrorsAreShort: names and lines of a megabyte make no error of a megabyte.
func TestErrorsAreShort(t *testing.T) {
	long := strings.Repeat("x\x1b", 200_000)
	rec := telemetry.New(&events{err: errors.New("full")})
	rec.Block(long, long, 0, 0, 1, &fp8.Stats{Elements: 1})
	err := rec.Flush()
	require.ErrorContains(t, err, "full")
	require.Less(t, len(err.Error()), 2000)
	require.NotContains(t, err.Error(), "\x1b")

	for _, line := range []string{`{"` + strings.Repeat("y", 300_000) + `":1}`, `{"scaleMin":` + strings.Repeat("9", 300_000) + `e999999}`, `{"step":` + strings.Repeat("9", 300_000) + `}`} {
		for _, err := range telemetry.ReadJSONLines(strings.NewReader("\n" + line)) {
			require.ErrorIs(t, err, telemetry.ErrLine)
			require.ErrorContains(t, err, "telemetry: line 2: ")
			require.Less(t, len(err.Error()), 500)
		}
	}
}

// TestErrLine tells a broken line from a file that cannot be read.
func TestErrLine(t *testing.T) {
	for _, line := range []string{"{", "null", "{} {}", `{"stpe":1}`, `{"firstNonFinite":{"value":1}}`, strings.Repeat(" ", 2<<20)} {
		n := 0
		for _, err := range telemetry.ReadJSONLines(strings.NewReader(line)) {
			require.ErrorIs(t, err, telemetry.ErrLine, "%.20q", line)
			n++
		}
		require.Equal(t, 1, n)
	}
	for _, err := range telemetry.ReadJSONLines(brokenReader{}) {
		require.NotErrorIs(t, err, telemetry.ErrLine)
		require.ErrorIs(t, err, errBroken)
	}
	require.ErrorIs(t, telemetry.JSONLines(new(bytes.Buffer)).Event(telemetry.Event{Summary: telemetry.Summary{Tensor: strings.Repeat("x", 2<<20)}}), telemetry.ErrLine)
}

var errBroken = errors.New("broken")

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errBroken }

// TestJSONOfEvents: an Event marshals as JSONLines writes it, NaN included.
func TestJSONOfEvents(t *testing.T) {
	e := telemetry.Event{Step: 3, Summary: telemetry.Summary{Tensor: "t", Op: "op", Blocks: 1, ScaleMin: 2, ScaleMax: float32(math.Inf(1))},
		First: telemetry.NonFinite{Step: 3, Tensor: "t", Op: "op", Index: 7, Value: math.Inf(-1)}}
	text, err := json.Marshal(e)
	require.NoError(t, err)
	var file bytes.Buffer
	require.NoError(t, telemetry.JSONLines(&file).Event(e))
	require.JSONEq(t, file.String(), string(text))
	var back telemetry.Event
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, e, back)
	require.Error(t, json.Unmarshal([]byte(`{"Step":3,"x":1}`), &back))
	require.Equal(t, e, back, "an error leaves it as it is")
	require.Error(t, back.UnmarshalJSON(nil))

	text, err = json.Marshal(telemetry.Total{Events: 2, Summary: e.Summary})
	require.NoError(t, err)
	require.Contains(t, string(text), `"events":2,"tensor":"t"`)
	require.Contains(t, string(text), `"scaleMax":"+Inf"`)
	text, err = json.Marshal(e.First)
	require.NoError(t, err)
	require.JSONEq(t, `{"step":3,"tensor":"t","op":"op","index":7,"value":"-Inf"}`, string(text))
}
