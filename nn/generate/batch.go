package generate

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/octavo-fp8/octavo/internal/meter"
	"github.com/octavo-fp8/octavo/progress"
)

// Batch is requests that are run together.
type Batch struct {
	Requests []Request

	// Together is how many are run at once, 0 for all: when one ends, the next one begins.
	Together int

	// Progress, unless nil, hears of tokens of prompts, as "prefill".
	Progress progress.Reporter
}

// Timing is what the passes of requests took.
type Timing struct {
	Prefill      time.Duration // of the passes of prompts, with the choice of what follows
	PromptTokens int           // of those passes

	Decode time.Duration // of the steps: passes of one token of each request that goes on
	Steps  int
	Tokens int // that were chosen in steps

	// CacheBytes is how many bytes of keys and values these steps have read. Each of them has
	// read the weights once.
	CacheBytes int64
}

// name is what errors call a request: its place where it has no name and there are others.
func (b *Batch) name(i int) string {
	if name := b.Requests[i].Name; name != "" || len(b.Requests) == 1 {
		return name
	}
	return fmt.Sprintf("request %d", i)
}

// prefillTokens is how many tokens of prompts are run in one pass.
const prefillTokens = 256

// GenerateBatch continues prompts together, token by token, and returns a result for each
// request; those are of what there was when an error came, too. Prompts are run in parts, 256
// tokens in a pass, before other requests go on. Under a recipe that [CheckBatchInvariant]
// accepts no bit of a result depends on that, nor on the other requests.
//
// The error is [ErrInput] for a prompt that is empty, does not fit the context or has tokens
// out of the vocabulary, [ErrOptions] for a Sampling or a negative number, [ErrNotFinite],
// [ErrConcurrent], that of Emit or of the context. It ends all requests.
func (g *Generator) GenerateBatch(ctx context.Context, b Batch) ([]Result, Timing, error) {
	r := run{generator: g, results: make([]Result, len(b.Requests))}
	if err := g.guard.Enter(generatorName); err != nil {
		return r.results, r.timing, err
	}
	defer g.guard.Leave()
	err := r.batch(ctx, b)
	return r.results, r.timing, err
}

// run is a batch that is being run.
type run struct {
	generator *Generator
	active    []*running
	results   []Result
	timing    Timing
	prompts   *meter.Meter
	mixed     bool // passes have parts of prompts beside others' tokens

	// Of a pass, reused.
	taken, chose []*running
	parts        [][]int32
	sequences    []*Sequence
}

// running is a request that is being run.
type running struct {
	*Request
	result   *Result
	sequence *Sequence
	left     []int32 // of the prompt, then the token that was chosen last: last
	last     [1]int32
	decodes  bool // the prompt has been run
	ended    bool
}

func (r *run) batch(ctx context.Context, b Batch) error {
	if b.Together < 0 {
		return optionError("Batch.Together is %d: it must not be negative", b.Together)
	}
	total := 0
	for i := range b.Requests {
		request := &b.Requests[i]
		if err := request.Check(r.generator.config); err != nil {
			return named(b.name(i), err)
		}
		total += len(request.Prompt)
	}
	r.prompts = meter.New(ctx, b.Progress, "prefill", int64(total))
	for next := 0; ; {
		for ; next < len(b.Requests) && (b.Together == 0 || len(r.active) < b.Together); next++ {
			if err := r.begin(&b.Requests[next], &r.results[next], b.name(next)); err != nil {
				return err
			}
		}
		if len(r.active) == 0 {
			return nil
		}
		if err := r.pass(ctx); err != nil {
			return err
		}
		r.active = slices.DeleteFunc(r.active, func(a *running) bool { return a.ended })
	}
}

// begin makes a request one of those that are run.
func (r *run) begin(request *Request, result *Result, name string) error {
	s, err := r.generator.NewSequence(r.generator.limitOf(request))
	if err != nil {
		return named(name, err)
	}
	s.Name, s.least = name, len(request.Prompt)
	r.active = append(r.active, &running{
		Request: request, result: result, sequence: s, left: request.Prompt,
	})
	return nil
}

// limitOf returns the most tokens of a request's sequence.
func (g *Generator) limitOf(r *Request) int {
	if n := r.Tokens; n > 0 && n < g.config.Context-len(r.Prompt) {
		return len(r.Prompt) + n
	}
	return g.config.Context
}

// pass runs prompts, where there are any, or else a step of all requests.
func (r *run) pass(ctx context.Context) error {
	begun := time.Now()
	prefill := slices.ContainsFunc(r.active, func(a *running) bool { return !a.decodes })
	r.take(prefill)
	logits, err := r.generator.extend(ctx, r.sequences, r.parts, false)
	if err != nil {
		return err
	}
	vocab := r.generator.config.Vocab
	r.chose = r.chose[:0]
	for i, a := range r.taken {
		if len(a.left) > 0 {
			continue // with the prompt
		}
		if err := a.choose(logits[i*vocab : (i+1)*vocab]); err != nil {
			return named(a.sequence.Name, err)
		}
		r.chose = append(r.chose, a)
	}
	tokens := 0
	for _, part := range r.parts {
		tokens += len(part)
	}
	r.count(max(time.Since(begun), 1), prefill, tokens)
	for _, a := range r.chose {
		if err := a.tell(); err != nil {
			return err
		}
	}
	if prefill {
		return r.prompts.Add(int64(tokens))
	}
	return nil
}

// take takes what comes into a pass: parts of prompts, or one token of each request, or, where
// passes are mixed, both.
func (r *run) take(prefill bool) {
	r.taken, r.parts, r.sequences = r.taken[:0], r.parts[:0], r.sequences[:0]
	room := prefillTokens
	for _, a := range r.active {
		n := len(a.left)
		if prefill && a.decodes {
			continue
		}
		if (prefill || r.mixed) && !a.decodes {
			if n = min(n, room); n == 0 {
				continue
			}
			room -= n
		}
		r.taken, r.sequences = append(r.taken, a), append(r.sequences, a.sequence)
		r.parts, a.left = append(r.parts, a.left[:n]), a.left[n:]
	}
}

// count counts a pass.
func (r *run) count(took time.Duration, prefill bool, tokens int) {
	t := &r.timing
	if prefill {
		t.Prefill += took
		t.PromptTokens += tokens
		return
	}
	t.Decode += took
	t.Steps++
	t.Tokens += tokens
	for _, s := range r.sequences {
		t.CacheBytes += s.bytes()
	}
}

// choose appends the token that follows.
func (a *running) choose(logits []float32) error {
	token, err := a.Sampling.Choose(logits, a.sequence.Len())
	if err != nil {
		return err
	}
	a.result.Tokens = append(a.result.Tokens, token)
	if a.LogProbs {
		a.result.LogProbs = append(a.result.LogProbs, logProb(logits, token))
	}
	a.last[0] = token
	a.left, a.decodes = a.last[:], true
	return nil
}

// tell emits the token that was chosen last, and sees whether it is the last of all.
func (a *running) tell() error {
	result := a.result
	token := result.Tokens[len(result.Tokens)-1]
	ended := slices.Contains(a.Ends, token)
	if !ended && a.Emit != nil {
		if err := a.Emit(token); err != nil {
			return err
		}
	}
	switch {
	case ended:
		result.Stop = StopEnd
	case len(result.Tokens) == a.Tokens:
		result.Stop = StopTokens
	case a.sequence.Len() == a.sequence.Limit():
		result.Stop = StopContext
	default:
		return nil
	}
	if a.ended = true; a.Done != nil {
		return a.Done()
	}
	return nil
}
