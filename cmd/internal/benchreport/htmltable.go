package benchreport

// htmlTable is a crossTable for the template of the page.
type htmlTable struct {
	Name, Corner string
	Groups       []htmlGroup
	Columns      []string // nil where no column has a name
	Rows         []htmlRow
}

type htmlGroup struct {
	Name string
	Span int // columns
}

type htmlRow struct {
	Name  string
	Cells []string
}

func (t *crossTable) html(name string) htmlTable {
	h := htmlTable{Name: name, Corner: t.corner}
	named := false
	for _, g := range t.groups {
		h.Groups = append(h.Groups, htmlGroup{g.name, len(g.columns)})
		for _, c := range g.columns {
			h.Columns = append(h.Columns, c.name)
			named = named || c.name != ""
		}
	}
	if !named {
		h.Columns = nil
	}
	for _, row := range t.rows {
		r := htmlRow{Name: row}
		for _, g := range t.groups {
			for _, c := range g.columns {
				r.Cells = append(r.Cells, c.cells[row])
			}
		}
		h.Rows = append(h.Rows, r)
	}
	return h
}
