package tokenizer

import (
	"strings"
	"unicode/utf8"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// pattern is a regular expression that was compiled: a program that backtracks, as Oniguruma's.
type pattern struct {
	text  string
	prog  []instruction
	start *bytesOf // that a match may begin with; nil: it may be empty
}

// bytesOf says which bytes something may begin with.
type bytesOf [256]bool

// opcode is what an instruction does.
type opcode uint8

const (
	opText   opcode = iota // takes a text
	opRun                  // takes min to max characters of a class, as many as there are
	opKeep                 // the same, and gives none back
	opBranch               // tries programs in order
	opJump                 // to y
	opAhead                // the program that follows must match, or must not; goes on at y
	opAtomic               // the same, and takes what it matched
	opAnchor
	opMatch
)

type instruction struct {
	op       opcode
	not      bool // ahead
	anchor   nodeKind
	y        int
	min, max int
	class    *class
	text     string
	branches []branch
}

type branch struct {
	first *bytesOf // nil: it may match nothing
	pc    int
}

// mostInstructions is more than any expression needs.
const mostInstructions = 20_000

func compile(text string) (*pattern, error) {
	n, err := parseExpression(text)
	if err != nil {
		return nil, err
	}
	p := &pattern{text: text}
	if p.add(n); len(p.prog) > mostInstructions {
		return nil, sentinel.Errorf(ErrUnsupported, "the expression %.200q is too large when its repeats are written out", text)
	}
	p.emit(instruction{op: opMatch})
	p.start = n.first()
	return p, nil
}

// literal returns the pattern of a text.
func literal(text string) *pattern {
	p := &pattern{text: text, prog: []instruction{{op: opText, text: text}, {op: opMatch}}}
	if text != "" {
		p.start = new(bytesOf)
		p.start[text[0]] = true
	}
	return p
}

func (p *pattern) emit(in instruction) int {
	p.prog = append(p.prog, in)
	return len(p.prog) - 1
}

// add appends the program of a node.
func (p *pattern) add(n *node) {
	if len(p.prog) > mostInstructions {
		return
	}
	switch n.kind {
	case one:
		if len(n.set) == 1 && n.set[0].lo == n.set[0].hi {
			p.emit(instruction{op: opText, text: string(n.set[0].lo)})
		} else {
			p.emit(instruction{op: opKeep, min: 1, max: 1, class: n.set.class()})
		}
	case concat:
		for _, sub := range n.subs {
			p.add(sub)
		}
	case either:
		p.addBranches(n.subs)
	case repeat:
		p.addRepeat(n)
	case ahead, atomic:
		op := opAhead
		if n.kind == atomic {
			op = opAtomic
		}
		at := p.emit(instruction{op: op, not: n.not})
		p.add(n.subs[0])
		p.emit(instruction{op: opMatch})
		p.prog[at].y = len(p.prog)
		if in := p.prog[at+1:]; op == opAtomic && len(in) == 2 && in[0].op == opRun { // the same, faster
			in[0].op = opKeep
			p.prog = append(p.prog[:at], in[0])
		}
	default:
		p.emit(instruction{op: opAnchor, anchor: n.kind})
	}
}

func (p *pattern) addBranches(subs []*node) {
	if len(subs) == 1 {
		p.add(subs[0])
		return
	}
	at := p.emit(instruction{op: opBranch})
	var jumps []int
	for _, sub := range subs {
		p.prog[at].branches = append(p.prog[at].branches, branch{sub.first(), len(p.prog)})
		p.add(sub)
		jumps = append(jumps, p.emit(instruction{op: opJump}))
	}
	for _, j := range jumps {
		p.prog[j].y = len(p.prog)
	}
}

func (p *pattern) addRepeat(n *node) {
	body := n.subs[0]
	if body.kind == one && !n.lazy {
		p.emit(instruction{op: opRun, min: n.min, max: n.max, class: body.set.class()})
		return
	}
	for range n.min {
		p.add(body)
	}
	// Each of the others is a branch: the body, or what follows it all.
	var ends []int
	try := func() (at int) {
		at = p.emit(instruction{op: opBranch})
		p.prog[at].branches = []branch{{body.first(), len(p.prog)}}
		p.add(body)
		ends = append(ends, at)
		return at
	}
	if n.max < 0 {
		at := try()
		p.emit(instruction{op: opJump, y: at})
	} else {
		for range n.max - n.min {
			try()
		}
	}
	for _, at := range ends {
		b := append(p.prog[at].branches, branch{nil, len(p.prog)})
		if n.lazy {
			b[0], b[1] = b[1], b[0]
		}
		p.prog[at].branches = b
	}
}

// first returns the bytes that what a node matches begins with, or nil if that may be empty.
func (n *node) first() *bytesOf {
	switch n.kind {
	case one:
		f := new(bytesOf)
		for _, s := range n.set {
			for b := int(lead(s.lo)); b <= int(lead(s.hi)); b++ {
				f[b] = true
			}
		}
		return f
	case concat:
		f := new(bytesOf)
		for _, sub := range n.subs {
			if sub.kind == repeat && sub.min == 0 { // what follows may begin it too
				if g := sub.subs[0].first(); g != nil {
					f.add(g)
					continue
				}
			}
			g := sub.first()
			if g != nil {
				f.add(g)
				return f
			}
			if sub.kind <= repeat || sub.kind == atomic {
				return nil
			}
		}
		return nil
	case either:
		f := new(bytesOf)
		for _, sub := range n.subs {
			g := sub.first()
			if g == nil {
				return nil
			}
			f.add(g)
		}
		return f
	case repeat:
		if n.min == 0 {
			return nil
		}
		return n.subs[0].first()
	case atomic:
		return n.subs[0].first()
	}
	return nil // anchors take nothing
}

func (f *bytesOf) add(other *bytesOf) {
	for b, in := range other {
		f[b] = f[b] || in
	}
}

// lead returns the first byte of a character in UTF-8.
func lead(r rune) byte { return string(r)[0] }

// matcher finds what patterns match. It is for one goroutine.
type matcher struct {
	stack []choice
	steps int
	text  string
}

// choice is what is left to try.
type choice struct {
	pc   int
	at   int
	next int // opBranch: the next one; opRun: where it may go back to
}

// find returns the first match at from or behind it; begin is -1 if there is none. The error is
// ErrUnsupported where the expression backtracks too often.
func (m *matcher) find(p *pattern, text string, from int) (begin, end int, err error) {
	m.text, m.stack, m.steps = text, m.stack[:0], mostSteps+mostStepsOfByte*(len(text)-from)
	for i := from; i <= len(text); {
		if p.start != nil {
			for i < len(text) && !p.start[text[i]] {
				i++
			}
			if i == len(text) {
				break
			}
		}
		end := m.run(p.prog, 0, i)
		if m.steps < 0 {
			return -1, -1, sentinel.Errorf(ErrUnsupported, "the expression %.200q backtracks too often in %.40q", p.text, text[i:])
		}
		if end >= 0 {
			return i, end, nil
		}
		i++
		for i < len(text) && !utf8.RuneStart(text[i]) {
			i++
		}
	}
	return -1, -1, nil
}

// An expression may go back so often in search of one match. Oniguruma has the first of these
// for each place where one may begin.
const (
	mostSteps       = 10_000_000
	mostStepsOfByte = 16
)

// run returns where the program matches up to, or -1.
func (m *matcher) run(prog []instruction, pc, at int) int {
	base, from := len(m.stack), 0
	for {
		here := pc
		in := &prog[pc]
		ok := true
		switch in.op {
		case opText:
			if ok = strings.HasPrefix(m.text[at:], in.text); ok {
				at += len(in.text)
				pc++
			}
		case opRun, opKeep:
			low, n := at, 0
			for n != in.max {
				size := in.class.at(m.text, at)
				if size == 0 {
					break
				}
				at += size
				if n++; n == in.min {
					low = at
				}
			}
			if ok = n >= in.min; ok {
				pc++
				if at > low && in.op == opRun {
					m.stack = append(m.stack, choice{here, at, low})
				}
			}
		case opBranch:
			i := from
			from = 0
			for ; i < len(in.branches) && !m.may(in.branches[i].first, at); i++ {
			}
			if ok = i < len(in.branches); !ok {
				break
			}
			pc = in.branches[i].pc
			for i++; i < len(in.branches); i++ {
				if m.may(in.branches[i].first, at) {
					m.stack = append(m.stack, choice{here, at, i})
					break
				}
			}
		case opJump:
			pc = in.y
		case opAhead, opAtomic:
			found := m.run(prog, pc+1, at)
			if ok = (found >= 0) != in.not; ok {
				if pc = in.y; in.op == opAtomic {
					at = found
				}
			}
		case opAnchor:
			ok = m.anchor(in.anchor, at)
			pc++
		case opMatch:
			m.stack = m.stack[:base]
			return at
		}
		if ok {
			continue
		}
		if m.steps--; m.steps < 0 || len(m.stack) == base {
			m.stack = m.stack[:base]
			return -1
		}
		last := &m.stack[len(m.stack)-1]
		if prog[last.pc].op == opBranch {
			pc, at, from = last.pc, last.at, last.next
			m.stack = m.stack[:len(m.stack)-1]
			continue
		}
		at = last.at - 1
		for !utf8.RuneStart(m.text[at]) {
			at--
		}
		pc = last.pc + 1
		if last.at = at; at == last.next {
			m.stack = m.stack[:len(m.stack)-1]
		}
	}
}

// may returns whether what begins with some bytes may match at a place.
func (m *matcher) may(first *bytesOf, at int) bool {
	return first == nil || at < len(m.text) && first[m.text[at]]
}

func (m *matcher) anchor(kind nodeKind, at int) bool {
	switch kind {
	case begin:
		return at == 0
	case beginLine:
		return at == 0 || at < len(m.text) && m.text[at-1] == '\n'
	case endLine:
		return at == len(m.text) || m.text[at] == '\n'
	}
	return at == len(m.text)
}
