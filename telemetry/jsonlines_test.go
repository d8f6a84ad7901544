package telemetry_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/telemetry"
)

// readAll returns the events before the first error, and the error.
func readAll(r io.Reader) (all []telemetry.Event, err error) {
	for e, err := range telemetry.ReadJSONLines(r) {
		if err != nil {
			return all, err
		}
		all = append(all, e)
	}
	return all, nil
}

const line = `{"step":3,"tensor":"w<1>","op":"quantize","blocks":1,"scaleMin":0.1,"scaleMax":"+Inf",` +
	`"stats":{"elements":2,"amax":1e+300,"smallest":5e-324,"saturatedPos":1,"saturatedNeg":0,"becameNonFinite":0,"flushed":0,"subnormal":0,"zeros":0,"nan":1,"posInf":0,"negInf":0},` +
	`"worst":{"step":3,"row":0,"col":0,"scale":"NaN",` +
	`"stats":{"elements":2,"amax":"-Inf","smallest":-0,"saturatedPos":1,"saturatedNeg":0,"becameNonFinite":0,"flushed":0,"subnormal":0,"zeros":0,"nan":1,"posInf":0,"negInf":0}},` +
	`"firstNonFinite":{"step":3,"tensor":"w<1>","op":"quantize","index":1,"value":"NaN"}}` + "\n"

func TestJSONLinesFormat(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	e := telemetry.Event{
		Step: 3,
		Summary: telemetry.Summary{
			Tensor: "w<1>", Op: "quantize", Blocks: 1, ScaleMin: 0.1, ScaleMax: float32(inf),
			Stats: fp8.Stats{Elements: 2, Amax: 1e300, Smallest: 5e-324, SaturatedPos: 1, NaN: 1},
			Worst: telemetry.Block{Step: 3, Scale: float32(nan),
				Stats: fp8.Stats{Elements: 2, Amax: -inf, Smallest: math.Copysign(0, -1), SaturatedPos: 1, NaN: 1}},
		},
		First: telemetry.NonFinite{Step: 3, Tensor: "w<1>", Op: "quantize", Index: 1, Value: nan},
	}
	var out bytes.Buffer
	require.NoError(t, telemetry.JSONLines(&out).Event(e))
	require.Equal(t, line, out.String())

	got, err := readAll(&out)
	require.NoError(t, err)
	require.Equal(t, fmt.Sprintf("%+v", []telemetry.Event{e}), fmt.Sprintf("%+v", got))
}

func TestJSONLinesRoundTrip(t *testing.T) {
	for seed := range uint64(200) {
		var file bytes.Buffer
		var sink events
		rec := telemetry.New(telemetry.JSONLines(&file), &sink)
		report(rand.New(rand.NewPCG(seed, 2)), rec)
		require.NoError(t, rec.Flush())
		got, err := readAll(bytes.NewReader(file.Bytes()))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("%+v", sink.got), fmt.Sprintf("%+v", got))

		var again telemetry.Recorder
		for e := range telemetry.ReadJSONLines(&file) {
			require.NoError(t, again.Event(e))
		}
		require.Equal(t, fmt.Sprintf("%+v", rec.Totals()), fmt.Sprintf("%+v", again.Totals()))
		first, ok := rec.FirstNonFinite()
		replayed, okAgain := again.FirstNonFinite()
		require.Equal(t, ok, okAgain)
		require.Equal(t, first.Step, replayed.Step)
	}
}

func TestReadJSONLinesErrors(t *testing.T) {
	long := `{"tensor":"` + strings.Repeat("x", 1<<20) + `"}`
	for _, c := range []struct{ in, want string }{
		{line + "\n" + line[:50], "line 3: unexpected EOF"},
		{line + "null", "line 2: not a JSON object"},
		{"[1]", "line 1: not a JSON object"},
		{`{"step":1} {"step":2}`, "line 1: more than one JSON value"},
		{`{"step":1}x`, "line 1: more than one JSON value"},
		{`{"time":1}`, `line 1: json: unknown field "time"`},
		{`{"step":1.5}`, "line 1: json: cannot unmarshal number 1.5"},
		{`{"scaleMin":"Inf"}`, `line 1: "Inf" is not a float32`},
		{`{"scaleMin":1e39}`, `line 1: 1e39 is not a float32`},
		{`{"stats":{"amax":null}}`, `line 1: null is not a float64`},
		{`{"firstNonFinite":{"value":1}}`, "line 1: firstNonFinite has the finite value 1"},
		{"{}\n" + long, "line 2: line is longer than 1 MiB"},
	} {
		_, err := readAll(strings.NewReader(c.in))
		require.ErrorContains(t, err, "telemetry: "+c.want, "%.60s", c.in)
	}
	broken := errors.New("broken")
	all, err := readAll(io.MultiReader(strings.NewReader(line), iotest.ErrReader(broken)))
	require.ErrorIs(t, err, broken)
	require.Len(t, all, 1)

	for range telemetry.ReadJSONLines(strings.NewReader(line + "bad")) {
		break // must not go on to the bad line
	}
}

func TestJSONLinesRefusesWhatIsTooLongToRead(t *testing.T) {
	var out bytes.Buffer
	sink := telemetry.JSONLines(&out)
	var e telemetry.Event
	require.NoError(t, sink.Event(e))
	room := 1<<20 - out.Len()

	out.Reset()
	e.Tensor = strings.Repeat("x", room)
	require.NoError(t, sink.Event(e))
	all, err := readAll(bytes.NewReader(out.Bytes()))
	require.NoError(t, err)
	require.Equal(t, []telemetry.Event{e}, all)

	out.Reset()
	e.Tensor += "x"
	require.ErrorContains(t, sink.Event(e), "1 MiB")
	require.Zero(t, out.Len())
	require.NoError(t, sink.Event(telemetry.Event{}), "nothing was written in part")
}

// failing writes half of what it gets once, and then counts calls.
type failing struct{ calls int }

func (f *failing) Write(b []byte) (int, error) {
	f.calls++
	return len(b) / 2, io.ErrShortWrite
}

func TestJSONLinesStopsAfterAFailedWrite(t *testing.T) {
	var w failing
	sink := telemetry.JSONLines(&w)
	for range 3 {
		require.ErrorIs(t, sink.Event(telemetry.Event{}), io.ErrShortWrite)
	}
	require.Equal(t, 1, w.calls)
}

func FuzzReadJSONLines(f *testing.F) {
	f.Add([]byte(line))
	f.Add([]byte(line + "\r\n\n" + line[:200]))
	f.Add([]byte(`{"step":-9223372036854775808,"tensor":"\ud800","stats":{"amax":1e-400}}`))
	f.Add([]byte("{\"op\":\"\xff\u2028\\u0000\"}\n{\"firstNonFinite\":{\"value\":\"-Inf\"}}\nnull"))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, _ := readAll(bytes.NewReader(data))
		for _, e := range all {
			var out bytes.Buffer
			if telemetry.JSONLines(&out).Event(e) != nil {
				continue // escapes made it too long
			}
			written := out.String()
			again, err := readAll(&out)
			require.NoError(t, err)
			require.Len(t, again, 1)
			require.Equal(t, fmt.Sprintf("%#v", e), fmt.Sprintf("%#v", again[0]))
			out.Reset()
			require.NoError(t, telemetry.JSONLines(&out).Event(again[0]))
			require.Equal(t, written, out.String())
		}
	})
}
