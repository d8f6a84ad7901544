package runs

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/comparison"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/progress"
	"github.com/octavo-fp8/octavo/scaling"
)

// publish shows a run that goes on as octavo train does.
func publish(t *testing.T, run *outdir.Run, r *comparison.Result, at time.Time) {
	r.Live.Written = at
	var state bytes.Buffer
	require.NoError(t, r.WriteLive(&state))
	require.NoError(t, run.Publish(outdir.Manifest{Kind: "train", Command: "octavo train --live"},
		outdir.File{Name: livePage, Data: []byte("<p>")}, outdir.File{Name: liveName, Data: state.Bytes()}))
}

// TestLive: a run that goes on, beside one that ended and in place of one, is compared as far as it
// has come, and is named as one that has not ended.
func TestLive(t *testing.T) {
	dir := t.TempDir()
	writeTrain(t, filepath.Join(dir, "a"), trained(20, 20, 1, scaling.TEBlock))
	writeTrain(t, filepath.Join(dir, "b"), trained(3, 20, 1, scaling.TEBlock))
	at := time.Date(2026, 11, 28, 15, 4, 5, 0, time.UTC)
	for _, name := range []string{"b", "c"} {
		run, err := outdir.Create(filepath.Join(dir, name), outdir.Options{Overwrite: true})
		require.NoError(t, err)
		defer run.Abort()
		publish(t, run, trained(7, 20, 1, scaling.TECurrent), at)
	}
	s := read(t, dir)
	require.Len(t, s.Train, 3)
	require.False(t, s.Train[0].GoesOn())
	for _, got := range s.Train[1:] {
		require.True(t, got.GoesOn())
		require.False(t, got.Stopped())
		require.Equal(t, []any{7, 20, 7}, []any{got.Done, got.Steps, got.Curves.Len()})
		require.Equal(t, "te-current", got.Option("profile"))
		require.Equal(t, "octavo train --live", got.Command)
	}
	const says = "Unfinished, whether they go on or were killed: b at step 7 of 20, as of 2026-11-28 15:04:05 UTC; c at step 7 of 20, as of 2026-11-28 15:04:05 UTC."
	text := textOf(t, s)
	require.Contains(t, strings.Join(strings.Fields(text), " "), says)
	require.Contains(t, text, "\nb       7/20  ")
	require.NotContains(t, text, "Stopped before")
	html := pageOf(t, s, dir)
	for _, want := range []string{says, `href="a/index.html"`, `href="c/live.html"`} {
		require.Contains(t, html, want)
	}
	require.NotContains(t, html, `<span class="bad">7/20`)
	var out bytes.Buffer
	require.NoError(t, s.WriteJSON(&out))
	require.Equal(t, 2, strings.Count(out.String(), `"unfinishedAt": "2026-11-28T15:04:05Z"`))
	require.True(t, s.Holds(func(path string) bool { return filepath.Base(path) == livePage }))

	for _, c := range []struct{ text, says string }{
		{"", "unexpected end of JSON input"},
		{`{"result":{}}`, "it is not the result of octavo train"},
	} {
		path := filepath.Join(dir, "c", liveName)
		write(t, path, c.text)
		_, err := Read(t.Context(), []string{dir}, nil)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, c.says)
	}
}

// TestBeginsOrEnds: a run that has listed what it shows, but shows nothing yet or no more, is in
// nobody's way, and one that ends while others are read is read as it ended.
func TestBeginsOrEnds(t *testing.T) {
	dir := t.TempDir()
	writeTrain(t, filepath.Join(dir, "a"), trained(20, 20, 1, scaling.TEBlock))
	writeTrain(t, filepath.Join(dir, "b"), trained(3, 20, 1, scaling.TEBlock))
	var going []*outdir.Run
	for _, name := range []string{"b", "c", "d"} {
		run, err := outdir.Create(filepath.Join(dir, name), outdir.Options{Overwrite: true})
		require.NoError(t, err)
		defer run.Abort()
		publish(t, run, trained(7, 20, 1, scaling.TECurrent), time.Now())
		going = append(going, run)
	}
	for _, name := range []string{"b", "c"} {
		require.NoError(t, os.Remove(filepath.Join(dir, name, liveName)))
	}
	ended := false
	s, err := Read(t.Context(), []string{dir}, progress.Func(func(string, int64, int64) {
		if r := trained(9, 20, 1, scaling.TECurrent); !ended {
			ended = true
			require.NoError(t, going[2].Add(resultName, r.WriteJSON))
			require.NoError(t, going[2].Add(curvesName, r.WriteCurves))
			require.NoError(t, going[2].Commit(outdir.Manifest{Kind: "train"}))
		}
	}))
	require.NoError(t, err)
	var got []any
	for _, r := range s.Train {
		require.False(t, r.GoesOn())
		got = append(got, r.Name, r.Done)
	}
	require.Equal(t, []any{"a", 20, "b", 3, "d", 9}, got)
	require.Contains(t, s.Notes(), "c is left out: it has no live.json, as while a run begins or ends.")
	require.NotContains(t, strings.Join(read(t, filepath.Join(dir, "a")).Notes(), ""), "left out")
	var out bytes.Buffer
	require.NoError(t, s.WriteJSON(&out))
	require.Regexp(t, `"leftOut": \[\s*"c"\s*\]`, out.String())
	_, err = Read(t.Context(), []string{filepath.Join(dir, "c")}, nil)
	require.ErrorContains(t, err, filepath.Join(dir, "c", liveName), "it was named itself")
}

// TestKilledOverwrite: a run that was to replace one, and was killed, does not hide it, and is named;
// one that nobody has replaced is read as far as it came.
func TestKilledOverwrite(t *testing.T) {
	dir := t.TempDir()
	writeTrain(t, filepath.Join(dir, "a"), trained(20, 20, 1, scaling.TEBlock))
	for _, name := range []string{"a", "b"} {
		run, err := outdir.Create(filepath.Join(dir, name), outdir.Options{Overwrite: true})
		require.NoError(t, err)
		publish(t, run, trained(7, 20, 1, scaling.TECurrent), time.Now())
		const says = "a holds a later run too, which did not end and which nobody writes: the one that ended is compared."
		if name == "a" {
			require.True(t, read(t, dir).Train[0].GoesOn())
			require.NotContains(t, read(t, dir).Notes(), says)
		}
		run.Pause() // as if it were killed: what it shows stays, and the file that was locked
		write(t, filepath.Join(dir, name, ".octavo-lock"), "")
		s := read(t, dir)
		require.False(t, s.Train[0].GoesOn())
		require.Equal(t, 20, s.Train[0].Done)
		require.Contains(t, s.Notes(), says)
		if name == "b" {
			require.True(t, s.Train[1].GoesOn())
			require.NotContains(t, strings.Join(s.Notes(), " "), "b holds a later run")
		}
	}
}

// TestReadWhileWritten reads a run all the time while it is written: each time it is whole.
func TestReadWhileWritten(t *testing.T) {
	dir := t.TempDir()
	run, err := outdir.Create(dir, outdir.Options{})
	require.NoError(t, err)
	defer run.Abort()
	const steps = 60
	publish(t, run, trained(1, steps, 1, scaling.TEBlock), time.Now())
	done := make(chan bool)
	go func() {
		defer close(done)
		for i := 2; i < steps; i++ {
			publish(t, run, trained(i, steps, 1, scaling.TEBlock), time.Now())
		}
	}()
	last, different := 0, 0
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		default:
		}
		got := read(t, dir).Train[0]
		require.GreaterOrEqual(t, got.Done, last)
		require.Equal(t, got.Done, got.Curves.Len())
		if got.Done > last {
			last, different = got.Done, different+1
		}
	}
	require.Equal(t, steps-1, last)
	require.Greater(t, different, 3)
}

// TestLiveIsResultAndCurves: what is read of a run that goes on is what it would leave.
func TestLiveIsResultAndCurves(t *testing.T) {
	r := trained(5, 9, 2, scaling.TEBlock)
	r.Live.Written = time.Unix(1e9, 0)
	var state, result, curves bytes.Buffer
	require.NoError(t, r.WriteLive(&state))
	require.NoError(t, r.WriteJSON(&result))
	require.NoError(t, r.WriteCurves(&curves))
	var got comparison.LiveState
	require.NoError(t, json.Unmarshal(state.Bytes(), &got))
	require.True(t, got.Written.Equal(r.Live.Written))
	require.JSONEq(t, result.String(), string(got.Result))
	require.Equal(t, curves.String(), got.Curves)
}
