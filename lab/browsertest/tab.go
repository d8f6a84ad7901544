//go:build !js

package browsertest

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

// tab shows one page in one view.
type tab struct {
	ctx  context.Context
	view View
	url  string

	lock     sync.Mutex
	problems []string // that the browser reported
}

// patience is how long a page may take for everything.
const patience = 2 * time.Minute

//go:embed record.js
var record string

// open shows a page file. Before it loads, the browser is prepared by steps.
func (b *Browser) open(t *testing.T, file string, v View, steps ...chromedp.Action[chromedp.Void]) *tab {
	t.Helper()
	absolute, err := filepath.Abs(file)
	require.NoError(t, err)
	ctx, closeTab := chromedp.NewContext(b.ctx)
	t.Cleanup(closeTab)
	require.NoError(t, chromedp.Do(ctx))
	ctx, cancel := context.WithTimeout(ctx, patience)
	t.Cleanup(cancel)
	o := &tab{ctx: ctx, view: v, url: (&url.URL{Scheme: "file", Path: filepath.ToSlash(absolute)}).String()}
	require.NoError(t, chromedp.Listen(ctx, o.listen))
	call(t, o, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: record})
	call(t, o, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{
		Width: int64(v.Width), Height: int64(v.height()), DeviceScaleFactor: 1, Mobile: v.Width <= phone,
	})
	call(t, o, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: v.scheme()}},
	})
	o.do(t, steps...)
	o.do(t, chromedp.Navigate(o.url))
	return o
}

// listen keeps what the browser reports as wrong.
func (o *tab) listen(event any) {
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		o.problem("exception: %s", exception(e.ExceptionDetails))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeAssert {
			o.problem("console: %s", texts(e.Args))
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError || e.Entry.Source == log.EntrySourceSecurity {
			o.problem("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL)
		}
	case *network.EventRequestWillBeSent:
		if e.Request.URL != o.url && !strings.HasPrefix(e.Request.URL, "data:") {
			o.problem("asks for %s", e.Request.URL)
		}
	}
}

func exception(e *runtime.ExceptionDetails) string {
	if e.Exception != nil {
		return e.Text + " " + texts([]*runtime.RemoteObject{e.Exception})
	}
	return e.Text
}

func texts(args []*runtime.RemoteObject) string {
	var all []string
	for _, a := range args {
		if a.Description != "" {
			all = append(all, a.Description)
			continue
		}
		var value any
		_ = json.Unmarshal([]byte(a.Value), &value) // what is none is shown as nil
		all = append(all, fmt.Sprint(value))
	}
	return strings.Join(all, " ")
}

func (o *tab) problem(format string, args ...any) {
	o.lock.Lock()
	defer o.lock.Unlock()
	o.problems = append(o.problems, fmt.Sprintf(format, args...))
}

func (o *tab) do(t *testing.T, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	require.NoError(t, chromedp.Do(o.ctx, steps...))
}

// call runs a command of the devtools protocol.
func call[P, R any](t *testing.T, o *tab, command cdp.Command[P, R], params P) R {
	t.Helper()
	result, err := chromedp.Call(o.ctx, command, params)
	require.NoError(t, err)
	return result
}

// evaluate runs a script in the page and waits for the promise that it may give.
func evaluate[T any](t *testing.T, o *tab, script string) T {
	t.Helper()
	result, err := chromedp.Run(o.ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	require.NoError(t, err)
	return result
}

// settle waits until what scripts have drawn is there.
func (o *tab) settle(t *testing.T) {
	t.Helper()
	evaluate[bool](t, o, `document.fonts.ready.then(() => new Promise(done =>
		requestAnimationFrame(() => requestAnimationFrame(() => done(true)))))`)
}
