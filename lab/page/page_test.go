package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/octavo-fp8/octavo/lab/chart"
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

func written(t *testing.T, charts ...chart.Chart) string {
	var b bytes.Buffer
	var p Page
	p.Charts(charts...)
	require.NoError(t, p.Write(&b, "A <title>"))
	require.NotContains(t, b.String(), "%!", "each verb has its value")
	return b.String()
}

func TestPageHasWhatItNeeds(t *testing.T) {
	html := written(t)
	for _, want := range []string{"<!DOCTYPE html>", `lang="en"`, "<title>A &lt;title&gt;</title>", "default-src 'none'"} {
		require.Contains(t, html, want)
	}
	require.NotContains(t, html, "uPlot", "no chart")
}

func TestPageWithChartsCarriesTheLibraryOnce(t *testing.T) {
	c := chart.Chart{Title: "Loss", Series: []chart.Series{{Name: "FP8", Points: []chart.Point{{X: 1, Y: 2}, {X: 2, Y: 1}}}}}
	html := written(t, c, c)
	require.Equal(t, 1, strings.Count(html, "Permission is hereby granted"), "the licence")
	require.Contains(t, html, `id="chart-1"`)
	require.Contains(t, html, `id="chart-2"`)
}

// TestPageLoadsNothing: the only addresses in a page are names of SVG's and XLink's
// elements, and what the library says of itself.
func TestPageLoadsNothing(t *testing.T) {
	html := written(t, atlas()...)
	allowed := map[string]bool{"http://www.w3.org/2000/svg": true, "http://www.w3.org/1999/xlink": true, "https://github.com/leeoniya/uPlot": true}
	for _, address := range regexp.MustCompile(`[a-z]+://[^\s"'<>)]*`).FindAllString(html, -1) {
		require.True(t, allowed[address], address)
	}
	require.Empty(t, regexp.MustCompile(`(?i)<(link|iframe|object|embed|base)\b|<script[^>]*\bsrc=|@import|\burl\(`).FindString(html))
	require.Equal(t, 1, strings.Count(html, "Content-Security-Policy"))
}

// TestFiguresSayWhatTheyShow, with and without scripts.
func TestFiguresSayWhatTheyShow(t *testing.T) {
	html := written(t, atlas()[0])
	for _, want := range []string{
		`aria-label="Chart: Loss"`, `aria-describedby="chart-1-text"`, `id="chart-1-text">The loss of both models on the same batches.`,
		"<noscript>", "<title>Loss</title>", "FP8: 1 of 300 points not shown (not finite).", "<summary>Data as a table</summary>", "200 of 300 rows, evenly chosen.",
	} {
		require.Contains(t, html, want)
	}
	hostile := chart.Chart{Title: `</script><b>`, X: `<i>`, Series: []chart.Series{{Name: `</noscript><u>`, Points: []chart.Point{{X: 1, Y: 2}, {X: 2, Y: 3}}}, {Name: "b", Points: []chart.Point{{X: 1, Y: 2}}}}}
	html = written(t, hostile)
	for _, never := range []string{`</script><b>`, `</noscript><u>`, "<i>"} {
		require.NotContains(t, html, never)
	}
}

func TestRepeat(t *testing.T) {
	var b bytes.Buffer
	p := Page{Style: "<style>p { color: red }</style>"}
	p.Repeat("octavo a&b", "a machine")
	require.NoError(t, p.Write(&b, ""))
	head, body, _ := strings.Cut(b.String(), "</head>")
	require.Contains(t, head, "p { color: red }")
	require.Contains(t, body, "<code>octavo a&amp;b</code>")
}

// TestAxesAreNamedOnce where scripts are off: by the picture.
func TestAxesAreNamedOnce(t *testing.T) {
	head, _, _ := strings.Cut(written(t, atlas()[0]), "</head>")
	const without = "<noscript><style>figure.chart .above, figure.chart .axis-x"
	require.Contains(t, head, without)
	require.Greater(t, strings.Index(head, without), strings.LastIndex(head, "figure.chart .above { display: flex"), "the later rule counts")
}
