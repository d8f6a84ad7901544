package generate

import (
	"context"
	"slices"
	"time"

	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/progress"
)

// Request is what [Generator.Generate] continues.
type Request struct {
	Prompt   []int32
	Tokens   int     // at most so many follow; 0: until the context is full
	Ends     []int32 // tokens that end a text
	Sampling Sampling

	// Emit, unless nil, is called with each token that follows, but not with one of Ends, as
	// soon as it is known. Its error ends the request.
	Emit func(token int32) error

	// Progress, unless nil, hears of tokens of the prompt, as "prefill".
	Progress progress.Reporter
}

// Stop is why a request ended.
type Stop uint8

// The reasons.
const (
	StopEnd     Stop = iota // a token of Request.Ends
	StopTokens              // there are Request.Tokens
	StopContext             // the context of the model is full
)

var stops = enum.Enum[Stop]{
	Type: "Stop", What: "reason to stop", Err: ErrInput, Prefix: "generate",
	Names: []string{"end", "tokens", "context"},
}

// String returns the name of s, such as "end".
func (s Stop) String() string { return stops.String(s) }

// MarshalText implements [encoding.TextMarshaler].
func (s Stop) MarshalText() ([]byte, error) { return stops.MarshalText(s) }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Stop) UnmarshalText(text []byte) error { return stops.UnmarshalText(s, text) }

// Result is what became of a request.
type Result struct {
	Tokens []int32 // that follow the prompt, with the one that ended the text, if one did
	Stop   Stop

	Prefill time.Duration // from the start until the first token was chosen
	Decode  time.Duration // of the steps after that
	Steps   int           // how many those were

	// CacheBytes is how many bytes of keys and values these steps have read.
	CacheBytes int64
}

// prefillTokens is how many tokens of a prompt are run in one pass.
const prefillTokens = 256

// Generate continues a prompt, token by token. The result is of what there was when an error
// came, too. The prompt is run in parts of 256 tokens, which changes no bit under a recipe that
// [CheckBatchInvariant] accepts.
//
// The error is [ErrInput] for a prompt that is empty, does not fit the context or has tokens
// out of the vocabulary, [ErrOptions] for a Sampling, [ErrNotFinite], that of Emit or of the
// context.
func (g *Generator) Generate(ctx context.Context, r Request) (Result, error) {
	var result Result
	if err := g.checkRequest(r); err != nil {
		return result, err
	}
	limit := g.config.Context
	if room := limit - len(r.Prompt); r.Tokens > 0 && r.Tokens < room {
		limit = len(r.Prompt) + r.Tokens
	}
	s, err := g.NewSequence(limit)
	if err != nil {
		return result, err
	}
	begun := time.Now()
	logits, err := g.prompt(ctx, s, r)
	if err != nil {
		return result, err
	}
	for {
		token, err := r.Sampling.Choose(logits, s.Len())
		if err != nil {
			return result, err
		}
		if now := time.Now(); result.Prefill == 0 {
			result.Prefill, begun = max(now.Sub(begun), 1), now
		} else {
			result.Decode = now.Sub(begun)
		}
		result.Tokens = append(result.Tokens, token)
		if slices.Contains(r.Ends, token) {
			result.Stop = StopEnd
			return result, nil
		}
		if r.Emit != nil {
			if err := r.Emit(token); err != nil {
				return result, err
			}
		}
		switch {
		case len(result.Tokens) == r.Tokens:
			result.Stop = StopTokens
			return result, nil
		case s.Len() == s.Limit():
			result.Stop = StopContext
			return result, nil
		}
		if logits, err = g.Step(ctx, []*Sequence{s}, []int32{token}); err != nil {
			return result, err
		}
		result.Steps++
		result.CacheBytes += s.bytes()
	}
}

func (g *Generator) checkRequest(r Request) error {
	switch {
	case len(r.Prompt) == 0:
		return inputError("the prompt has no tokens: at least one must be there to continue")
	case len(r.Prompt) > g.config.Context:
		return inputError("the prompt has %d tokens: the context of the model is %d: give a shorter one",
			len(r.Prompt), g.config.Context)
	case r.Tokens < 0:
		return inputError("Request.Tokens is %d: it must not be negative", r.Tokens)
	}
	for i, t := range r.Prompt {
		if t < 0 || int(t) >= g.config.Vocab {
			return inputError("token %d of the prompt is %d: the model has those from 0 to %d",
				i, t, g.config.Vocab-1)
		}
	}
	return r.Sampling.Check()
}

// prompt runs the prompt and returns the logits of what follows it.
func (g *Generator) prompt(ctx context.Context, s *Sequence, r Request) (logits []float32, err error) {
	count := meter.New(ctx, r.Progress, "prefill", int64(len(r.Prompt)))
	for part := range slices.Chunk(r.Prompt, prefillTokens) {
		if logits, err = g.Prefill(ctx, []*Sequence{s}, [][]int32{part}); err != nil {
			return nil, err
		}
		if err := count.Add(int64(len(part))); err != nil {
			return nil, err
		}
	}
	return logits, nil
}
