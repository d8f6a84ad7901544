package tokenizer

import (
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// piece is a part of a text.
type piece struct {
	text  string
	first bool // it begins the text
}

// step gives pieces of a piece to emit.
type step func(m *matcher, p piece, emit func(piece) error) error

// behavior says what becomes of the matches of a pattern.
type behavior int

const (
	isolated     behavior = iota // they are pieces
	removed                      // they are gone
	contiguous                   // those that follow each other are one piece
	withPrevious                 // they end the piece before
	withNext                     // they begin the piece behind
)

var behaviors = map[string]behavior{
	"Isolated": isolated, "Removed": removed, "Contiguous": contiguous,
	"MergedWithPrevious": withPrevious, "MergedWithNext": withNext,
}

// splitter cuts at the matches of a pattern.
type splitter struct {
	at     *pattern
	do     behavior
	invert bool // at what lies between matches
}

func (s *splitter) step(m *matcher, p piece, emit func(piece) error) error {
	from, to, before, begun := 0, 0, false, false // the piece that may go on, and whether it is a match
	flush := func() error {
		if from == to {
			return nil
		}
		return emit(piece{p.text[from:to], p.first && from == 0})
	}
	add := func(end int, match bool) (err error) {
		match = match != s.invert
		join := false
		switch s.do {
		case contiguous:
			join = match == before
		case withPrevious:
			join = match && !before
		case withNext:
			join = before && !match
		}
		if !join || !begun {
			err = flush()
			from = to
		}
		if to = end; s.do == removed && match {
			from = to
		}
		before, begun = match, true
		return err
	}
	err := m.each(s.at, p.text, func(begin, end int) error {
		if begin > to {
			if err := add(begin, false); err != nil {
				return err
			}
		}
		return add(end, true)
	})
	if err == nil && to < len(p.text) {
		err = add(len(p.text), false)
	}
	if err != nil {
		return err
	}
	return flush()
}

// each calls f for each match, but for empty ones directly behind another.
func (m *matcher) each(p *pattern, text string, f func(begin, end int) error) error {
	last := -1
	for from := 0; text != "" && from <= len(text); {
		begin, end, err := m.find(p, text, from)
		if err != nil || begin < 0 {
			return err
		}
		if begin == end && end == last {
			from++
			for from < len(text) && text[from]&0xC0 == 0x80 {
				from++
			}
			continue
		}
		if err := f(begin, end); err != nil {
			return err
		}
		from, last = end, end
	}
	return nil
}

// replace puts content in the place of all matches.
func (m *matcher) replace(p *pattern, text, content string) (string, error) {
	var b strings.Builder
	at := 0
	err := m.each(p, text, func(begin, end int) error {
		b.WriteString(text[at:begin])
		b.WriteString(content)
		at = end
		return nil
	})
	if at == 0 && b.Len() == 0 {
		return text, err
	}
	b.WriteString(text[at:])
	return b.String(), err
}

// pattern reads a {"String": …} or {"Regex": …}.
func (p *part) pattern(what string) (*pattern, error) {
	switch {
	case p.Pattern == nil || (p.Pattern.String == nil) == (p.Pattern.Regex == nil):
		return nil, sentinel.Errorf(ErrUnsupported, "%s %s has no pattern that is a String or a Regex", what, p.Type)
	case p.Pattern.String != nil:
		return literal(*p.Pattern.String), nil
	}
	at, err := compile(*p.Pattern.Regex)
	if err != nil {
		err = fmt.Errorf("%s %s: %w", what, p.Type, err)
	}
	return at, err
}
