package main

import (
	"bytes"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/octavo-fp8/octavo/cmd/internal/comparison"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/page"
	"github.com/octavo-fp8/octavo/internal/textout"
)

// The files of a run that goes on. The page then leads to that of the run.
const (
	livePage  = "live.html"
	liveState = "live.json"
)

const (
	firstShown = time.Second     // after the beginning
	shownEvery = 5 * time.Second // or less often
	shownShare = 400             // writing takes 1 in so many of the time at most
)

// liveRun shows a run while it goes on. Where that fails it warns, and the run goes on unseen.
type liveRun struct {
	run      *outdir.Run
	manifest outdir.Manifest
	warn     func(error)
	note     func(path string) // is told once, where the page is
	clock    func() time.Time

	last, lastStep time.Time
	pause          time.Duration // until the next
	longest        time.Duration // from step to step
	shown, failed  bool
}

func newLiveRun(run *outdir.Run, m outdir.Manifest) *liveRun {
	now := time.Now()
	return &liveRun{run: run, manifest: m, clock: time.Now, last: now, lastStep: now, pause: firstShown}
}

// step shows the run after a step, if that is due.
func (l *liveRun) step(soFar func() *comparison.Result) {
	begin := l.clock()
	l.longest, l.lastStep = max(l.longest, begin.Sub(l.lastStep)), begin
	if l.failed || begin.Sub(l.last) < l.pause {
		return
	}
	if err := l.show(soFar()); err != nil {
		l.failed = true
		l.warn(fmt.Errorf("the run goes on, but %s shows it no more: %w", livePage, err))
		return
	}
	if !l.shown {
		l.note(textout.Name(filepath.Join(l.run.Dir(), livePage)))
	}
	end := l.clock()
	l.shown, l.last, l.lastStep = true, end, end
	l.pause = max(shownEvery, shownShare*end.Sub(begin))
}

func (l *liveRun) show(r *comparison.Result) error {
	if begin := l.clock(); !l.shown { // how long that takes says how often it can be done
		if err := r.WritePage(io.Discard, l.manifest.Command, l.manifest.Machine); err != nil {
			return err
		}
		l.pause = shownShare * 2 * l.clock().Sub(begin)
	}
	every := max(shownEvery, l.pause, l.longest).Round(time.Second)
	r.Live = page.Live{
		Status:  fmt.Sprintf("step %d of %d", len(r.Points), r.Options.Steps),
		Written: l.clock(), Every: every, Late: 3*every + 30*time.Second,
	}
	var html, state bytes.Buffer
	if err := r.WritePage(&html, l.manifest.Command, l.manifest.Machine); err != nil {
		return err
	}
	if err := r.WriteLive(&state); err != nil {
		return err
	}
	return l.run.Publish(l.manifest, outdir.File{Name: livePage, Data: html.Bytes()}, outdir.File{Name: liveState, Data: state.Bytes()})
}

// end makes the page one that leads to that of the run.
func (l *liveRun) end() error {
	if !l.shown {
		return nil
	}
	p := page.Page{Title: "octavo train", Style: page.Format(`<meta http-equiv="refresh" content="0; url=%s">`, pageFile)}
	var main page.Body
	main.Put(`<h1>The run has ended</h1><p>What came of it is on <a href="%s">its page</a>.</p>`, pageFile)
	p.Main = main.HTML()
	return l.run.Add(livePage, p.Write)
}
