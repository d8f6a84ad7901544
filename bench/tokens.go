package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/internal/cpu"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/nn/generate"
	"github.com/octavo-fp8/octavo/nn/hf"
)

// LlamaCPP is llama.cpp, whose llama-batched-bench generates tokens with a model in Q8_0.
const LlamaCPP = "llama.cpp"

// tokenRequests are how many requests are run together.
var tokenRequests = []int{1, 16}

// tokenContext is how many tokens a request has at most: what is measured is weights.
const tokenContext = 64

// tokens compares tokens a second, on a model that it writes for octavo and for llama.cpp.
func (p *peering) tokens(progress func(what string)) error {
	dir, err := os.MkdirTemp("", "octavo-tokens-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	model, file := filepath.Join(dir, "model"), filepath.Join(dir, "model.gguf")
	var g *generate.Generator
	for _, workers := range p.Workers {
		for _, requests := range tokenRequests {
			if p.ctx.Err() != nil {
				return nil
			}
			what := fmt.Sprintf("tokens of %d requests", requests)
			if requests == 1 {
				what = "tokens of 1 request"
			}
			progress(fmt.Sprintf("%s, %d workers", what, workers))
			if g == nil {
				if err := p.Model.Write(model, 0); err != nil {
					return err
				}
				if err := p.Model.WriteGGUF(file); err != nil {
					return err
				}
				c, err := checkpoint.Open(model)
				if err != nil {
					return err
				}
				defer c.Close()
				if g, err = p.generator(c); err != nil {
					return err
				}
			}
			all, err := p.generating(g, requests, workers)
			if err != nil {
				return err
			}
			all = append(all, llama(p.Llama, file, requests, workers))
			c := Comparison{What: what, Unit: "tokens/s", Workers: workers}
			if err := p.contest(c, all); err != nil {
				return err
			}
		}
	}
	return nil
}

// generator returns octavo's, with weights, head and embedding in FP8.
func (p *peering) generator(c *checkpoint.Checkpoint) (*generate.Generator, error) {
	u, err := hf.Open(p.ctx, c, hf.Options{Context: tokenContext, WeightBits: 8})
	if err != nil {
		return nil, err
	}
	r, err := nn.ParseRecipe("fp8")
	if err != nil {
		return nil, err
	}
	return generate.New(p.ctx, u.Model, generate.Options{
		FP8: &r.FP8.Forward, Head: &r.FP8.Forward, Read: u.Read,
	})
}

// generating returns who makes steps of requests at each level, and their roofs.
func (p *peering) generating(
	g *generate.Generator, requests, workers int,
) (all []*contestant, err error) {
	s := stepping{ctx: p.ctx, g: g}
	for i := range requests {
		one, err := g.NewSequence(0)
		if err != nil {
			return nil, err
		}
		s.sequences, s.tokens = append(s.sequences, one), append(s.tokens, int32(i))
	}
	memory := written(min(256*mebi, int(g.WeightBytes())))
	for _, l := range p.Levels {
		c := Case{By: Octavo, Level: l, Workers: workers, Packed: true, Run: s.step}
		// A rate is in 10^9 a second.
		all = append(all, c.contestant(Octavo, 1e9*float64(requests)))
		all = append(all, tokenRoof(l, workers, requests, g.WeightBytes(), memory))
	}
	return all, nil
}

// tokenRoof returns the roof of steps: reading all weights, or two operations for each of them
// and each request, whichever takes longer.
func tokenRoof(l cpu.Level, workers, requests int, weights int64, memory []byte) *contestant {
	turn := func(time.Duration) (float64, error) {
		old := runtime.GOMAXPROCS(workers)
		defer runtime.GOMAXPROCS(old)
		rate := peakMultiply(l, workers, turnsOfRoof) / (2 * float64(requests))
		if read := peakRead(memory, workers, turnsOfRoof); read > 0 {
			rate = min(rate, read)
		}
		return rate * 1e9 / float64(weights) * float64(requests), nil
	}
	return &contestant{Rate: Rate{By: Roof, Level: l.String()}, turn: turn}
}

// stepping is requests that get a token each again and again.
type stepping struct {
	ctx       context.Context
	g         *generate.Generator
	sequences []*generate.Sequence
	tokens    []int32
}

func (s *stepping) step() error {
	for _, one := range s.sequences {
		if one.Len() == one.Limit() {
			one.Truncate(0)
		}
	}
	// A round is finished after an interrupt.
	_, err := s.g.Step(context.WithoutCancel(s.ctx), s.sequences, s.tokens)
	return err
}

// llama returns llama.cpp's program at work on a model, which it reads in each turn.
func llama(program, model string, requests, workers int) *contestant {
	tokens := max(16/requests, 4) // of each request
	threads := strconv.Itoa(workers)
	run := func() (rate float64, out []byte, err error) {
		command := exec.Command(program, "-m", model, "-c", strconv.Itoa(tokenContext*requests),
			"-npp", "1", "-ntg", strconv.Itoa(tokens), "-npl", strconv.Itoa(requests),
			"-t", threads, "-tb", threads, "--output-format", "jsonl")
		command.Env = withoutLibraries(os.Environ())
		endWithUs(command)
		var complaints bytes.Buffer
		command.Stderr = &complaints
		if out, err = command.Output(); err != nil {
			text := strings.TrimSpace(complaints.String())
			return 0, out, fmt.Errorf("%w: %s: %.200q", err, program, text[max(len(text)-200, 0):])
		}
		for line := range bytes.Lines(out) {
			var answer struct {
				Requests int     `json:"pl"`
				Tokens   int     `json:"tg"`
				Rate     float64 `json:"speed_tg"` // of all requests
			}
			if json.Unmarshal(line, &answer) == nil && answer.Requests == requests &&
				answer.Tokens == tokens && answer.Rate > 0 {
				return answer.Rate, out, nil
			}
		}
		return 0, out, nil
	}
	turn := func(time.Duration) (rate float64, err error) {
		var out []byte
		for range 3 { // it ends before all is written at times
			if rate, out, err = run(); rate > 0 || err != nil {
				return rate, err
			}
		}
		return 0, fmt.Errorf("%s says no rate of %d requests: %.200q", program, requests, out)
	}
	return &contestant{Rate: Rate{By: LlamaCPP}, turn: turn, peer: true}
}
