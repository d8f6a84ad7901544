package benchreport

import (
	"fmt"
	"io"
	"path/filepath"

	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/cmd/internal/roofline"
	"github.com/octavo-fp8/octavo/internal/atomicfile"
)

// WriteFiles writes the plots, if there are products, and the JSON.
func (r Result) WriteFiles(dir string) error {
	if err := atomicfile.Write(filepath.Join(dir, "bench.json"), func(w io.Writer) error { return jsonout.Print(w, r) }); err != nil {
		return err
	}
	if len(r.Products) == 0 {
		return nil
	}
	figure := roofline.New(r.Report, r.machine())
	if err := atomicfile.Write(filepath.Join(dir, "roofline.svg"), figure.WriteSVG); err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, "roofline.png"), figure.WritePNG)
}

// machine says what was measured, on what.
func (r Result) machine() string {
	v := r.Machine
	return fmt.Sprintf("octavo %s, %s, %s/%s, GOMAXPROCS %d, level %s", v.Version, v.Go, v.OS, v.Arch, v.GOMAXPROCS, v.Level)
}
