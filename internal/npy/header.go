package npy

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
)

// maxRank is NumPy's.
const maxRank = 64

// parseHeader reads the literal of a Python dict with the keys descr,
// fortran_order and shape, in any order.
func parseHeader(text []byte) (*Array, error) {
	s := scanner{rest: text}
	a := &Array{}
	seen := make(map[string]bool)
	s.expect('{')
	for s.err == nil && !s.accept('}') {
		key := s.quoted()
		s.expect(':')
		if seen[key] {
			s.fail()
		}
		seen[key] = true
		switch key {
		case "descr":
			a.Type = Type(s.quoted())
		case "fortran_order":
			if s.boolean() {
				return nil, errors.New("the array is in Fortran order: save numpy.ascontiguousarray(x)")
			}
		case "shape":
			a.Shape = s.tuple()
		default:
			s.fail()
		}
		s.comma('}')
	}
	if s.skip(); s.err != nil || len(s.rest) > 0 || len(seen) != 3 {
		return nil, fmt.Errorf("the header %q is not {'descr': TYPE, 'fortran_order': False, 'shape': SHAPE}: save it with numpy.save", clip(text))
	}
	if a.Type.size() == 0 {
		return nil, fmt.Errorf("elements of type %q: want |u1, <u2, <f2, <f4, <i4 or <i8: save codes as x.view(numpy.uint8), others as x.astype('<f4')", a.Type)
	}
	return a, nil
}

// clip returns the beginning of a long text.
func clip(text []byte) []byte {
	const most = 200
	return text[:min(len(text), most)]
}

// scanner reads tokens of Python. After an error it reads nothing more.
type scanner struct {
	rest []byte
	err  error
}

func (s *scanner) fail() {
	if s.err == nil {
		s.err = errors.New("malformed")
	}
	s.rest = nil
}

func (s *scanner) skip() { s.rest = bytes.TrimLeft(s.rest, " \t\n") }

// accept reads c if it comes next.
func (s *scanner) accept(c byte) bool {
	s.skip()
	if len(s.rest) == 0 || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

func (s *scanner) expect(c byte) {
	if !s.accept(c) {
		s.fail()
	}
}

// comma reads what separates an item from the next or, with or without a comma,
// from the end.
func (s *scanner) comma(end byte) {
	if s.accept(',') {
		return
	}
	if s.skip(); len(s.rest) == 0 || s.rest[0] != end {
		s.fail()
	}
}

func (s *scanner) quoted() string {
	s.skip()
	if len(s.rest) == 0 || s.rest[0] != '\'' && s.rest[0] != '"' {
		s.fail()
		return ""
	}
	end := bytes.IndexByte(s.rest[1:], s.rest[0])
	if end < 0 {
		s.fail()
		return ""
	}
	text := string(s.rest[1 : 1+end])
	s.rest = s.rest[end+2:]
	return text
}

func (s *scanner) boolean() (value bool) {
	s.skip()
	for _, word := range []string{"True", "False"} {
		if rest, ok := bytes.CutPrefix(s.rest, []byte(word)); ok {
			s.rest = rest
			return word == "True"
		}
	}
	s.fail()
	return false
}

func (s *scanner) tuple() []int {
	shape := []int{}
	s.expect('(')
	for s.err == nil && !s.accept(')') {
		if len(shape) == maxRank {
			s.fail()
		}
		shape = append(shape, s.dimension())
		s.comma(')')
	}
	return shape
}

func (s *scanner) dimension() int {
	s.skip()
	n := 0
	for n < len(s.rest) && s.rest[n] >= '0' && s.rest[n] <= '9' {
		n++
	}
	d, err := strconv.Atoi(string(s.rest[:n]))
	if err != nil {
		s.fail()
		return 0
	}
	s.rest = s.rest[n:]
	return d
}
