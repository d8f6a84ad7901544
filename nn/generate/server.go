package generate

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/octavo-fp8/octavo/attention"
)

// ServerOptions are those of [NewServer]. The zero value is useful.
type ServerOptions struct {
	// Together is how many requests are run at once, 0 for 64; others wait in the order in which
	// they came.
	Together int

	// CacheBytes is the most memory for keys and values; 0: 1 GiB. A request begins when there is
	// room for its prompt and all of its tokens. It does not count the largest values that a cache
	// in e4m3 remembers of each head and token, four bytes, nor keys that LongRoPE has rotated anew.
	CacheBytes int64

	// KeepPrefixes is how many requests that have ended have their keys and values kept, while
	// there is room, for others that begin with the same tokens; 0: 64, below 0: none.
	KeepPrefixes int
}

// Server runs requests of many goroutines together on one generator: they join and leave at
// each step, and prompts are run in parts beside them. Under a recipe that [CheckBatchInvariant]
// accepts no bit of a result depends on what else is run, nor on prefixes that were kept.
//
// A request whose prompt begins with the tokens of another one shares its pages of the cache,
// and those tokens are not run again. That is for caches in pages, all but nvfp4 and mxfp8, and for
// models whose positions do not depend on the length of the sequence (LongRoPE).
type Server struct {
	run     run
	options ServerOptions
	ctx     context.Context // of passes
	cancel  context.CancelFunc
	pages   int                // of the cache
	pool    []*attention.Cache // of each layer; nil where caches are not in pages
	shares  bool
	shared  int // tokens that were shared so far

	kept    []*prefix // of requests that have ended, the oldest first
	waiting []*Stream
	streams map[*running]*Stream // of what is run

	mu      sync.Mutex
	arrived []*Stream
	closed  bool
	wake    chan struct{} // has room for one: something is to be done
	done    chan struct{} // closed when the loop has ended
}

// NewServer starts a server of a generator, which until [Server.Close] is for nobody else:
// [ErrConcurrent]. The error is that, or [ErrOptions].
func NewServer(g *Generator, o ServerOptions) (*Server, error) {
	if o.Together < 0 || o.CacheBytes < 0 {
		return nil, optionError("ServerOptions.Together is %d and CacheBytes %d: they must not be negative",
			o.Together, o.CacheBytes)
	}
	o.Together = cmp.Or(o.Together, 64)
	o.CacheBytes = cmp.Or(o.CacheBytes, 1<<30)
	o.KeepPrefixes = cmp.Or(o.KeepPrefixes, 64)
	if err := g.guard.Enter(generatorName); err != nil {
		return nil, err
	}
	s := &Server{
		run: run{generator: g, mixed: true}, options: o, streams: map[*running]*Stream{},
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	if err := s.makePool(); err != nil {
		g.guard.Leave()
		return nil, err
	}
	go s.loop()
	return s, nil
}

// makePool makes the pages of all layers.
func (s *Server) makePool() error {
	g := s.run.generator
	one, err := g.newSequence(1, nil)
	if err != nil {
		return err
	}
	page := int64(0)
	for i := range one.layers {
		page += pageTokens * int64(one.layers[i].tokenBytes())
	}
	pages := s.options.CacheBytes / page
	if pages == 0 || pages > 1<<31-1 {
		return optionError("ServerOptions.CacheBytes is %d: a page of %d tokens takes %d, and there must be from 1 to %d",
			s.options.CacheBytes, pageTokens, page, 1<<31-1)
	}
	if s.pages = int(pages); one.layers[0].pages == nil {
		return nil
	}
	s.pool = make([]*attention.Cache, len(g.blocks))
	for layer := range g.blocks {
		if _, err := g.newCache(layer, s.pages*pageTokens, s.pool); err != nil {
			return err
		}
	}
	scaling := g.config.RopeScaling
	s.shares = scaling.Short == nil && scaling.Long == nil
	return nil
}

// ErrClosed: the server was closed.
var ErrClosed = errors.New("generate: the server is closed")

// Submit gives a request to the server, from any goroutine, and returns at once. The request ends
// with the context: then its pages are free, whether or not its tokens were taken. Request.Emit
// and Done, unless nil, are called by the server's goroutine, and an error of theirs ends this
// request alone.
//
// The error is that of [Request.Check], [ErrOptions] for a request that the cache can never have
// room for, or [ErrClosed].
func (s *Server) Submit(ctx context.Context, r Request) (*Stream, error) {
	g := s.run.generator
	if err := r.Check(g.config); err != nil {
		return nil, named(r.Name, err)
	}
	if limit := g.limitOf(&r); pagesOf(limit) > s.pages {
		return nil, named(r.Name, optionError("the prompt and what follows are %d tokens, and the cache has room for %d: "+
			"ask for fewer, or give the server more CacheBytes", limit, s.pages*pageTokens))
	}
	st := newStream(ctx, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	s.arrived = append(s.arrived, st)
	s.notify()
	st.stop = context.AfterFunc(ctx, s.notify)
	return st, nil
}

// notify has the loop look.
func (s *Server) notify() { signal(s.wake) }

// Close ends all requests, with [ErrClosed], waits for the server to stop, and gives back the
// generator. It may be called again, but not from Emit or Done, which the server waits for.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel()
	s.notify()
	<-s.done
}

// loop runs requests until the server is closed.
func (s *Server) loop() {
	defer close(s.done)
	defer s.run.generator.guard.Leave()
	for {
		s.mu.Lock()
		closed := s.closed
		s.waiting = append(s.waiting, s.arrived...)
		s.arrived = nil
		s.mu.Unlock()
		if closed {
			s.endAll()
			return
		}
		s.dropCanceled()
		s.admit()
		if len(s.run.active) == 0 {
			<-s.wake
			continue
		}
		s.pass()
	}
}

// endAll ends what is there.
func (s *Server) endAll() {
	for len(s.run.active) > 0 {
		s.finish(s.run.active[0], ErrClosed)
	}
	for _, st := range s.waiting {
		st.end(ErrClosed)
	}
	for len(s.kept) > 0 {
		s.forgetBut(nil)
	}
	s.waiting = nil
}

// dropCanceled ends requests whose context has ended.
func (s *Server) dropCanceled() {
	for _, a := range slices.Clone(s.run.active) {
		if err := s.streams[a].ctx.Err(); err != nil {
			s.finish(a, err)
		}
	}
	s.waiting = slices.DeleteFunc(s.waiting, func(st *Stream) bool {
		err := st.ctx.Err()
		if err != nil {
			st.end(err)
		}
		return err != nil
	})
}

// admit begins requests that wait, in their order, while there is room.
func (s *Server) admit() {
	for len(s.waiting) > 0 && len(s.run.active) < s.options.Together {
		st := s.waiting[0]
		r := &st.request
		need := pagesOf(s.run.generator.limitOf(r))
		from, n := s.longestPrefix(r.Prompt)
		for s.room() < need-n/pageTokens {
			if len(s.kept) == 0 {
				return // until others end
			}
			s.forgetBut(from)
			from, n = s.longestPrefix(r.Prompt)
		}
		s.waiting = s.waiting[1:]
		a, err := s.begin(st, from, n)
		if err != nil {
			st.end(err)
			continue
		}
		s.run.active = append(s.run.active, a)
		s.streams[a] = st
	}
}

// begin returns a request with the first n tokens of another one.
func (s *Server) begin(st *Stream, from *Sequence, n int) (*running, error) {
	r := &st.request
	g := s.run.generator
	sequence, err := g.newSequence(g.limitOf(r), s.pool)
	if err != nil {
		return nil, named(r.Name, err)
	}
	sequence.Name, sequence.least = r.Name, len(r.Prompt)
	if n > 0 {
		sequence.share(from, n)
		s.shared += n
	}
	st.result = Result{}
	return &running{Request: r, result: &st.result, sequence: sequence, left: r.Prompt[sequence.tokens:]}, nil
}

// room returns how many pages are left when all that is run has its own.
func (s *Server) room() int {
	left := s.pages
	if s.pool != nil {
		left = s.pool[0].FreePages()
	}
	for _, a := range s.run.active {
		left -= pagesOf(a.sequence.limit)
		if s.pool != nil {
			left += len(a.sequence.layers[0].pages.Pages())
		}
	}
	return left
}

// pass runs a step of what is run. What fails is run again alone, so that a request whose values
// are not finite ends no other.
func (s *Server) pass() {
	r := &s.run
	r.take(false)
	logits, err := r.generator.extend(s.ctx, r.sequences, r.parts, false)
	taken, parts := r.taken, r.parts
	if err != nil && len(taken) > 1 {
		for i, a := range slices.Clone(taken) {
			logits, err := r.generator.extend(s.ctx, []*Sequence{a.sequence}, parts[i:i+1], false)
			s.advance(a, logits, err)
		}
		return
	}
	vocab := r.generator.config.Vocab
	for i, a := range slices.Clone(taken) {
		if err == nil {
			s.advance(a, logits[i*vocab:][:vocab], nil)
			continue
		}
		s.advance(a, nil, err)
	}
}

// advance chooses the next token of a request.
func (s *Server) advance(a *running, logits []float32, err error) {
	if err == nil && len(a.left) > 0 {
		return // with the prompt
	}
	if err == nil {
		err = named(a.sequence.Name, a.choose(logits))
	}
	if err == nil {
		err = a.tell()
	}
	if err != nil || a.ended {
		s.finish(a, err)
	}
}

// finish ends a request that is run.
func (s *Server) finish(a *running, err error) {
	if err == nil && s.shares {
		s.keep(a)
	} else {
		s.free(a)
	}
	s.run.active = slices.DeleteFunc(s.run.active, func(b *running) bool { return a == b })
	st := s.streams[a]
	delete(s.streams, a)
	if err != nil && s.ctx.Err() != nil {
		err = ErrClosed
	}
	st.end(err)
}

// free gives back the pages of a request.
func (s *Server) free(a *running) { a.sequence.Truncate(0) }
