package quantize

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/cmd/internal/textout"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/scaling"
)

// Summary says what became of a file.
type Summary struct {
	Input           string          `json:"input"`
	Output          string          `json:"output"`
	Profile         scaling.Profile `json:"profile"`
	Format          string          `json:"format"`
	Block           string          `json:"block"`
	Quantized       TensorCount     `json:"quantized"`
	Copied          TensorCount     `json:"copied"`
	Elements        int64           `json:"elements"`  // quantized
	Saturated       int64           `json:"saturated"` // of Elements, as the two below
	Flushed         int64           `json:"flushed"`
	BecameNonFinite int64           `json:"becameNonFinite"` // though finite
	NonFinite       []NonFinite     `json:"nonFinite"`
	BytesRead       int64           `json:"bytesRead"` // tensor data, each byte counted once
	Seconds         jsonout.Number  `json:"seconds"`
	Rate            jsonout.Number  `json:"gigabytesPerSecond"` // BytesRead / Seconds / 1e9
}

// TensorCount counts tensors and the bytes of their data.
type TensorCount struct {
	Tensors     int   `json:"tensors"`
	BytesBefore int64 `json:"bytesBefore"`
	BytesAfter  int64 `json:"bytesAfter"`
}

// NonFinite names the first value of a tensor that is NaN or infinite.
type NonFinite struct {
	Tensor string         `json:"tensor"`
	Shape  []int          `json:"shape"`
	Index  int            `json:"index"` // row-major
	Value  jsonout.Number `json:"value"`
	Count  int64          `json:"count"` // of values that are not finite
}

func (n NonFinite) String() string {
	return fmt.Sprintf("tensor %q: element %d of shape %v is %v; %d of its values are not finite",
		n.Tensor, n.Index, n.Shape, float64(n.Value), n.Count)
}

func (s *Summary) add(st *fp8.Stats) {
	s.Elements += st.Elements
	s.Saturated += st.Saturated()
	s.Flushed += st.Flushed
	s.BecameNonFinite += st.BecameNonFinite
}

func (s *Summary) took(d time.Duration) {
	s.Seconds = jsonout.Number(d.Seconds())
	s.Rate = jsonout.Number(float64(s.BytesRead) / d.Seconds() / 1e9)
}

// WriteText writes the summary for people.
func (s *Summary) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s %s, block %s\n\n", textout.Name(s.Output), s.Profile, s.Format, s.Block)
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\ttensors\tbytes before\tbytes after\t")
	all := TensorCount{}
	for _, row := range []struct {
		name  string
		count TensorCount
	}{{"quantized", s.Quantized}, {"copied", s.Copied}} {
		row.count.print(table, row.name)
		all.Tensors += row.count.Tensors
		all.BytesBefore += row.count.BytesBefore
		all.BytesAfter += row.count.BytesAfter
	}
	all.print(table, "all")
	if err := table.Flush(); err != nil {
		return err
	}
	became := ""
	if s.BecameNonFinite > 0 {
		became = fmt.Sprintf(", %s became NaN or infinite", textout.Share(s.BecameNonFinite, s.Elements))
	}
	_, err := fmt.Fprintf(w, "\nof %d values quantized: %s saturated, %s flushed to zero%s\n%d bytes read in %.3g s: %.3g GB/s\n",
		s.Elements, textout.Share(s.Saturated, s.Elements), textout.Share(s.Flushed, s.Elements), became, s.BytesRead, s.Seconds, s.Rate)
	return err
}

func (c TensorCount) print(w io.Writer, name string) {
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t\n", name, c.Tensors, c.BytesBefore, c.BytesAfter)
}
