package main

import (
	"bytes"
	"fmt"
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
	shownShare = 120             // writing takes 1 in so many of the time
)

// liveRun shows a run while it goes on. Where that fails it warns, and the run goes on unseen.
type liveRun struct {
	run      *outdir.Run
	manifest outdir.Manifest
	warn     func(error)
	note     func(path string) // is told once, where the page is
	clock    func() time.Time

	begin, due, lastStep time.Time
	longest              time.Duration // from step to step
	spent                time.Duration // in showing
	shown                int
	failed               bool
}

func newLiveRun(run *outdir.Run, m outdir.Manifest) *liveRun {
	now := time.Now()
	return &liveRun{run: run, manifest: m, clock: time.Now, begin: now, due: now.Add(firstShown), lastStep: now}
}

// step shows the run after a step, if that is due.
func (l *liveRun) step(soFar func() *comparison.Result) {
	now := l.clock()
	l.longest, l.lastStep = max(l.longest, now.Sub(l.lastStep)), now
	if l.failed || now.Before(l.due) {
		return
	}
	if err := l.show(soFar(), now); err != nil {
		l.failed = true
		l.warn(fmt.Errorf("the run goes on, but %s shows it no more: %w", livePage, err))
		return
	}
	if l.shown++; l.shown == 1 {
		l.note(textout.Name(filepath.Join(l.run.Dir(), livePage)))
	}
	l.lastStep = l.clock()
	l.spent += l.lastStep.Sub(now)
	l.due = later(l.lastStep.Add(shownEvery), l.begin.Add(shownShare*(l.spent+l.cost())))
}

// cost is what showing the run takes once.
func (l *liveRun) cost() time.Duration { return l.spent / time.Duration(max(1, l.shown)) }

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// firstLate is how long the second page may take, when it is not known what one costs.
const firstLate = 2 * time.Minute

func (l *liveRun) show(r *comparison.Result, now time.Time) error {
	every := max(shownEvery, shownShare*l.cost(), l.longest).Round(time.Second)
	r.Live = page.Live{
		Status:  fmt.Sprintf("step %d of %d", len(r.Points), r.Options.Steps),
		Written: now, Every: every, Late: 3*every + 30*time.Second,
	}
	if l.shown == 0 {
		r.Live.Late += firstLate
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
	if l.shown == 0 {
		return nil
	}
	p := page.Page{Title: "octavo train", Style: page.Format(`<meta http-equiv="refresh" content="0; url=%s">`, pageFile)}
	var main page.Body
	main.Put(`<h1>The run has ended</h1><p>What came of it is on <a href="%s">its page</a>.</p>`, pageFile)
	p.Main = main.HTML()
	return l.run.Add(livePage, p.Write)
}
