// Package page is the frame of HTML pages: one file each, that needs nothing else and
// loads nothing. It has no templates, because text/template keeps all methods of all
// types in a program.
package page

import (
	_ "embed"
	"io"
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

// Page is a page and what it carries besides its frame.
type Page struct {
	Title string
	Main  HTML
	Style HTML // the end of its head

	// Before and After stand before and after the style of the frame, Library is a
	// script of its own, and Script the end of the frame's, all of whose names it sees.
	Before, After, Library, Script HTML
}

// Write writes the page.
func (p *Page) Write(w io.Writer) error {
	var b Body
	b.Put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">
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
`, p.Title, p.Before, HTML(sheet), cellNames(), p.After, p.Style, p.Main)
	if p.Library != "" {
		b.Put("<script>%s</script>\n", p.Library)
	}
	b.Put("<script>\n(() => {\n\"use strict\";\n%s", HTML(scheme))
	if p.Script != "" {
		b.Put("\n%s", p.Script)
	}
	b.Put("})();\n</script>\n</body>\n</html>\n")
	_, err := io.WriteString(w, string(b.HTML()))
	return err
}
