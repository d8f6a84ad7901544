// Package page is the frame of HTML pages: one file each, that needs nothing else and
// loads nothing. It has no templates, because text/template keeps all methods of all
// types in a program.
package page

import (
	_ "embed"
	"io"
	"time"
)

//go:embed style.css
var sheet string

// mostNames is how many columns a table has at most whose rows are cards on phones.
const mostNames = 32

// cellNames are the rules of the names in cards.
func cellNames() (rules HTML) {
	for i := range mostNames {
		rules += Format("  table.cards td:nth-child(%s)::before { content: var(--%s); }\n", i+1, i+1)
	}
	return "@media (max-width: 40rem) {\n" + rules + "}\n"
}

//go:embed script/scheme.js
var scheme string

//go:embed script/live.js
var following string

// Live is of a page of something that goes on and that is written again and again. A browser
// shows the newest by itself, and says so where it is not written any more.
type Live struct {
	Status  string    // how far it is, behind "Running: "
	Written time.Time // zero: the page is of what has ended
	Every   time.Duration
	Late    time.Duration // after which something is wrong
}

// Put adds where it is. It is put once, into a page whose Live it is.
func (l Live) Put(b *Body) {
	b.Put(`<p class="live notice" data-written="%s" data-every="%s" data-late="%s"><strong>Running: %s</strong>, written at %s.
<span class="late" role="status"></span><noscript> While the run goes on it is written again within %s, unless a step takes longer: if more time has passed, the run may have been stopped or killed.</noscript></p>
`, l.Written.UnixMilli(), l.Every.Seconds(), l.Late.Seconds(), l.Status, l.Written.UTC().Format("2006-01-02 15:04:05 UTC"), l.Late)
}

// Page is a page and what it carries besides its frame.
type Page struct {
	Title string
	Main  HTML
	Style HTML // the end of its head

	// Before and After stand before and after the style of the frame, Library is a
	// script of its own, and Script the end of the frame's, all of whose names it sees.
	Before, After, Library, Script HTML

	WebAssembly bool // scripts may run it
	Live        Live
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	var b Body
	style, begin := p.Style, HTML("")
	if !p.Live.Written.IsZero() {
		style += Format(`<noscript><meta http-equiv="refresh" content="%s"></noscript>`, int(p.Live.Every.Seconds()))
		begin = "\n" + HTML(following) + "live.begin();\n"
	}
	runs := ""
	if p.WebAssembly {
		runs = " 'wasm-unsafe-eval'"
	}
	b.Put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'%s; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
%s<style>
%s%s</style>
%s%s
</head>
<body>
<header></header>
<main>
%s
</main>
`, HTML(runs), p.Title, p.Before, HTML(sheet), cellNames(), p.After, style, p.Main)
	if p.Library != "" {
		b.Put("<script>%s</script>\n", p.Library)
	}
	b.Put("<script>\n(() => {\n\"use strict\";\n%s", HTML(scheme))
	if p.Script != "" {
		b.Put("\n%s", p.Script)
	}
	b.Put("%s})();\n</script>\n</body>\n</html>\n", begin)
	_, err := io.WriteString(w, string(b.HTML()))
	return err
}
