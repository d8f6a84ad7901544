package inspect

import (
	"errors"
	"fmt"
	"io/fs"
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
	leftOut  []string          // paths of files that its index does not name, the same
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

// Open opens files, and of directories those that the index names, or without one all whose
// names end in .safetensors, in the order of their names. A file that is named twice counts
// once. If one cannot be opened, all are closed.
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
	for i := range inputs {
		inputs[i].leftOut = slices.DeleteFunc(inputs[i].leftOut, func(path string) bool { return isKnown(Input{Path: path}) })
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
		return nil, named(path, wanted(err))
	}
	unread := map[string]string{}
	for _, u := range model.Unread() {
		for _, name := range u.Tensors {
			unread[name] = u.String()
		}
	}
	for _, name := range model.Files() {
		path := filepath.Join(model.Dir(), filepath.FromSlash(name))
		inputs = append(inputs, Input{Path: path, File: model.File(name), model: model, name: name, unread: unread})
	}
	for _, problem := range problems {
		if !errors.Is(problem, checkpoint.ErrIndex) && !errors.Is(problem, checkpoint.ErrConfig) {
			return inputs, wanted(problem)
		}
		inputs[0].problems = append(inputs[0].problems, problem.Error())
	}
	if model.Index == nil {
		return inputs, nil
	}
	for _, name := range model.Others() {
		if strings.HasSuffix(name, extension) {
			inputs[0].leftOut = append(inputs[0].leftOut, filepath.Join(model.Dir(), name))
		}
	}
	return inputs, nil
}

// wanted adds to an error of a file that cannot be opened what is wanted.
func wanted(err error) error {
	if system := (*fs.PathError)(nil); errors.As(err, &system) {
		return fmt.Errorf("%w: name a safetensors file or a directory that has some", err)
	}
	return tensorfile.Wanted(err)
}

// named is an error that says which file it is about.
func named(path string, err error) error {
	if strings.Contains(err.Error(), path) {
		return err
	}
	return fmt.Errorf("%s: %w", path, err)
}
