// Package agree is the work of octavo agree: two engines that run one model, layer by layer.
package agree

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/internal/verdict"
	"github.com/octavo-fp8/octavo/oracle"
	"github.com/octavo-fp8/octavo/oracle/judge/agree"
	"github.com/octavo-fp8/octavo/progress"
)

// Claims is what an engine is said to compute.
type Claims struct {
	Recipe  string // "": what the dump says, or else the checkpoint
	Exclude []string
	Kernel  oracle.Kernel
}

// Job is what is to be compared.
type Job struct {
	Model    string
	Paths    [2]string
	Claims   [2]Claims
	Workers  int
	Progress progress.Reporter
	// Divergence unless NoDivergence says what layers do to the next token, for models that
	// package hf loads.
	NoDivergence bool
}

// Run compares.
func (j *Job) Run(ctx context.Context) (*Report, error) {
	c, err := checkpoint.Open(j.Model)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	recipes, err := candidates()
	if err != nil {
		return nil, err
	}
	r := &Report{Model: textout.Name(filepath.Base(j.Model)), NotJudged: []NotJudged{}, Modules: []Module{}}
	var sides [2]*side
	for i := range sides {
		s, err := openSide(j.Paths[i], j.Claims[i])
		if err != nil {
			return nil, err
		}
		defer s.close()
		sides[i] = s
		r.Sides[i] = Side{Dump: textout.Name(j.Paths[i]), Engine: s.meta[engineKey], Exclude: s.exclude, Recipe: "as the checkpoint says"}
		if s.recipe != nil {
			r.Sides[i].Recipe = s.recipe.Name
		}
	}
	all, others := linears(c)
	m := &model{recipes: recipes, weightsAlone: weightsAlone(c.Config)}
	if err := j.modules(ctx, r, sides, all, m); err != nil {
		return nil, err
	}
	r.NotJudged = append(r.NotJudged, others...)
	for i, s := range sides {
		whole, half := s.modules()
		for _, name := range whole {
			if !s.used[name] {
				r.notIn(i, name, stackOr(all, name, "and the model has no linear layer of that name"))
			}
		}
		for _, name := range half {
			r.notIn(i, name, "without its input or its output")
		}
	}
	r.NotJudged = append(r.NotJudged, NotJudged{"attention, softmax, rotary positions, activation functions, the router's choice, sampling", "not linear layers"})
	r.decide()
	return r, j.next(ctx, r, sides, c)
}

// notIn adds what is not judged of a side.
func (r *Report) notIn(side int, name, why string) {
	r.NotJudged = append(r.NotJudged, NotJudged{name, "in " + r.Sides[side].Dump + ", " + why})
}

// model is what is known of the model, and what its layers may be quantized by.
type model struct {
	recipes                 []agree.Recipe
	quantized, weightsAlone bool
}

// modules judges all modules that a dump has.
func (j *Job) modules(ctx context.Context, r *Report, sides [2]*side, all []linear, model *model) error {
	byName := map[string]linear{}
	for _, l := range all {
		byName[l.name] = l
		model.quantized = model.quantized || l.weight.Scheme != nil
	}
	for n, l := range all {
		if j.Progress != nil {
			j.Progress.Progress("agree", int64(n), int64(len(all)))
		}
		m := Module{Name: l.name}
		var seen [2][2]recorded
		in := 0 // dumps
		for i, s := range sides {
			p, ok := find(s.dump, l, byName)
			if !ok {
				continue
			}
			in++
			s.used[p.module] = true
			var err error
			m.Sides[i], err = j.judge(ctx, s, l, p, model, &seen[i])
			switch {
			case errors.Is(err, agree.ErrLayer):
				r.notIn(i, l.name, strings.TrimPrefix(err.Error(), "agree: "))
				r.refused++
			case err != nil:
				return fmt.Errorf("%s: %s: %w", textout.Name(j.Paths[i]), textout.Name(l.name), err)
			default:
				r.Sides[i].Modules++
			}
		}
		if in == 0 {
			r.NotJudged = append(r.NotJudged, NotJudged{l.name, "in no dump"})
		}
		if m.Sides == [2]*Judged{} {
			continue
		}
		if m.Sides[0] != nil && m.Sides[1] != nil {
			m.Input, m.Output = sameBits(seen[0][0], seen[1][0]), sameBits(seen[0][1], seen[1][1])
			if r.First == "" && m.Input == "same" && m.Output == "differ" {
				r.First = l.name
			}
		}
		r.Modules = append(r.Modules, m)
	}
	if j.Progress != nil {
		j.Progress.Progress("agree", int64(len(all)), int64(len(all)))
	}
	return nil
}

// sameBits compares what was recorded.
func sameBits(a, b recorded) string {
	same := a.rows == b.rows && a.cols == b.cols && a.of == b.of
	same = same && slices.EqualFunc(a.values, b.values, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
	if same {
		return "same"
	}
	return "differ"
}

// judge judges a module of a side, and says what was recorded of it: input and output.
func (j *Job) judge(ctx context.Context, s *side, l linear, p part, m *model, seen *[2]recorded) (*Judged, error) {
	x, err := s.read(p.module + inputEnd)
	if err != nil {
		return nil, err
	}
	y, err := s.read(p.module + outputEnd)
	if err != nil {
		return nil, err
	}
	w, err := weightOf(l, p.group, x.cols, y.cols)
	if err != nil {
		return nil, err
	}
	if x.cols != w.Cols || y.cols < p.first+w.Rows || !p.fused() && y.cols > w.Rows {
		return nil, sentinel.Errorf(agree.ErrLayer, "input and output have %d and %d columns: the weight is of %dx%d", x.cols, y.cols, w.Rows, w.Cols)
	}
	if x.rows != y.rows {
		return nil, sentinel.Errorf(agree.ErrLayer, "input and output have %d and %d tokens", x.rows, y.rows)
	}
	judged := &Judged{}
	if p.fused() {
		part := make([]float32, 0, y.rows*w.Rows)
		for i := range y.rows {
			part = append(part, y.values[i*y.cols+p.first:][:w.Rows]...)
		}
		y.values, y.cols, judged.Fused = part, w.Rows, p.module
	}
	*seen = [2]recorded{x, y}
	layer := &agree.Layer{
		Tokens: x.rows, Input: x.values, InputOf: x.of, Output: y.values, Of: y.of, Weight: w,
	}
	if layer.Passes, err = s.passes(p.module, x.rows); err != nil {
		return nil, err
	}
	if l.bias != nil {
		_, rows, n := l.bias.Dims()
		if n != w.Rows || l.matrix >= rows {
			return nil, sentinel.Errorf(agree.ErrLayer, "its bias has %d values: the weight is of %dx%d", n, w.Rows, w.Cols)
		}
		layer.Bias = make([]float32, n)
		if err := checkpoint.ReadValues(new(checkpoint.Reader), l.bias, 0, l.matrix, layer.Bias); err != nil {
			return nil, err
		}
	}
	names := []string{l.name, p.module}
	claims, why := s.claim(names, &w, m)
	judged.Excluded = why
	for _, claim := range claims {
		v, err := agree.Check(ctx, layer, claim, agree.Options{Recipes: m.recipes, Workers: j.Workers})
		if err != nil {
			return nil, err
		}
		if judged.Verdict == nil || v.Right() || judged.Outcome == verdict.Fail &&
			(v.Outcome == verdict.Undecided || len(judged.Explained) < len(v.Explained)) {
			judged.Verdict = v
		}
		if v.Right() {
			break
		}
	}
	judged.note(names, s.exclude)
	return judged, nil
}

// passes returns the tokens of each pass, nil where the dump does not say: those of all modules
// are not those of experts, which have some of the tokens.
func (d *dump) passes(module string, tokens int) ([]int, error) {
	own, err := d.whole(module + passesEnd)
	if err != errNone {
		return own, err
	}
	all, err := d.whole(passesName)
	sum := 0
	for _, n := range all {
		sum += n
	}
	if err == errNone || err == nil && sum != tokens {
		return nil, nil
	}
	return all, err
}
