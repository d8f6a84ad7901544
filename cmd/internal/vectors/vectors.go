// Package vectors makes conformance vectors: inputs and what octavo makes of them,
// for others to test against. They depend on a seed and on nothing else.
package vectors

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/json"
	"fmt"

	"github.com/octavo-fp8/octavo/cmd/internal/outdir"
	"github.com/octavo-fp8/octavo/progress"
)

//go:embed README.md
var readme []byte

// section makes a file of tensors and the JSON that says what they are.
type section struct {
	name string
	make func(ctx context.Context, seed uint64) (*tensors, any, error)
}

var sections = []section{
	{"encode", makeEncode},
	{"scaling", makeScaling},
	{"stats", makeStats},
	{"gemm", makeGemm},
}

// Make returns all files of a set, in a second or so. The reporter, which may be nil,
// hears which section is made.
func Make(ctx context.Context, seed uint64, reporter progress.Reporter) (files []outdir.File, err error) {
	for i, s := range sections {
		if reporter != nil {
			reporter.Progress(s.name, int64(i), int64(len(sections)))
		}
		tensors, index, err := s.make(ctx, seed)
		if err != nil {
			return nil, fmt.Errorf("vectors: %s: %w", s.name, err)
		}
		data, err := tensors.file()
		if err != nil {
			return nil, fmt.Errorf("vectors: %s: %w", s.name, err)
		}
		text, err := json.MarshalIndent(index, "", " ")
		if err != nil {
			return nil, fmt.Errorf("vectors: %s: %w", s.name, err)
		}
		files = append(files, outdir.File{Name: s.name + ".safetensors", Data: data}, outdir.File{Name: s.name + ".json", Data: append(text, '\n')})
	}
	files = append(files, outdir.File{Name: readmeName, Data: readme})
	return append(files, outdir.File{Name: sumsName, Data: sums(files)}), nil
}

// sums is what sha256sum -c reads.
func sums(files []outdir.File) (text []byte) {
	for _, f := range files {
		text = fmt.Appendf(text, "%x  %s\n", sha256.Sum256(f.Data), f.Name)
	}
	return text
}

// Names are those of all files of a set.
func Names() []string {
	names := []string{readmeName, sumsName}
	for _, s := range sections {
		names = append(names, s.name+".safetensors", s.name+".json")
	}
	return names
}

const (
	readmeName = "README.md"
	sumsName   = "SHA256SUMS"
)
