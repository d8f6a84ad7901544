//go:build !js

// Package browsertest opens pages in a real browser without a window, as people with wide
// and narrow screens and light and dark colours see them, and finds what is wrong with
// them: errors of scripts, what is loaded from outside, text that is cut or overlaps or
// that nobody can read, charts without curves or that do not answer, and what the rules of
// axe-core find, contrast among it. On js, where there are no processes, the package is empty.
package browsertest

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/internal/testutil"
)

// Browser is a process that opens pages.
type Browser struct {
	ctx context.Context
	axe string // the script, or "" where there is none
}

// names of the programs that will do.
var names = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"}

// Start starts a browser that ends with the test. The test is skipped where there is no
// browser, and with -short: continuous integration runs tests more than once, and pages
// are the same each time.
func Start(t *testing.T) *Browser {
	t.Helper()
	if testing.Short() {
		t.Skip("pages are not opened in a browser with -short")
	}
	path := find()
	if path == "" {
		testutil.Lacking(t, "pages are not opened: there is no browser (%v)", names)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox, // which containers do not allow; pages are our own
		chromedp.Flag("disable-gpu", true),
		chromedp.Flag("disable-quic", true),
		chromedp.Flag("disable-component-update", true),
	)
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	require.NoError(t, chromedp.Do(ctx), "the browser starts")
	return &Browser{ctx: ctx, axe: readAxe(t)}
}

func find() string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

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

// View is how a page is looked at.
type View struct {
	Width int // of the window, in CSS pixels
	Dark  bool
}

// Views are how every page is looked at: on a desk and on a phone, by light and by dark.
// Nothing of a page depends on both; all four views are looked at where tests are to be
// exhaustive.
func Views() []View {
	if testutil.Full() {
		return []View{{1280, false}, {1280, true}, {phone, false}, {phone, true}}
	}
	return []View{{1280, false}, {phone, true}}
}

const phone = 400

func (v View) String() string { return fmt.Sprintf("%d-%s", v.Width, v.scheme()) }

func (v View) scheme() string {
	if v.Dark {
		return "dark"
	}
	return "light"
}

func (v View) height() int {
	if v.Width <= phone {
		return 800
	}
	return 900
}

// Download opens a page, clicks the link that downloads a file of some name, and returns
// what the browser has saved under that name.
func (b *Browser) Download(t *testing.T, page, name string) []byte {
	t.Helper()
	o := b.open(t, page, Views()[0])
	directory := t.TempDir()
	_, err := chromedp.CallBrowser(o.ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: directory,
	})
	require.NoError(t, err)
	evaluate[any](t, o, fmt.Sprintf(`document.querySelector('a[download=%q]').click(), true`, name))
	saved := filepath.Join(directory, name) // it has another name until it is whole
	require.Eventually(t, func() bool {
		_, err := os.Stat(saved)
		return err == nil
	}, patience, 20*time.Millisecond, "%s was not saved", name)
	require.Empty(t, o.reported())
	data, err := os.ReadFile(saved)
	require.NoError(t, err)
	return data
}
