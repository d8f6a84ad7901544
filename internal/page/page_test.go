package page

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func written(t *testing.T, p Page) string {
	var b strings.Builder
	require.NoError(t, p.Write(&b))
	return b.String()
}

// TestWrite has everything in its place, escaped.
func TestWrite(t *testing.T) {
	var b Body
	b.Put("<h1>%s</h1>%s", "c & d", HTML("<br>"))
	text := written(t, Page{Title: "a < b", Main: b.HTML(), Style: "<style>h1 { color: red }</style>"})
	require.True(t, strings.HasPrefix(text, "<!DOCTYPE html>\n"))
	for _, want := range []string{"<title>a &lt; b</title>", "</style>\n<style>h1 { color: red }</style>\n</head>", "<main>\n<h1>c &amp; d</h1><br>\n</main>\n<script>\n(() => {", "default-src 'none'"} {
		require.Contains(t, text, want)
	}
	require.Equal(t, 2, strings.Count(text, "<style>"))
	require.NotContains(t, text, "%!", "each verb has its value")
	require.NotContains(t, text, "wasm")
	require.Contains(t, written(t, Page{WebAssembly: true}), "script-src 'unsafe-inline' 'wasm-unsafe-eval';")

	text = written(t, Page{Before: "<!-- before -->", After: "<!-- after -->", Library: "library()", Script: "script()"})
	for _, want := range []string{"<!-- before --><style>", "</style>\n<!-- after -->\n</head>", "<script>library()</script>\n<script>", "\nscript()})();"} {
		require.Contains(t, text, want)
	}
}

// TestTable: names and cells are escaped, numbers marked.
func TestTable(t *testing.T) {
	var b Body
	b.Table(Table{Label: `"it"`, Class: "figures", Columns: append(Columns("", "<a>", ""), Columns(Number, "n")...), Rows: [][]any{{"x & y", "", 5}, {HTML("<b>z</b>"), "", 1.5}}})
	require.Equal(t, HTML(`<div class="wide" tabindex="0" role="region" aria-label="&#34;it&#34;"><table class="figures">
<thead><tr><th>&lt;a&gt;</th><td></td><th class="number">n</th></tr></thead>
<tbody><tr><td>x &amp; y</td><td></td><td class="number">5</td></tr>
<tr><td><b>z</b></td><td></td><td class="number">1.5</td></tr>
</tbody></table></div>
`), b.HTML())
}

// TestCards: a table with no room on a phone says what its cells are called, for cards, but
// for a long title; one long text beside few figures has room.
func TestCards(t *testing.T) {
	long := strings.Repeat("word ", 30)
	for _, test := range []struct {
		columns []Column
		row     []any
		names   string
	}{
		{Columns("", "step", "what"), []any{12, long}, ""},
		{Columns("", "what", "why"), []any{long, long}, ""},
		{Columns("", "a", "", `"c\`, "d"), []any{"one", long, long, long}, ` style="--1:&#34;a &#34;;--3:&#34;\&#34;c\\ &#34;;--4:&#34;d &#34;;"`},
		{append(Columns(Name, "layer"), Columns(Number, "SQNR", "at")...), []any{long, 10.5, 20.25}, ` style="--2:&#34;SQNR &#34;;--3:&#34;at &#34;;"`},
		{Columns("", "a", "b", "c", "d"), []any{Format(`<span class="bad">%s</span>`, "one"), long, long, long}, ` style="--1:&#34;a &#34;;--2:&#34;b &#34;;--3:&#34;c &#34;;--4:&#34;d &#34;;"`},
		{Columns(Number, "1", "2", "3", "4", "5"), []any{0.12, 0.12, 0.12, 0.12, 0.12}, ""},
		{Columns(Number, make([]string, 33)...), make([]any, 33), ""},
	} {
		var b Body
		b.Table(Table{Class: "figures", Columns: test.columns, Rows: [][]any{test.row}})
		want := `<table class="figures">`
		if test.names != "" {
			want = `<table class="cards figures"` + test.names + `>`
		}
		require.Contains(t, string(b.HTML()), want)
	}
}
