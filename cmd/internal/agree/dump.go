package agree

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/oracle/judge/agree"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Ends of the names of what is recorded of a module.
const (
	inputEnd  = ".input"
	outputEnd = ".output"
	passesEnd = ".passes"
)

// Keys of the metadata of a dump.
const (
	recipeKey  = "recipe"
	engineKey  = "engine"
	excludeKey = "exclude"
	passesName = "passes" // of all modules that have none of their own
)

// dump is what an engine recorded: safetensors files, arrays of NumPy, or both.
type dump struct {
	path    string
	files   []*safetensors.File
	tensors map[string]recordedIn
	meta    map[string]string
}

// recordedIn is where a tensor is: in a file, or an array of NumPy.
type recordedIn struct {
	file *safetensors.File
	path string
}

// openDump opens a file, or a directory with files.
func openDump(path string) (d *dump, err error) {
	d = &dump{path: path, tensors: map[string]recordedIn{}, meta: map[string]string{}}
	defer func() {
		if err != nil {
			d.close()
		}
	}()
	paths := []string{path}
	stat, err := os.Stat(path)
	if err != nil {
		return d, err
	}
	if stat.IsDir() {
		entries, err := os.ReadDir(path)
		if err != nil {
			return d, err
		}
		paths = nil
		for _, e := range entries {
			if kind := filepath.Ext(e.Name()); kind == ".safetensors" || kind == ".npy" {
				paths = append(paths, filepath.Join(path, e.Name()))
			}
		}
		if paths == nil {
			return d, fmt.Errorf("%s: there is no safetensors file and no .npy", textout.Name(path))
		}
	}
	for _, p := range paths {
		if err := d.add(p); err != nil {
			return d, err
		}
	}
	return d, nil
}

func (d *dump) add(path string) error {
	names, in := []string{strings.TrimSuffix(filepath.Base(path), ".npy")}, recordedIn{path: path}
	if filepath.Ext(path) != ".npy" {
		f, err := safetensors.Open(path)
		if err != nil {
			return err
		}
		d.files, in, names = append(d.files, f), recordedIn{file: f}, nil
		for _, info := range f.Tensors() {
			names = append(names, info.Name)
		}
		for k, v := range f.Metadata() {
			d.meta[k] = v
		}
	}
	for _, name := range names {
		if d.has(name) {
			return fmt.Errorf("%s: tensor %s is in several files", textout.Name(d.path), textout.Quoted(name))
		}
		d.tensors[name] = in
	}
	return nil
}

func (d *dump) close() {
	for _, f := range d.files {
		f.Close()
	}
}

func (d *dump) has(name string) bool { _, ok := d.tensors[name]; return ok }

// records reports whether the dump has input and output of a module.
func (d *dump) records(module string) bool { return d.has(module+inputEnd) && d.has(module+outputEnd) }

// modules returns the names of modules of which the dump has input and output, in order, and
// those of which it lacks one.
func (d *dump) modules() (whole, half []string) {
	for name := range d.tensors {
		if m, ok := strings.CutSuffix(name, inputEnd); ok && d.records(m) {
			whole = append(whole, m)
		} else if m, isOutput := strings.CutSuffix(name, outputEnd); (ok || isOutput) && !d.records(m) {
			half = append(half, strings.TrimSuffix(m, inputEnd))
		}
	}
	slices.Sort(whole)
	slices.Sort(half)
	return whole, half
}

// errNone is of what is not in a dump.
var errNone = errors.New("there is none")

func (d *dump) find(name string) (operands.Tensor, error) {
	switch in, ok := d.tensors[name]; {
	case !ok:
		return operands.Tensor{}, errNone
	case in.file == nil:
		return (&operands.Source{BFloat16: true}).Find(in.path) // NumPy has no bfloat16
	default:
		info, _ := in.file.Info(name)
		return operands.Tensor{Info: info, File: in.file}, nil
	}
}

// recorded is a matrix of a dump.
type recorded struct {
	values     []float32
	rows, cols int
	of         agree.Type
}

func (r *recorded) row(i int) []float32 { return r.values[i*r.cols : (i+1)*r.cols] }

// read reads a matrix: all dimensions but the last are rows.
func (d *dump) read(name string) (r recorded, err error) {
	t, err := d.find(name)
	if err != nil {
		return r, err
	}
	switch t.DType {
	case safetensors.F32, safetensors.F16, safetensors.BF16:
	default:
		return r, fmt.Errorf("%s: tensor %s is %s: want F32, F16 or BF16 (<f4, <f2 or <u2)", textout.Name(d.path), textout.Quoted(name), t.DType)
	}
	if len(t.Shape) == 0 {
		return r, fmt.Errorf("%s: %s has no dimension: want tokens and columns", textout.Name(d.path), textout.Quoted(name))
	}
	if r.values, err = t.File.Float32s(t.Name); err != nil {
		return r, err
	}
	if r.cols = t.Shape[len(t.Shape)-1]; r.cols > 0 {
		r.rows = len(r.values) / r.cols
	}
	r.of = agree.Narrowest(r.values, agree.Type(t.DType))
	return r, nil
}

// whole reads a list of whole numbers.
func (d *dump) whole(name string) (all []int, err error) {
	t, err := d.find(name)
	if err != nil {
		return nil, err
	}
	var values []int64
	switch t.DType {
	case safetensors.I32:
		var narrow []int32
		narrow, err = safetensors.Elements[int32](t.File, t.Name)
		for _, v := range narrow {
			values = append(values, int64(v))
		}
	case safetensors.I64:
		values, err = safetensors.Elements[int64](t.File, t.Name)
	default:
		err = fmt.Errorf("%s: tensor %s is %s: want I32 or I64", textout.Name(d.path), textout.Quoted(name), t.DType)
	}
	for _, v := range values {
		if v < math.MinInt32 || v > math.MaxInt32 {
			return nil, fmt.Errorf("%s: %s has %d", textout.Name(d.path), textout.Quoted(name), v)
		}
		all = append(all, int(v))
	}
	return all, err
}

// Files returns the files of a dump at a path.
func Files(path string) (files []string) {
	_ = filepath.WalkDir(path, func(p string, d fs.DirEntry, err error) error { // a wrong path is complained about later
		if err == nil && !d.IsDir() {
			files = append(files, p)
		}
		return nil
	})
	return files
}
