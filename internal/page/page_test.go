package page

import (
	"errors"
	"html/template"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWrite has everything in its place, escaped.
func TestWrite(t *testing.T) {
	page := New("test", `{{define "style"}}<style>h1 { color: red }</style>{{end}}<h1>{{.}}</h1>{{shout "x"}}`, template.FuncMap{"shout": strings.ToUpper})
	var b strings.Builder
	require.NoError(t, page.Write(&b, "a < b", "c & d"))
	text := b.String()
	require.True(t, strings.HasPrefix(text, "<!DOCTYPE html>\n"))
	for _, want := range []string{"<title>a &lt; b</title>", "</style>\n<style>h1 { color: red }</style>\n</head>", "<main>\n<h1>c &amp; d</h1>X\n</main>\n<script>\n(() => {", "default-src 'none'"} {
		require.Contains(t, text, want)
	}
	require.Equal(t, 2, strings.Count(text, "<style>"))

	p, err := page.Page("", "", template.FuncMap{"shout": func(string) string { return "replaced" }})
	require.NoError(t, err)
	p.Before, p.After, p.Library, p.Script = "<!-- before -->", "<!-- after -->", "library()", "script()"
	b.Reset()
	require.NoError(t, p.Write(&b))
	for _, want := range []string{"replaced", "<!-- before --><style>", "</style>\n<!-- after --><style>", "<script>library()</script>\n<script>", "\nscript()})();"} {
		require.Contains(t, b.String(), want)
	}
	b.Reset()
	require.NoError(t, page.Write(&b, "", ""))
	require.Contains(t, b.String(), "X\n</main>", "what a page replaces stays in the template")
}

// TestFailure writes nothing.
func TestFailure(t *testing.T) {
	page := New("test", `<h1>{{fail}}</h1>`, template.FuncMap{"fail": func() (string, error) { return "", errors.New("no") }})
	var b strings.Builder
	require.ErrorContains(t, page.Write(&b, "", nil), "no")
	require.Empty(t, b.String())
	require.Panics(t, func() { _ = New("wrong", `{{`, nil).Write(io.Discard, "", nil) })
}
