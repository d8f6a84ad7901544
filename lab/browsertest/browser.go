//go:build !js

// Package browsertest opens pages in a real browser without a window, as people with wide
// and narrow screens and light and dark colours see them, and finds what is wrong with
// them: errors of scripts, what is loaded from outside, text that is cut or overlaps or
// that nobody can read, charts without curves or that do not answer, and what the rules of
// axe-core find, contrast among it. On js, where there are no processes, the package is empty.
package browsertest

import (
	"context"
	"os/exec"
	"testing"

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
