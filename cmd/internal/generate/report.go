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

// Report is what became of a prompt.
type Report struct {
	Model  string `json:"model"`
	Recipe string `json:"recipe"` // of the weights and of what they are multiplied with
	Cache  string `json:"cache"`

	Temperature float64 `json:"temperature"`
	TopK        int     `json:"topK"`
	TopP        float64 `json:"topP"`
	Seed        uint64  `json:"seed"`

	Prompt []int32       `json:"prompt"`
	Tokens []int32       `json:"tokens"` // that follow, with the one that ended the text
	Text   *string       `json:"text,omitempty"`
	Stop   generate.Stop `json:"stop"`
	Why    string        `json:"why"` // in words

	Prefill Speed `json:"prefill"` // of the prompt, until the first token is known
	Decode  Speed `json:"decode"`  // of the tokens after that

	WeightBytes int64 `json:"weightBytes"` // that each step reads
	CacheBytes  int64 `json:"cacheBytes"`  // that steps read on average

	// ReadRate is how many bytes a second so many workers read of 256 MiB of memory; 0 where
	// that cannot be measured.
	ReadRate float64 `json:"readRate"`
	Workers  int     `json:"workers"`
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

// Summary says how fast it went, in a line.
func (r *Report) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "prefill %s", r.Prefill)
	if r.Decode.Tokens == 0 {
		return b.String()
	}
	fmt.Fprintf(&b, "; decode %s, which read %s each", r.Decode, size(r.WeightBytes+r.CacheBytes))
	rate := float64(r.WeightBytes+r.CacheBytes) * r.Decode.Rate
	if r.ReadRate > 0 {
		fmt.Fprintf(&b, ": %.2g%% of the %s GB/s at which %d threads read 256 MiB here",
			100*rate/r.ReadRate, textout.Rate(r.ReadRate/1e9), r.Workers)
	}
	return b.String()
}

func (s Speed) String() string {
	return fmt.Sprintf("%d tokens in %.2g s, %s a second", s.Tokens, s.Seconds, textout.Rate(s.Rate))
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
