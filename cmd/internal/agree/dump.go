package agree

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/x448/float16"

	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/internal/halves"
	"github.com/octavo-fp8/octavo/internal/npy"
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
	tensors map[string]*safetensors.File
	arrays  map[string]string // the paths of arrays
	meta    map[string]string
}

// openDump opens a file, or a directory with files.
func openDump(path string) (d *dump, err error) {
	d = &dump{path: path, tensors: map[string]*safetensors.File{}, arrays: map[string]string{}, meta: map[string]string{}}
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
		if filepath.Ext(p) == ".npy" {
			d.arrays[strings.TrimSuffix(filepath.Base(p), ".npy")] = p
			continue
		}
		f, err := safetensors.Open(p)
		if err != nil {
			return d, err
		}
		d.files = append(d.files, f)
		for _, info := range f.Tensors() {
			if d.tensors[info.Name] != nil {
				return d, fmt.Errorf("%s: tensor %s is in several files", textout.Name(path), textout.Quoted(info.Name))
			}
			d.tensors[info.Name] = f
		}
		for k, v := range f.Metadata() {
			d.meta[k] = v
		}
	}
	return d, nil
}

func (d *dump) close() {
	for _, f := range d.files {
		f.Close()
	}
}

func (d *dump) has(name string) bool { return d.tensors[name] != nil || d.arrays[name] != "" }

// modules returns the names of modules of which the dump has input and output, in order, and
// those of which it lacks one.
func (d *dump) modules() (whole, half []string) {
	seen := map[string]bool{}
	add := func(name string) {
		for _, end := range []string{inputEnd, outputEnd} {
			if m, ok := strings.CutSuffix(name, end); ok && !seen[m] {
				seen[m] = true
				if d.has(m+inputEnd) && d.has(m+outputEnd) {
					whole = append(whole, m)
				} else {
					half = append(half, m)
				}
			}
		}
	}
	for name := range d.tensors {
		add(name)
	}
	for name := range d.arrays {
		add(name)
	}
	slices.Sort(whole)
	slices.Sort(half)
	return whole, half
}

// recorded is a matrix of a dump.
type recorded struct {
	values     []float32
	rows, cols int
	of         agree.Type
}

// read reads a matrix: all dimensions but the last are rows.
func (d *dump) read(name string) (r recorded, err error) {
	var shape []int
	if f := d.tensors[name]; f != nil {
		info, _ := f.Info(name)
		shape = info.Shape
		switch info.DType {
		case safetensors.F32, safetensors.F16, safetensors.BF16:
			r.of = agree.Type(info.DType)
		default:
			return r, fmt.Errorf("%s: tensor %s is %s: want F32, F16 or BF16", textout.Name(d.path), textout.Quoted(name), info.DType)
		}
		r.values, err = f.Float32s(name)
	} else {
		r.values, shape, r.of, err = readArray(d.arrays[name])
	}
	if err != nil {
		return r, err
	}
	if len(shape) == 0 {
		return r, fmt.Errorf("%s: %s has no dimension: want tokens and columns", textout.Name(d.path), textout.Quoted(name))
	}
	r.cols = shape[len(shape)-1]
	if r.cols > 0 {
		r.rows = len(r.values) / r.cols
	}
	r.of = agree.Narrowest(r.values, r.of)
	return r, nil
}

func readArray(path string) (values []float32, shape []int, of agree.Type, err error) {
	a, err := npy.ReadFile(path)
	if err != nil {
		return nil, nil, "", err
	}
	switch a.Type {
	case npy.Float32:
		values, of = make([]float32, len(a.Data)/4), agree.F32
		for i := range values {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(a.Data[4*i:]))
		}
	case npy.Float16, npy.Uint16: // NumPy has no bfloat16
		n := len(a.Data) / 2
		values, of = make([]float32, n), agree.F16
		if a.Type == npy.Uint16 {
			of = agree.BF16
		}
		for i := range values {
			bits := binary.LittleEndian.Uint16(a.Data[2*i:])
			if of == agree.BF16 {
				values[i] = halves.Value(fp8.BFloat16(bits))
			} else {
				values[i] = halves.Value(float16.Float16(bits))
			}
		}
	default:
		err = fmt.Errorf("%s has elements of type %q: want <f4, <f2, or <u2 for bfloat16", textout.Name(path), a.Type)
	}
	return values, a.Shape, of, err
}

// errNone is of what is not in a dump.
var errNone = errors.New("there is none")

// whole reads a list of whole numbers.
func (d *dump) whole(name string) ([]int, error) {
	f := d.tensors[name]
	if f == nil {
		return nil, errNone
	}
	info, _ := f.Info(name)
	var all []int
	switch info.DType {
	case safetensors.I32:
		values, err := safetensors.Elements[int32](f, name)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			all = append(all, int(v))
		}
	case safetensors.I64:
		values, err := safetensors.Elements[int64](f, name)
		if err != nil {
			return nil, err
		}
		for _, v := range values {
			if v < math.MinInt32 || v > math.MaxInt32 {
				return nil, fmt.Errorf("%s: %s has %d", textout.Name(d.path), textout.Quoted(name), v)
			}
			all = append(all, int(v))
		}
	default:
		return nil, fmt.Errorf("%s: tensor %s is %s: want I32 or I64", textout.Name(d.path), textout.Quoted(name), info.DType)
	}
	return all, nil
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
