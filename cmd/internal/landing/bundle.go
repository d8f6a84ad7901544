package landing

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/memory"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/tensor"
)

// The files of a bundle.
const (
	ManifestFile  = "landing.json"
	OperatorFile  = "operator.safetensors"
	TelemetryFile = "telemetry.jsonl"
	PageFile      = "index.html"
)

// Files returns the names of all files of a bundle.
func Files() []string { return []string{PageFile, ManifestFile, OperatorFile, TelemetryFile} }

// Version is that of bundles which this package writes and reads.
const Version = 1

// Manifest is what a bundle says besides its tensors.
type Manifest struct {
	Version int    `json:"version"`
	Command string `json:"command"` // that repeats the run
	Machine string `json:"machine"`
	Text    string `json:"text"`       // what it learned from
	TextSHA string `json:"textSHA256"` // of that

	Step  int      `json:"step"` // in which the run stopped
	Cause string   `json:"cause"`
	First *First   `json:"firstNonFinite,omitempty"` // in time, of that step
	Found Found    `json:"found"`                    // in the operator
	Lines []Moment `json:"timeline"`

	Operator *OperatorJSON `json:"operator,omitempty"` // none: nothing was multiplied in FP8
}

// First is a value that is NaN or infinite.
type First struct {
	Tensor string         `json:"tensor"`
	Index  int            `json:"index"`
	Row    int            `json:"row"`
	Col    int            `json:"col"`
	Value  jsonout.Number `json:"value"`
}

// Found is a [Finding].
type Found struct {
	Of     string         `json:"of,omitempty"`
	Tensor string         `json:"tensor,omitempty"`
	Index  int            `json:"index"`
	Row    int            `json:"row"`
	Col    int            `json:"col"`
	Value  jsonout.Number `json:"value"`
	Why    string         `json:"why"`
}

// Moment is what happened in a step.
type Moment struct {
	Step int    `json:"step"`
	What string `json:"what"`
}

// OperatorJSON describes an [Operator], whose arrays are in a file.
type OperatorJSON struct {
	Name   string      `json:"name"`
	Op     string      `json:"op"`
	A      OperandJSON `json:"a"`
	B      OperandJSON `json:"b"`
	SHA256 string      `json:"sha256"` // of the file
}

// OperandJSON describes an [Operand].
type OperandJSON struct {
	Name        string             `json:"name"`
	Rows        int                `json:"rows"`
	Cols        int                `json:"cols"`
	Format      fp8.Format         `json:"format"`
	Block       tensor.Block       `json:"block"`
	ScaleFormat tensor.ScaleFormat `json:"scaleFormat"`
	OuterRows   int                `json:"outerRows,omitempty"`
	OuterDivide bool               `json:"outerDivide,omitempty"`
	Recipe      RecipeJSON         `json:"recipe"`
}

// RecipeJSON is a [scaling.Recipe] but for its history, of which the bundle has multipliers.
type RecipeJSON struct {
	Profile   scaling.Profile `json:"profile"`
	Format    fp8.Format      `json:"format"`
	Block     tensor.Block    `json:"block"`
	Epsilon   float32         `json:"epsilon,omitempty"`
	OuterRows int             `json:"outerRows,omitempty"`
	Overflow  fp8.Overflow    `json:"overflow"`
	Inf       fp8.Inf         `json:"inf"`
	NaN       fp8.NaN         `json:"nan"`
	Zero      fp8.Zero        `json:"zero"`
	Rounding  fp8.Rounding    `json:"rounding"`
	Quotient  fp8.Quotient    `json:"quotient"`
	Seed      uint64          `json:"seed,string"`
}

func recipeJSON(r scaling.Recipe) RecipeJSON {
	p := r.Policy
	return RecipeJSON{
		r.Profile, r.Format, r.Block, r.Epsilon, r.OuterRows,
		p.Overflow, p.Inf, p.NaN, p.Zero, p.Rounding, p.Quotient, p.Seed,
	}
}

func (r RecipeJSON) recipe() scaling.Recipe {
	return scaling.Recipe{
		Profile: r.Profile, Format: r.Format, Block: r.Block, Epsilon: r.Epsilon, OuterRows: r.OuterRows,
		Policy: fp8.Policy{
			Overflow: r.Overflow, Inf: r.Inf, NaN: r.NaN, Zero: r.Zero, Rounding: r.Rounding,
			Quotient: r.Quotient, Seed: r.Seed,
		},
	}
}

func operandJSON(o Operand) OperandJSON {
	rows, cols := o.Tensor.Dims()
	return OperandJSON{
		o.Tensor.Name, rows, cols, o.Tensor.Format, o.Tensor.Block, o.Tensor.ScaleFormat,
		o.Tensor.Outer.Rows, o.Tensor.Outer.Divide, recipeJSON(o.Recipe),
	}
}

// SetFirst and SetOperator fill in what a [Recorder] kept.
func (m *Manifest) SetFirst(v *Value) {
	if v != nil {
		m.First = &First{v.Tensor, v.Index, v.Row, v.Col, jsonout.Number(v.Value)}
	}
}

// SetOperator describes an operator, which may be nil, and returns the file of its arrays.
func (m *Manifest) SetOperator(o *Operator) ([]byte, error) {
	m.Found.Why = "no product in FP8 was computed in this step"
	var arrays []safetensors.Tensor
	if o != nil {
		f := o.Explain()
		m.Found = Found{f.Of, f.Tensor, f.Index, f.Row, f.Col, jsonout.Number(f.Value.Value), f.Why}
		arrays = append(o.A.arrays("a"), o.B.arrays("b")...)
		rows, _ := o.A.Tensor.Dims()
		cols, _ := o.B.Tensor.Dims()
		arrays = append(arrays, floats("result", o.Result, rows, cols))
	}
	file, err := safetensors.Encode(arrays, nil)
	if err != nil {
		return nil, err
	}
	if o != nil {
		m.Operator = &OperatorJSON{o.Name, o.Op, operandJSON(o.A), operandJSON(o.B), sumOf(file)}
	}
	return file, nil
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// arrays returns those of an operand.
func (o *Operand) arrays(name string) (all []safetensors.Tensor) {
	rows, cols := o.Tensor.Dims()
	codes := safetensors.New(name+".codes", safetensors.U8, []int{rows, cols}, o.Tensor.Codes)
	all = append(all, codes, floats(name+".scales", o.Tensor.Scales, len(o.Tensor.Scales)))
	if outer := o.Tensor.Outer.Scales; outer != nil {
		all = append(all, floats(name+".outer_scales", outer, len(outer)))
	}
	if o.Values != nil {
		all = append(all, floats(name+".values", o.Values, rows, cols))
	}
	if o.Multipliers != nil {
		all = append(all, floats(name+".multipliers", o.Multipliers, len(o.Multipliers)))
	}
	return all
}

func floats(name string, values []float32, shape ...int) safetensors.Tensor {
	return safetensors.New(name, safetensors.F32, shape, values)
}

// Bundle is what was read of one.
type Bundle struct {
	Manifest
	Operator *Operator // nil: there is none
}

const maxManifest = 1 << 24

// Read reads the bundle in a directory.
func Read(dir string) (*Bundle, error) {
	path := filepath.Join(dir, ManifestFile)
	text, err := inputfile.ReadAll(path, maxManifest)
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", textout.Name(path), err)
	}
	b := &Bundle{Manifest: m}
	if m.Operator == nil {
		return b, nil
	}
	path = filepath.Join(dir, OperatorFile)
	data, err := inputfile.ReadAll(path, memory.Limit()/4)
	if err != nil {
		return nil, err
	}
	if sum := sumOf(data); sum != m.Operator.SHA256 {
		return nil, fmt.Errorf("%s: its SHA-256 is %s, and %s says %.64s: copy the bundle again",
			textout.Name(path), sum, ManifestFile, m.Operator.SHA256)
	}
	if b.Operator, err = m.Operator.read(data); err != nil {
		return nil, fmt.Errorf("%s: %w", textout.Name(path), err)
	}
	return b, nil
}

func parseManifest(text []byte) (m Manifest, err error) {
	var of struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return m, fmt.Errorf("it is not what octavo train --landing writes: %w", err)
	}
	if of.Version != Version {
		return m, fmt.Errorf("version is %d: this octavo reads version %d", of.Version, Version)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return m, decoder.Decode(&m)
}

// read reads the arrays of an operator.
func (j *OperatorJSON) read(data []byte) (o *Operator, err error) {
	f, err := safetensors.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return nil, err
	}
	o = &Operator{Name: j.Name, Op: j.Op}
	if o.A, err = j.A.read(f, "a"); err != nil {
		return nil, err
	}
	if o.B, err = j.B.read(f, "b"); err != nil {
		return nil, err
	}
	if j.A.Cols != j.B.Cols {
		return nil, fmt.Errorf("operands have %d and %d columns: want as many", j.A.Cols, j.B.Cols)
	}
	o.Result, err = array(f, "result", j.A.Rows, j.B.Rows)
	return o, err
}

func (j *OperandJSON) read(f *safetensors.File, name string) (o Operand, err error) {
	codes, ok := f.Info(name + ".codes")
	if !ok || codes.DType != safetensors.U8 || !slices.Equal(codes.Shape, []int{j.Rows, j.Cols}) {
		return o, fmt.Errorf("tensor %s.codes: want U8 [%d %d]", name, j.Rows, j.Cols)
	}
	t := &tensor.Tensor{
		Name: j.Name, Format: j.Format, Shape: []int{j.Rows, j.Cols}, Block: j.Block, ScaleFormat: j.ScaleFormat,
	}
	if t.Codes, err = f.Bytes(name + ".codes"); err != nil {
		return o, err
	}
	if t.Scales, err = f.Float32s(name + ".scales"); err != nil {
		return o, err
	}
	if _, ok := f.Info(name + ".outer_scales"); ok {
		t.Outer = tensor.Outer{Rows: j.OuterRows, Divide: j.OuterDivide}
		if t.Outer.Scales, err = f.Float32s(name + ".outer_scales"); err != nil {
			return o, err
		}
	}
	if err := t.Check(); err != nil {
		return o, err
	}
	o = Operand{Tensor: t, Recipe: j.Recipe.recipe()}
	if err := o.Recipe.Check(); err != nil {
		return o, err
	}
	if _, ok := f.Info(name + ".values"); ok {
		if o.Values, err = array(f, name+".values", j.Rows, j.Cols); err != nil {
			return o, err
		}
	}
	if _, ok := f.Info(name + ".multipliers"); ok {
		o.Multipliers, err = array(f, name+".multipliers", len(t.Scales))
	}
	if err == nil && o.Recipe.Profile.Delayed() != (o.Multipliers != nil) && o.Values != nil {
		err = fmt.Errorf("tensor %s.multipliers: profile %s wants it there only where its scales are delayed",
			name, o.Recipe.Profile)
	}
	return o, err
}

// array reads F32 of a shape.
func array(f *safetensors.File, name string, shape ...int) ([]float32, error) {
	info, ok := f.Info(name)
	if !ok || info.DType != safetensors.F32 || !slices.Equal(info.Shape, shape) {
		return nil, fmt.Errorf("tensor %s: want F32 %v", name, shape)
	}
	return f.Float32s(name)
}
