package explore

import (
	"errors"
	"fmt"
	"io"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/page"
)

// Request is what people chose.
type Request struct {
	Values   string // as typed; without meaning where there is a file
	Tensor   string // of the file
	Format   fp8.Format
	Policy   fp8.Policy // of the value looked at
	At       int        // which that is
	Method   string     // of smoothing
	Strength float64    // of SmoothQuant
}

// Answer is what the page shows: its parts, by the names of their elements.
type Answer struct {
	Parts   map[string]page.HTML
	Tensors []string // of the file, to choose from
	Tensor  string   // that is shown
	Values  int      // how many there are
}

// First is the request that the page begins with.
func First() Request {
	return Request{Values: Example(), At: 1, Method: methods[0].name, Strength: 0.5}
}

// Explore answers a request, which comes with a file or nil.
func Explore(q Request, file *io.SectionReader) (*Answer, error) {
	if !q.Format.Valid() {
		return nil, fmt.Errorf("unknown format %v", q.Format)
	}
	if err := q.Policy.Check(); err != nil {
		return nil, err
	}
	if !(q.Strength >= 0 && q.Strength <= 1) {
		return nil, errors.New("the strength must be from 0 to 1")
	}
	m, err := parseOrRead(q, file)
	if err != nil {
		return nil, err
	}
	plain, err := byBlock(m, q.Format)
	if err != nil {
		return nil, err
	}
	profiles, err := byProfile(m, q.Format)
	if err != nil {
		return nil, err
	}
	smoothed, err := smoothen(m, q.Method, q.Strength, plain)
	if err != nil {
		return nil, err
	}
	at := min(max(q.At, 1), len(m.values))
	a := &Answer{Tensors: m.tensors, Tensor: m.tensor, Values: len(m.values), Parts: map[string]page.HTML{}}
	part := func(name string, put func(*page.Body)) {
		var b page.Body
		put(&b)
		a.Parts[name] = b.HTML()
	}
	part("finding", func(b *page.Body) { b.Put("%s", finding(m, plain)) })
	part("about", func(b *page.Body) { b.Put("%s", m.about) })
	part("blocks", func(b *page.Body) { putBlocks(b, m, plain) })
	part("profiles", func(b *page.Body) { putProfiles(b, profiles) })
	part("smoothing", func(b *page.Body) { smoothed.put(b, m) })
	part("value", func(b *page.Body) { putValue(b, at, m.values[at-1], q.Format, q.Policy) })
	part("codes", func(b *page.Body) { putCodes(b, m, q.Policy) })
	return a, nil
}

func parseOrRead(q Request, file *io.SectionReader) (*matrix, error) {
	if file != nil {
		return read(file, q.Tensor)
	}
	return parse(q.Values)
}

// putCodes adds a table of the codes of the first values in all formats.
func putCodes(b *page.Body, m *matrix, p fp8.Policy) {
	const rows = 16
	values := m.values[:min(len(m.values), rows)]
	codes := make([][]byte, len(kinds))
	columns := append(page.Columns(page.Number, "no."), page.Columns(page.Number, "value")...)
	for i, k := range kinds {
		codes[i] = make([]byte, len(values))
		k.encode(codes[i], values, p)
		columns = append(columns, page.Column{Name: k.name, Attributes: page.Number})
	}
	t := page.Table{Label: "Codes of the values in all formats", Columns: columns}
	for i, x := range values {
		row := []any{i + 1, number(x)}
		for j := range kinds {
			row = append(row, fmt.Sprintf("%02X", codes[j][i]))
		}
		t.Rows = append(t.Rows, row)
	}
	if len(values) < len(m.values) {
		b.Put("<p class=\"note\">Those of the first %s of %s values.</p>\n", rows, len(m.values))
	}
	b.Put("<div class=\"dense\">")
	b.Table(t)
	b.Put("</div>")
}
