package generate

import (
	"context"
	"slices"
	"sync"
)

// Stream is what follows a request that a [Server] runs: its tokens one by one, which wait until
// they are taken. Its methods are for one goroutine.
type Stream struct {
	request Request
	ctx     context.Context
	stop    func() bool // waiting for the context

	mu     sync.Mutex
	tokens []int32 // that were not taken yet
	ended  bool
	result Result
	err    error
	more   chan struct{} // has room for one: something is to be taken
}

func newStream(ctx context.Context, r Request) *Stream {
	st := &Stream{request: r, ctx: ctx, more: make(chan struct{}, 1)}
	st.request.Prompt, st.request.Ends = slices.Clone(r.Prompt), slices.Clone(r.Ends)
	st.request.Emit = func(token int32) error {
		st.mu.Lock()
		st.tokens = append(st.tokens, token)
		st.mu.Unlock()
		signal(st.more)
		if r.Emit != nil {
			return r.Emit(token)
		}
		return nil
	}
	return st
}

// signal puts something into a channel with room for one, unless it is there.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Next waits for the next token. Where ok is false the request has ended, with the error if there
// is one: that of the context, [ErrClosed], [ErrNotFinite], or that of Emit or Done. A token of
// Request.Ends is not returned.
func (st *Stream) Next() (token int32, ok bool, err error) {
	for {
		st.mu.Lock()
		tokens, ended := st.tokens, st.ended
		if len(tokens) > 0 {
			st.tokens = tokens[1:]
		}
		st.mu.Unlock()
		switch {
		case len(tokens) > 0:
			return tokens[0], true, nil
		case ended:
			return 0, false, st.err
		}
		<-st.more
	}
}

// Result waits for the end and returns what became of the request, tokens that Next has returned
// included.
func (st *Stream) Result() (Result, error) {
	for {
		if _, ok, err := st.Next(); !ok {
			return st.result, err
		}
	}
}

// end ends the stream.
func (st *Stream) end(err error) {
	if st.stop != nil {
		st.stop()
	}
	st.mu.Lock()
	st.ended, st.err = true, err
	st.mu.Unlock()
	signal(st.more)
}
