// Package generate says how fast tokens came, and shows them.
package generate

import (
	"fmt"
	"strings"
	"time"

	"github.com/octavo-fp8/octavo/bench"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn/generate"
)

// Report is what became of prompts.
type Report struct {
	Model  string `json:"model"`
	Recipe string `json:"recipe"` // of the weights and of what they are multiplied with
	Head   string `json:"head"`   // that of the head and of the embedding
	Cache  string `json:"cache"`

	Requests []Request `json:"requests"`
	Together int       `json:"together"` // at most so many were run at once

	Prefill Speed `json:"prefill"` // of prompts, until the first tokens are known
	Decode  Speed `json:"decode"`  // of the tokens after that
	Steps   int   `json:"steps"`   // in which those came, one for each request that went on

	WeightBytes int64 `json:"weightBytes"` // that each step reads
	CacheBytes  int64 `json:"cacheBytes"`  // that steps read on average

	// ReadRate is how many bytes a second so many workers read of 256 MiB of memory; 0 where
	// that was not measured or cannot be.
	ReadRate float64 `json:"readRate"`
	Workers  int     `json:"workers"`
}

// Request is what became of a prompt.
type Request struct {
	Prompt []int32 `json:"prompt"`

	Temperature float64 `json:"temperature"`
	TopK        int     `json:"topK"`
	TopP        float64 `json:"topP"`
	Seed        uint64  `json:"seed"`

	Tokens   []int32       `json:"tokens"` // that follow, with the one that ended the text
	LogProbs []float32     `json:"logProbs"`
	Text     *string       `json:"text,omitempty"`
	Stop     generate.Stop `json:"stop"`
	Why      string        `json:"why"` // in words
}

// Speed is how long tokens took.
type Speed struct {
	Tokens  int     `json:"tokens"`
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"rate"` // tokens a second
}

// Took returns the speed of tokens.
func Took(tokens int, d time.Duration) Speed {
	s := Speed{Tokens: tokens, Seconds: d.Seconds()}
	if s.Seconds > 0 {
		s.Rate = float64(tokens) / s.Seconds
	}
	return s
}

// readBytes is much more than the caches of a processor hold.
const readBytes = 256 << 20

// Read measures how fast memory is.
func Read(workers int) float64 {
	memory := make([]byte, readBytes)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1 // a page that was never written to may be the same as others
	}
	return bench.PeakRead(memory, workers) * 1e9
}

// Summary says why requests ended and how fast it went, in a line.
func (r *Report) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s; prefill %s", r.why(), r.Prefill)
	if r.Steps == 0 {
		return b.String()
	}
	each := r.WeightBytes + r.CacheBytes
	fmt.Fprintf(&b, "; decode %s, reading %s a step", r.Decode, size(each))
	if r.ReadRate > 0 {
		rate := float64(each) * float64(r.Steps) / r.Decode.Seconds
		fmt.Fprintf(&b, ", %.2g%% of this memory's %s GB/s", 100*rate/r.ReadRate, textout.Rate(r.ReadRate/1e9))
	}
	return b.String()
}

// why says why the only request ended, or how many did for which reason.
func (r *Report) why() string {
	if len(r.Requests) == 1 {
		return r.Requests[0].Why
	}
	var reasons []string
	for _, of := range []struct {
		stop generate.Stop
		says string
	}{
		{generate.StopEnd, "ended"}, {generate.StopTokens, "had all tokens that were asked for"},
		{generate.StopContext, "filled the context"},
	} {
		n := 0
		for i := range r.Requests {
			if r.Requests[i].Stop == of.stop {
				n++
			}
		}
		if n > 0 {
			reasons = append(reasons, fmt.Sprintf("%d %s", n, of.says))
		}
	}
	return fmt.Sprintf("%d requests: %s", len(r.Requests), strings.Join(reasons, ", "))
}

func (s Speed) String() string {
	return fmt.Sprintf("%s at %s/s", textout.Count(s.Tokens, "token"), textout.Rate(s.Rate))
}

// size writes a number of bytes.
func size(n int64) string {
	x := float64(n)
	for _, unit := range []string{"bytes", "kB", "MB"} {
		if x < 1000 {
			return textout.Rate(x) + " " + unit
		}
		x /= 1000
	}
	return textout.Rate(x) + " GB"
}
