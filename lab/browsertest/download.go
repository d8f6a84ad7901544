//go:build !js

package browsertest

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/require"
)

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
