package inspect

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/operands"
	"github.com/octavo-fp8/octavo/internal/tensorfile"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Input is an open file of a model.
type Input struct {
	Path string
	File *safetensors.File

	model *checkpoint.Checkpoint // that joins codes with their scales
	name  string                 // of the file in it

	problems []string          // of the model, at one of its files
	unread   map[string]string // methods of quantization that are not read, by the names of tensors
}

// weight returns the quantized weight that a tensor of the file is a part of, and which; nil if
// it is none.
func (in *Input) weight(name string) (*checkpoint.Weight, checkpoint.Role) {
	w := in.model.Weight(name)
	if w == nil || w.Scheme == nil {
		return nil, 0
	}
	for r, part := range w.Parts {
		if part.Name == name && part.File == in.name {
			return w, checkpoint.Role(r)
		}
	}
	return nil, 0 // of the same name in another file
}

// isScale reports whether a tensor is named as the scales of codes are that lie beside it, be
// they such or not.
func (in *Input) isScale(name string) bool {
	if tensorfile.IsScale(in.File, name) {
		return true
	}
	for _, s := range checkpoint.Schemes() {
		for _, part := range s.Parts[checkpoint.Scales:] {
			for _, of := range []string{"", ".weight"} { // of a module's weight, or of a parameter
				suffix := strings.TrimPrefix(part.Suffix, of)
				codes := strings.TrimPrefix(s.Parts[checkpoint.Codes].Suffix, of)
				base, ok := strings.CutSuffix(name, suffix)
				if e, found := in.model.Entry(base + codes); ok && suffix != "" && found && !operands.IsFloat(e.DType) {
					return true
				}
			}
		}
	}
	return false
}

// Close closes files.
func Close(inputs []Input) {
	for _, in := range inputs {
		in.model.Close() // which is the same for several files
	}
}

const extension = ".safetensors"

// Open opens files, and of directories the files in them whose names end in
// .safetensors, in the order of their names. A file that is named twice counts once. If
// one cannot be opened, all are closed.
func Open(paths []string) (inputs []Input, err error) {
	var known []os.FileInfo
	isKnown := func(in Input) bool {
		stat, err := os.Stat(in.Path)
		if err != nil {
			return false
		}
		if slices.ContainsFunc(known, func(k os.FileInfo) bool { return os.SameFile(k, stat) }) {
			return true
		}
		known = append(known, stat)
		return false
	}
	for _, path := range paths {
		found, err := open(path)
		if err != nil {
			Close(append(inputs, found...))
			return nil, err
		}
		if fresh := slices.DeleteFunc(slices.Clone(found), isKnown); len(fresh) > 0 {
			inputs = append(inputs, fresh...) // others of the model stay open: scales may lie in them
		} else {
			Close(found)
		}
	}
	return inputs, nil
}

// open opens the files that a path stands for.
func open(path string) (inputs []Input, err error) {
	model, problems, err := checkpoint.OpenLenient(path)
	if err != nil {
		if stat, e := os.Stat(path); e == nil && stat.IsDir() && errors.Is(err, checkpoint.ErrIndex) {
			return nil, fmt.Errorf("%w: name files, or the directory that they are in", err)
		}
		if _, e := tensorfile.Open(path); e != nil {
			err = e // which says what is wanted
		}
		return nil, named(path, err)
	}
	add := func(m *checkpoint.Checkpoint) {
		unread := map[string]string{}
		for _, u := range m.Unread() {
			for _, name := range u.Tensors {
				unread[name] = u.String()
			}
		}
		for _, name := range m.Files() {
			path := filepath.Join(m.Dir(), filepath.FromSlash(name))
			inputs = append(inputs, Input{Path: path, File: m.File(name), model: m, name: name, unread: unread})
		}
	}
	add(model)
	for _, problem := range problems {
		if !errors.Is(problem, checkpoint.ErrIndex) && !errors.Is(problem, checkpoint.ErrConfig) {
			return inputs, tensorfile.Wanted(problem)
		}
		inputs[0].problems = append(inputs[0].problems, problem.Error())
	}
	if stat, e := os.Stat(path); e != nil || !stat.IsDir() {
		return inputs, nil
	}
	for _, name := range model.Others() { // that the index leaves out
		if !strings.HasSuffix(name, extension) {
			continue
		}
		alone, _, err := checkpoint.OpenLenient(filepath.Join(path, name))
		if err != nil {
			return inputs, named(filepath.Join(path, name), tensorfile.Wanted(err))
		}
		add(alone)
	}
	slices.SortFunc(inputs, func(a, b Input) int { return strings.Compare(a.Path, b.Path) })
	return inputs, nil
}

// named is an error that says which file it is about.
func named(path string, err error) error {
	if strings.Contains(err.Error(), path) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}
