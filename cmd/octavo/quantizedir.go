package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/checkpoint/quantize"
	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/jsonout"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/safetensors"
)

// quantizeDir quantizes every shard of a model to one of the same name in another directory,
// writes the index anew and copies configuration and tokenizer. All appear together.
func quantizeDir(ctx context.Context, cmd *cobra.Command, in, out string, o quantize.Options, overwrite bool) (*quantize.Summary, error) {
	begun := time.Now()
	model, err := checkpoint.Open(in)
	if err != nil {
		return nil, mendModel(in, err)
	}
	defer model.Close()
	companions := slices.DeleteFunc(model.Others(), isNoCompanion)
	run, err := givenDirectory(out, outdir.Options{Files: append(model.Files(), companions...), Overwrite: overwrite})
	if err != nil {
		return nil, err
	}
	defer run.Abort()
	stage, err := run.Stage()
	if err != nil {
		return nil, err
	}
	all := &quantize.Summary{Input: in, Output: out, NonFinite: []quantize.NonFinite{}, Kept: []quantize.KeptTensor{}}
	index := &checkpoint.Index{Files: map[string]string{}}
	o.AllowNone = true
	for _, name := range model.Files() {
		path := filepath.Join(stage, name)
		s, err := quantize.File(ctx, filepath.Join(in, name), path, o)
		if err == nil {
			all.Add(s)
			err = addToIndex(index, path, name)
		}
		if err != nil {
			return nil, inPlace(err, stage, out)
		}
		if err := run.Adopt(name); err != nil {
			return nil, err
		}
	}
	if all.Quantized.Tensors == 0 && len(all.Kept) > 0 {
		return nil, fmt.Errorf("%s: there is nothing to quantize but what --keep leaves as it is, such as %v", textout.Name(in), all.Kept[0])
	}
	if all.Quantized.Tensors == 0 {
		return nil, fmt.Errorf("%s: there is no float matrix to quantize: octavo inspect lists the tensors", textout.Name(in))
	}
	for _, name := range companions {
		if err := addCopy(run, name, filepath.Join(in, name)); err != nil {
			return nil, err
		}
	}
	if model.Index != nil {
		if err := run.Add(checkpoint.IndexName, func(w io.Writer) error { return jsonout.Print(w, index) }); err != nil {
			return nil, err
		}
	}
	all.Took(time.Since(begun))
	return all, run.Commit(outdir.Manifest{Kind: "quantize", Command: commandLine(cmd, []string{in}), Machine: trainMachine()})
}

// isNoCompanion reports of a file beside weights whether it is neither of the configuration nor
// of the tokenizer.
func isNoCompanion(name string) bool {
	known := slices.Contains([]string{".json", ".jinja", ".model", ".txt"}, filepath.Ext(name))
	ours := []string{outdir.ManifestName, checkpoint.CertificateName}
	return !known || strings.HasPrefix(name, ".") || slices.Contains(ours, name)
}

func addToIndex(index *checkpoint.Index, path, name string) error {
	file, err := safetensors.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	for _, info := range file.Tensors() {
		if other, twice := index.Files[info.Name]; twice {
			return fmt.Errorf("tensor %q is in %s and in %s", info.Name, textout.Name(other), textout.Name(name))
		}
		index.Files[info.Name] = name
		index.TotalSize += info.Bytes()
	}
	return nil
}

func addCopy(run *outdir.Run, name, from string) error {
	file, _, err := inputfile.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	return run.Add(name, func(w io.Writer) error {
		_, err := io.Copy(w, file)
		return err
	})
}

// isDir reports whether a directory is at path.
func isDir(path string) bool {
	stat, err := os.Stat(path)
	return err == nil && stat.IsDir()
}
