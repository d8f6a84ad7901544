//go:build !js

package main

import (
	"path/filepath"
	"testing"

	"github.com/octavo-fp8/octavo/cmd/internal/browsertest"
)

// TestReportPage opens the page about several runs in a browser.
func TestReportPage(t *testing.T) {
	b := browsertest.Start(t)
	dir := threeRuns(t)
	page := filepath.Join(dir, "page.html")
	succeed(t, "report", dir, "-o", page)
	b.Check(t, "report", page)
}
