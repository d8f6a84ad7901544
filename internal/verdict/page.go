package verdict

import (
	_ "embed"
	"fmt"
	"io"

	"github.com/octavo-fp8/octavo/internal/page"
)

//go:embed page.css
var style string

//go:embed page.js
var script string

// Page is the page of a verdict: a title, and beside a map of the errors what the text
// says.
type Page struct {
	Title, Outcome string

	Map     *Map
	Heading string // above the map, before what is across
	Text    page.Body
	Below   page.Body // under both

	Command, Machine string // that repeat it, as of [page.Body.Repeat]
}

// Write writes one HTML page that needs nothing else.
func (p *Page) Write(w io.Writer) error {
	var b page.Body
	b.Put("<h1 class=\"%s\">%s</h1>\n<div class=\"columns\">\n", p.Outcome, p.Title)
	hasMap := p.Map != nil && len(p.Map.Cells) > 0
	if hasMap {
		if err := p.Map.put(&b, p.Heading); err != nil {
			return err
		}
	}
	b.Put("<div class=\"text\">\n%s</div>\n</div>\n%s", p.Text.HTML(), p.Below.HTML())
	b.Repeat(p.Command, p.Machine)
	if hasMap {
		p.Map.putScript(&b)
	}
	frame := page.Page{Title: p.Title, Main: b.HTML(), Style: page.HTML("<style>\n" + style + "</style>")}
	return frame.Write(w)
}

// PutLines adds a table of lines, under a heading unless that is "".
func PutLines(b *page.Body, heading string, lines []Line) {
	if heading != "" {
		b.Put("<h2>%s</h2>\n", heading)
	}
	b.Put("<table>\n")
	for _, l := range lines {
		b.Put(`<tr><th>%s</th><td style="overflow-wrap: anywhere">%s</td></tr>`+"\n", l.Name, l.Value)
	}
	b.Put("</table>\n")
}

// PutParagraphs adds paragraphs under a heading, if there are any.
func PutParagraphs(b *page.Body, heading string, texts []string) {
	if len(texts) > 0 {
		b.Put("<h2>%s</h2>\n", heading)
		page.Each(b, "<p>%s</p>\n", texts)
	}
}

// PutList adds a list under a heading, if there is anything in it; a long one is folded.
func PutList(b *page.Body, heading string, texts []string) {
	if len(texts) == 0 {
		return
	}
	var list page.Body
	list.Put("<ul>")
	page.Each(&list, "<li>%s</li>\n", texts)
	list.Put("</ul>\n")
	b.Put("<h2>%s</h2>\n", heading)
	if len(texts) <= 20 {
		b.Put("%s", list.HTML())
		return
	}
	Fold(b, fmt.Sprintf("All %d", len(texts)), list.HTML())
}

// Fold adds what shows when it is asked for.
func Fold(b *page.Body, summary string, html page.HTML) {
	b.Put("<details><summary>%s</summary>\n%s</details>\n", summary, html)
}
