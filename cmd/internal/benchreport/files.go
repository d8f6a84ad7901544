package benchreport

import (
	"fmt"
	"io"

	"github.com/octavo-fp8/octavo/cmd/internal/machine"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/cmd/internal/roofline"
	"github.com/octavo-fp8/octavo/internal/jsonout"
)

// pageName is the file with the page.
const pageName = "index.html"

// Files are the names of what either AddFiles may add.
func Files() []string {
	return []string{pageName, "bench.json", "roofline.svg", "roofline.png", ratiosName}
}

// AddFiles adds the page, the JSON and, if there are products, the plots to what a run
// writes.
func (r Result) AddFiles(run *outdir.Run) error {
	files := map[string]func(io.Writer) error{
		pageName:     r.writePage,
		"bench.json": func(w io.Writer) error { return jsonout.Print(w, r) },
	}
	if len(r.Products) > 0 {
		figure := roofline.New(r.Report, r.machine())
		files["roofline.svg"], files["roofline.png"] = figure.WriteSVG, figure.WritePNG
	}
	for _, name := range Files() {
		if write, ok := files[name]; ok {
			if err := run.Add(name, write); err != nil {
				return err
			}
		}
	}
	return nil
}

// Manifest says what the run of a directory is.
func (r Result) Manifest() outdir.Manifest {
	return outdir.Manifest{Kind: "bench", Command: r.Command, Machine: r.machine()}
}

// machine says what was measured, on what.
func (r Result) machine() string { return machineText(r.Machine) }

func machineText(v machine.Info) string {
	return fmt.Sprintf("%s, GOMAXPROCS %d, level %s", v.Platform(), v.GOMAXPROCS, v.Level)
}
