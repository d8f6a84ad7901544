package benchreport

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/cmd/internal/machine"
)

// ratiosName is the file with a RatioTable.
const ratiosName = "ratios.json"

// RatioTable is what later runs are compared with: ratios, which a machine's other
// users move less than times, and on what they were measured.
type RatioTable struct {
	Version int                `json:"version"` // 1
	Note    string             `json:"note"`    // for whoever keeps the table to fill in
	Date    string             `json:"date"`
	Command string             `json:"command"`
	Machine machine.Info       `json:"machine"`
	BLAS    string             `json:"blas"`
	Core    string             `json:"core"`
	OneDNN  string             `json:"oneDNN"`
	Spread  float64            `json:"spread"`
	Limit   float64            `json:"limitSeconds"`
	Ratios  []bench.RatioEntry `json:"ratios"`
}

func (r PeerResult) ratioTable() RatioTable {
	t := RatioTable{
		Version: 1, Date: r.Date, Command: r.Command, Machine: r.Machine,
		BLAS: r.Program.BLAS, Core: r.Program.Core, OneDNN: r.Program.OneDNN,
		Spread: r.Spread, Limit: r.Limit, Ratios: r.Ratios(),
	}
	for i := range t.Ratios {
		e := &t.Ratios[i]
		for _, x := range []*float64{&e.Median, &e.Low, &e.High, &e.Best} {
			*x = round4(*x)
		}
	}
	return t
}

// round4 returns x with four digits.
func round4(x float64) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64)
	if err != nil {
		return x
	}
	return y
}

// write writes the table with a ratio in each line, so that people and git can read it.
func (t RatioTable) write(w io.Writer) error {
	ratios := t.Ratios
	t.Ratios = []bench.RatioEntry{}
	head, err := json.MarshalIndent(t, "", "  ")
	if err != nil {
		return err
	}
	const end = "[]\n}"
	if _, err := w.Write(append(head[:len(head)-len(end)], '[')); err != nil {
		return err
	}
	for i, r := range ratios {
		line, err := json.Marshal(r)
		if err != nil {
			return err
		}
		comma := ","
		if i == 0 {
			comma = ""
		}
		if _, err := fmt.Fprintf(w, "%s\n    %s", comma, line); err != nil {
			return err
		}
	}
	_, err = io.WriteString(w, "\n  ]\n}\n")
	return err
}

// ReadRatios reads a table of ratios.
func ReadRatios(text []byte) (RatioTable, error) {
	var t RatioTable
	if err := json.Unmarshal(text, &t); err != nil {
		return t, fmt.Errorf("it is no table of ratios: %w", err)
	}
	if t.Version != 1 {
		return t, fmt.Errorf("it is a table of ratios of version %d: this octavo reads version 1", t.Version)
	}
	if len(t.Ratios) == 0 {
		return t, errors.New("it has no ratios")
	}
	for i, r := range t.Ratios {
		if !(0 < r.Low && r.Low <= r.Median && r.Median <= r.High) || math.IsInf(r.High, 0) {
			return t, fmt.Errorf("ratio %d, of %.60q to %.60q, makes no sense", i, r.What, r.To)
		}
	}
	return t, nil
}
