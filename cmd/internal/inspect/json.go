package inspect

import (
	"io"
	"path/filepath"

	"github.com/octavo-fp8/octavo/internal/jsonout"
)

// head is what --json prints before the list of tensors.
type head struct {
	File     string            `json:"file"`     // the first
	Metadata map[string]string `json:"metadata"` // the first's
	Format   string            `json:"format"`   // that the recipes encode to
	Advice   Advice            `json:"advice"`
	Files    []FileReport      `json:"files"`
	LeftOut  []string          `json:"leftOut,omitempty"` // files that the index does not name
	Layout   string            `json:"layout,omitempty"`
	Totals   Totals            `json:"totals"`
	Ranking  []RankedRecipe    `json:"ranking"`
	Judge    string            `json:"judge"` // the recipe that risk is judged under
}

// WriteJSON prints the report as one object.
func (r *Report) WriteJSON(w io.Writer, v View) error {
	h := head{
		File: r.Files[0].Path, Metadata: r.Files[0].Metadata, Format: r.Format, Advice: r.Advice,
		Files: r.Files, LeftOut: r.LeftOut, Layout: r.Layout, Totals: r.Totals, Ranking: r.Ranking, Judge: string(r.Judge),
	}
	if h.Ranking == nil {
		h.Ranking = []RankedRecipe{}
	}
	return jsonout.PrintList(w, h, "tensors", func(item func(any) error) error {
		for _, t := range r.view(v) {
			if err := item(t); err != nil {
				return err
			}
		}
		return nil
	})
}

// title names the files of a report.
func (r *Report) title() string {
	if len(r.Files) == 1 {
		return r.Files[0].Path
	}
	dir := filepath.Dir(r.Files[0].Path)
	for _, f := range r.Files {
		if filepath.Dir(f.Path) != dir {
			return filepath.Base(r.Files[0].Path) + " and others"
		}
	}
	return dir
}
