package generate

import "slices"

// prefix is tokens whose keys and values are in pages, of a request that has ended.
type prefix struct {
	tokens   []int32
	sequence *Sequence
}

// keep keeps the whole pages of a request that has ended, the oldest ones no longer.
func (s *Server) keep(a *running) {
	n := a.sequence.tokens / pageTokens * pageTokens
	a.sequence.Truncate(n)
	if n == 0 {
		return
	}
	s.kept = append(s.kept, &prefix{slices.Concat(a.Prompt, a.result.Tokens)[:n], a.sequence})
	if len(s.kept) > max(s.options.KeepPrefixes, 0) {
		s.forgetBut(nil)
	}
}

// forgetBut drops the pages of the oldest prefix that is not the given one, or else of that: they are
// free unless others share them.
func (s *Server) forgetBut(last *Sequence) {
	i := max(slices.IndexFunc(s.kept, func(p *prefix) bool { return p.sequence != last }), 0)
	s.kept[i].sequence.Truncate(0)
	s.kept = slices.Delete(s.kept, i, i+1)
}

// longestPrefix returns the sequence that has the most whole pages in common with a prompt, and
// of how many tokens. One token of the prompt is always left to be run.
func (s *Server) longestPrefix(prompt []int32) (from *Sequence, n int) {
	if !s.shares {
		return nil, 0
	}
	consider := func(of *Sequence, parts ...[]int32) {
		most := min(len(prompt)-1, of.tokens)
		if m := common(prompt[:most], parts...) / pageTokens * pageTokens; m > n {
			from, n = of, m
		}
	}
	for _, p := range s.kept {
		consider(p.sequence, p.tokens)
	}
	for _, a := range s.run.active {
		consider(a.sequence, a.Prompt, a.result.Tokens)
	}
	return from, n
}

// common returns with how many tokens of parts, one behind the other, a list begins.
func common(list []int32, parts ...[]int32) (n int) {
	for _, part := range parts {
		for _, t := range part {
			if n == len(list) || list[n] != t {
				return n
			}
			n++
		}
	}
	return n
}
