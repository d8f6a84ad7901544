package generate

import (
	"context"

	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/nn"
)

// Request is a prompt and how it is continued.
type Request struct {
	Name string // for errors; "": its place in the batch, from 0

	Prompt   []int32
	Tokens   int     // at most so many follow; 0: until the context is full
	Ends     []int32 // tokens that end a text
	Sampling Sampling
	LogProbs bool // those of the result are wanted

	// Emit, unless nil, is called with each token that follows, but not with one of Ends, as
	// soon as it is known, and Done after the last one. An error of theirs ends all requests
	// that are run together.
	Emit func(token int32) error
	Done func() error
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
func (s Stop) String() string                   { return stops.String(s) }
func (s Stop) MarshalText() ([]byte, error)     { return stops.MarshalText(s) }
func (s *Stop) UnmarshalText(text []byte) error { return stops.UnmarshalText(s, text) }

// Result is what became of a request.
type Result struct {
	Tokens []int32 // that follow the prompt, with the one that ended the text, if one did

	// LogProbs are the logarithms of the tokens' probabilities under the softmax of their
	// logits, whatever the Sampling; nil unless the request wants them.
	LogProbs []float32

	Stop Stop // says nothing where an error came before the end
}

// Generate continues a prompt, token by token: it is [Generator.GenerateBatch] of one request.
func (g *Generator) Generate(ctx context.Context, r Request) (Result, Timing, error) {
	results, timing, err := g.GenerateBatch(ctx, Batch{Requests: []Request{r}})
	return results[0], timing, err
}

// Check returns the first thing for which a generator of a model cannot run the request:
// [ErrInput] or [ErrOptions]. Of the configuration Vocab and Context count.
func (r *Request) Check(model nn.Config) error {
	switch {
	case len(r.Prompt) == 0:
		return inputError("the prompt has no tokens: at least one must be there to continue")
	case len(r.Prompt) > model.Context:
		return inputError("the prompt has %d tokens and the context room for %d: "+
			"give a shorter prompt", len(r.Prompt), model.Context)
	case r.Tokens < 0:
		return inputError("Request.Tokens is %d: it must not be negative", r.Tokens)
	}
	for i, t := range r.Prompt {
		if t < 0 || int(t) >= model.Vocab {
			return inputError("token %d of the prompt is %d: the model has those from 0 to %d",
				i, t, model.Vocab-1)
		}
	}
	return r.Sampling.Check()
}
