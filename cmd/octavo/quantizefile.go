package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/cmd/internal/jsonout"
	"github.com/octavo-fp8/octavo/fp8"
	"github.com/octavo-fp8/octavo/safetensors"
	"github.com/octavo-fp8/octavo/scaling"
	"github.com/octavo-fp8/octavo/telemetry"
	"github.com/octavo-fp8/octavo/tensor"
)

// quantizeFile writes the file at in, with its selected matrices quantized, to
// out.
func quantizeFile(ctx context.Context, in, out string, r scaling.Recipe, only *regexp.Regexp, stderr io.Writer) (*quantizeSummary, error) {
	if err := sameFile(in, out); err != nil {
		return nil, err
	}
	file, err := open(in)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	parts, err := planParts(file, r, only)
	if err != nil {
		return nil, err
	}
	q := quantizer{file: file, recipe: r, summary: quantizeSummary{
		Input: in, Output: out, Profile: r.Profile, Format: r.Format.String(), Block: r.Block.String(),
		NonFinite: []nonFiniteWarning{},
	}}
	infos := make([]safetensors.Info, len(parts))
	total := int64(0)
	for i, p := range parts {
		infos[i] = p.Info
		total += p.Bytes()
	}
	progress := newProgress(stderr, total, "quantizing")
	err = safetensors.WriteFileFunc(out, infos, withRecipe(file.Metadata(), r), func(w *safetensors.Writer) error {
		for _, p := range parts {
			if err := w.Next(p.Name); err != nil {
				return err
			}
			if err := q.write(contextWriter{ctx, io.MultiWriter(w, progress)}, p); err != nil {
				return err
			}
		}
		return nil
	})
	progress.Finish()
	return &q.summary, unwritten(out, err)
}

// part is a tensor of the output.
type part struct {
	safetensors.Info
	source  safetensors.Info // what it is made from
	content content
	align   int // what its offset and that of the next part are a multiple of
}

type content int

const (
	copied content = iota
	codes
	scales
)

// planParts lists the tensors of the output by falling alignment, so that each
// lies at a multiple of its element size, as the reference implementation has it.
func planParts(file *safetensors.File, r scaling.Recipe, only *regexp.Regexp) ([]part, error) {
	var parts []part
	selected := false
	for _, info := range file.Tensors() {
		if !isMatrix(file, info) || !selects(only, info.Name) {
			parts = append(parts, part{info, info, copied, info.DType.Size()})
			continue
		}
		if name := info.Name + scaleSuffix; has(file, name) {
			return nil, fmt.Errorf("tensor %q cannot be quantized, since the file already has a tensor %q: leave it out with --only",
				info.Name, name)
		}
		selected = true
		parts = append(parts, quantizedParts(info, r)...)
	}
	if only != nil && !selected {
		return nil, fmt.Errorf("no float matrix has a name that matches --only %q: octavo inspect lists the tensors", only)
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.align, a.align) })
	return parts, nil
}

// quantizedParts returns the scales and the codes of a tensor. They stay side by
// side, so that it is quantized once, unless the size of the codes would
// misalign the scales of the next tensor.
func quantizedParts(info safetensors.Info, r scaling.Recipe) []part {
	s := safetensors.Info{Name: info.Name + scaleSuffix, DType: safetensors.F32, Shape: grid(info.Shape, r.Block)}
	if r.Profile.E8M0() {
		s.DType = safetensors.F8E8M0
	}
	c := safetensors.Info{Name: info.Name, DType: dtypes[r.Format], Shape: info.Shape}
	align := s.DType.Size()
	if c.Bytes()%int64(align) != 0 {
		return []part{{s, info, scales, align}, {c, info, codes, c.DType.Size()}}
	}
	return []part{{s, info, scales, align}, {c, info, codes, align}}
}

func grid(shape []int, b tensor.Block) []int {
	rows, cols := (&tensor.Tensor{Shape: shape, Block: b}).Grid()
	return []int{rows, cols}
}

// withRecipe adds the recipe to a file's metadata. Where the file has been
// quantized before, in part, the keys list both recipes.
func withRecipe(metadata map[string]string, r scaling.Recipe) map[string]string {
	all := maps.Clone(metadata)
	if all == nil {
		all = map[string]string{}
	}
	for key, value := range map[string]string{
		"octavo.profile": string(r.Profile),
		"octavo.format":  r.Format.String(),
		"octavo.block":   r.Block.String(),
	} {
		switch before := all[key]; {
		case before == "":
			all[key] = value
		case !slices.Contains(strings.Split(before, ", "), value):
			all[key] = before + ", " + value
		}
	}
	return all
}

// quantizer quantizes the tensors of a file, and holds one at a time.
type quantizer struct {
	file    *safetensors.File
	recipe  scaling.Recipe
	summary quantizeSummary

	tensor tensor.Tensor // the last one quantized
	stats  fp8.Stats
	first  telemetry.NonFinite // unless all of it is finite
}

func (q *quantizer) write(w io.Writer, p part) error {
	if p.content == copied {
		section, err := q.file.Section(p.Name)
		if err != nil {
			return err
		}
		q.count(&q.summary.Copied, p)
		_, err = io.Copy(w, section)
		return err
	}
	if err := q.quantize(p.source); err != nil {
		return err
	}
	if p.content == scales {
		data, err := appendScales(nil, q.tensor.Scales, p.DType)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", p.Name, err)
		}
		q.summary.Quantized.BytesAfter += p.Bytes()
		_, err = w.Write(data)
		return err
	}
	q.count(&q.summary.Quantized, p)
	q.summary.add(&q.stats)
	if q.stats.NonFinite() > 0 {
		q.summary.NonFinite = append(q.summary.NonFinite, nonFiniteWarning{
			p.Name, p.Shape, q.first.Index, jsonout.Number(q.first.Value), q.stats.NonFinite(),
		})
	}
	_, err := w.Write(q.tensor.Codes)
	return err
}

func (q *quantizer) count(c *tensorCount, p part) {
	c.Tensors++
	c.BytesBefore += p.source.Bytes()
	c.BytesAfter += p.Bytes()
}

// quantize makes q.tensor of a tensor of the file, unless it already is.
func (q *quantizer) quantize(info safetensors.Info) error {
	if q.tensor.Name == info.Name && q.tensor.Shape != nil {
		return nil
	}
	values, err := readArray(q.file, info)
	if err != nil {
		return err
	}
	recorder := telemetry.New()
	q.tensor.Name, q.tensor.Shape, q.stats = info.Name, info.Shape, fp8.Stats{}
	err = values.quantize(&q.tensor, &scaling.Quantizer{Recipe: q.recipe, Reporter: recorder, Stats: &q.stats})
	q.first, _ = recorder.FirstNonFinite()
	return err
}
