package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"html/template"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/cmd/internal/chart"
)

// TestAssetsAreUnchanged: the library is what its authors released.
func TestAssetsAreUnchanged(t *testing.T) {
	for name, want := range map[string]string{
		"uplot/uPlot.iife.min.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
		"uplot/uPlot.min.css":     "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
		"uplot/LICENSE":           "8f989229699b4fe2f1a0432d0e9edc338a8a911e250e2d1b01ecd770a5f5b1bd",
	} {
		sum := sha256.Sum256([]byte(read(name)))
		require.Equal(t, want, hex.EncodeToString(sum[:]), name)
	}
}

func written(t *testing.T, body string, data any) string {
	var b bytes.Buffer
	require.NoError(t, New("test", body, nil).Write(&b, "A <title>", data))
	return b.String()
}

func TestPageHasWhatItNeeds(t *testing.T) {
	html := written(t, `<h1>{{.}}</h1>`, "a & b")
	for _, want := range []string{"<!DOCTYPE html>", `lang="en"`, "<title>A &lt;title&gt;</title>", "<h1>a &amp; b</h1>", "default-src &#39;none&#39;"} {
		require.Contains(t, strings.ReplaceAll(html, "'none'", "&#39;none&#39;"), want)
	}
	require.NotContains(t, html, "uPlot", "no chart")
}

func TestPageWithChartsCarriesTheLibraryOnce(t *testing.T) {
	c := chart.Chart{Title: "Loss", Series: []chart.Series{{Name: "FP8", Points: []chart.Point{{X: 1, Y: 2}, {X: 2, Y: 1}}}}}
	html := written(t, `{{range .}}{{chart .}}{{end}}`, []chart.Chart{c, c})
	require.Equal(t, 1, strings.Count(html, "Permission is hereby granted"), "the licence")
	require.Contains(t, html, `id="chart-1"`)
	require.Contains(t, html, `id="chart-2"`)
}

// TestFailedPageWritesNothing, so that no half of one is taken for a whole.
func TestFailedPageWritesNothing(t *testing.T) {
	var b bytes.Buffer
	bad := New("bad", `<p>{{fail}}</p>`, template.FuncMap{"fail": func() (string, error) { return "", errors.New("no") }})
	require.ErrorContains(t, bad.Write(&b, "", nil), "no")
	require.Zero(t, b.Len())
}
