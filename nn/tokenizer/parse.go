package tokenizer

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// node is a part of a regular expression.
type node struct {
	kind nodeKind
	set  set     // one
	subs []*node // the parts of all others
	min  int     // repeat
	max  int     // repeat: -1 is any number
	lazy bool    // repeat
	not  bool    // ahead
}

type nodeKind int

const (
	one    nodeKind = iota // a character
	concat                 // one after the other
	either                 // the first that matches
	repeat
	ahead  // what follows, which stays
	atomic // its first match or none
	begin  // of the text
	end    // of the text
	beginLine
	endLine
)

// parser reads an expression as Oniguruma does, of which it knows what expressions of
// tokenizers use. All else is ErrUnsupported.
type parser struct {
	all, rest string
	fold      bool // case counts for nothing
	err       error
	depth     int
}

func parseExpression(text string) (*node, error) {
	p := &parser{all: text, rest: text}
	n := p.alternatives()
	if p.err == nil && p.rest != "" {
		p.refuse("a ) without (")
	}
	return n, p.err
}

func (p *parser) refuse(what string) {
	if p.err == nil {
		p.err = sentinel.Errorf(ErrUnsupported, "the expression %.200q has %s, which is not supported", p.all, what)
	}
	p.rest = "" // what ends all loops
}

// take returns whether the rest begins with text, and takes that.
func (p *parser) take(text string) bool {
	rest, ok := strings.CutPrefix(p.rest, text)
	if ok {
		p.rest = rest
	}
	return ok
}

func (p *parser) next() rune {
	if p.rest == "" {
		p.refuse("an end too early")
		return 0
	}
	r, n := utf8.DecodeRuneInString(p.rest)
	if r == utf8.RuneError && n == 1 {
		p.refuse("bytes that are not UTF-8")
	} else {
		p.rest = p.rest[n:]
	}
	return r
}

// mostNested is more than any expression has.
const mostNested = 100

// alternatives reads up to a ) or the end.
func (p *parser) alternatives() *node {
	defer func(fold bool) { p.fold = fold; p.depth-- }(p.fold)
	if p.depth++; p.depth > mostNested {
		p.refuse("too many groups in each other")
	}
	all := &node{kind: either}
	for {
		all.subs = append(all.subs, p.sequence())
		if !p.take("|") {
			return all
		}
	}
}

func (p *parser) sequence() *node {
	all := &node{kind: concat}
	for p.rest != "" && p.rest[0] != '|' && p.rest[0] != ')' {
		if atom := p.atom(); atom != nil {
			all.subs = append(all.subs, p.repeats(atom))
		}
	}
	if p.fold {
		p.checkFold(all)
	}
	return all
}

// checkFold refuses letters that are one character when their case is folded, such as ﬆ.
func (p *parser) checkFold(n *node) {
	for i := 1; i < len(n.subs); i++ {
		a, b := n.subs[i-1], n.subs[i]
		for _, pair := range []string{"ss", "ff", "fi", "fl", "st"} {
			if a.kind == one && b.kind == one && a.set.has(rune(pair[0])) && b.set.has(rune(pair[1])) {
				p.refuse(strconv.Quote(pair) + " without regard to case")
			}
		}
	}
}

func (s set) has(r rune) bool { return len(s.and(set{{r, r}})) > 0 }

// repeats reads what may follow an atom.
func (p *parser) repeats(n *node) *node {
	for p.rest != "" {
		r := &node{kind: repeat, subs: []*node{n}, max: -1}
		interval := false
		switch {
		case p.take("*"):
		case p.take("+"):
			r.min = 1
		case p.take("?"):
			r.max = 1
		default:
			if interval = p.interval(r); !interval {
				return n
			}
		}
		if n.kind == ahead || n.kind >= begin {
			p.refuse("a repeated anchor")
		}
		switch {
		case interval && r.min == r.max: // a ? is another repeat
		case p.take("?"):
			r.lazy = true
		case !interval && p.take("+"): // after an interval it is another repeat
			r = &node{kind: atomic, subs: []*node{r}}
		}
		if r.max < 0 && r.subs[0].first() == nil {
			p.refuse("a repeat of what may be empty")
		}
		n = r
	}
	return n
}

// mostRepeats is more than any expression asks for.
const mostRepeats = 1000

// interval reads {n}, {n,}, {n,m} or {,m}.
func (p *parser) interval(n *node) bool {
	text, rest, ok := strings.Cut(p.rest, "}")
	if !ok || !strings.HasPrefix(text, "{") {
		return false
	}
	low, high, two := strings.Cut(text[1:], ",")
	number := func(s string, empty int) (n int) {
		if s == "" {
			return empty
		}
		v, err := strconv.ParseUint(s, 10, 31)
		ok = ok && err == nil
		return int(v)
	}
	n.min = number(low, 0)
	if n.max = n.min; two {
		n.max = number(high, -1)
	}
	if !ok || low == "" && high == "" {
		return false // these are characters
	}
	p.rest = rest
	if n.min > mostRepeats || n.max > mostRepeats || n.max >= 0 && n.max < n.min {
		p.refuse("the interval " + text + "}")
	}
	return true
}

// atom reads a character, a class, a group or an anchor; nil is an option that ends nowhere.
func (p *parser) atom() *node {
	switch r := p.next(); r {
	case '(':
		return p.group()
	case '[':
		return p.character(p.class())
	case '.':
		return &node{set: everything.but(set{{'\n', '\n'}})}
	case '^':
		return &node{kind: beginLine}
	case '$':
		return &node{kind: endLine}
	case '*', '+', '?':
		p.refuse("a repeat of nothing")
		return nil
	case '\\':
		switch {
		case p.take("A"):
			return &node{kind: begin}
		case p.take("z"):
			return &node{kind: end}
		}
		s, _ := p.escape()
		return p.character(s)
	default:
		return p.character(set{{r, r}})
	}
}

// character returns a set's, with their other cases where case does not count.
func (p *parser) character(s set) *node {
	if p.fold && len(s) > 0 {
		if s[len(s)-1].hi >= utf8.RuneSelf {
			p.refuse("characters beyond ASCII without regard to case")
			return &node{}
		}
		all := []set{s}
		for _, a := range s {
			for r := a.lo; r <= a.hi; r++ {
				for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
					all = append(all, set{{f, f}})
				}
			}
		}
		s = union(all...)
	}
	return &node{set: s}
}

func (p *parser) group() *node {
	var n *node
	switch {
	case !p.take("?"), p.take(":"):
		n = p.alternatives()
	case p.take("="):
		n = &node{kind: ahead, subs: []*node{p.alternatives()}}
	case p.take("!"):
		n = &node{kind: ahead, not: true, subs: []*node{p.alternatives()}}
	case p.take(">"):
		n = &node{kind: atomic, subs: []*node{p.alternatives()}}
	case p.take("i"), p.take("-i"):
		was := p.fold
		defer func() { p.fold = was }()
		p.fold = !strings.HasSuffix(p.all[:len(p.all)-len(p.rest)], "-i")
		if p.take(")") { // up to the end of the group that it is in
			return p.alternatives()
		}
		if !p.take(":") {
			p.refuse("an option")
		}
		n = p.alternatives()
	default:
		p.refuse("a group (?" + p.rest[:min(2, len(p.rest))])
		return nil
	}
	if !p.take(")") {
		p.refuse("a ( without )")
	}
	return n
}

var controls = map[rune]rune{'t': '\t', 'n': '\n', 'r': '\r', 'f': '\f', 'v': '\v', 'a': '\a', 'e': '\x1b'}

// classes are escapes of classes; the capital letter is the complement.
var classes = map[rune]string{'s': "White_Space", 'd': "Nd", 'w': `\w`}

// escape reads what follows a \, and returns whether it is one character.
func (p *parser) escape() (s set, single bool) {
	switch r := p.next(); {
	case r == 'p' || r == 'P':
		return p.property(r == 'P'), false
	case r == 'x' && p.take("{"):
		digits, rest, _ := strings.Cut(p.rest, "}")
		p.rest = rest
		return p.code(digits), true
	case r == 'x' || r == 'u':
		n := 2
		if r == 'u' {
			n = 4
		}
		digits := p.rest[:min(n, len(p.rest))]
		p.rest = p.rest[len(digits):]
		return p.code(digits), true
	case controls[r] != 0:
		return set{{controls[r], controls[r]}}, true
	case classes[unicode.ToLower(r)] != "":
		s = unicodeData().sets[classes[unicode.ToLower(r)]]
		if unicode.IsUpper(r) {
			s = everything.but(s)
		}
		return s, false
	case r == 'h' || r == 'H':
		s = set{{'0', '9'}, {'A', 'F'}, {'a', 'f'}}
		if r == 'H' {
			s = everything.but(s)
		}
		return s, false
	case r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)):
		p.refuse(`\` + string(r))
		return nil, false
	default:
		return set{{r, r}}, true
	}
}

func (p *parser) code(digits string) set {
	r, err := strconv.ParseUint(digits, 16, 21)
	if err != nil || r > utf8.MaxRune {
		p.refuse(`\x` + digits)
	}
	return set{{rune(r), rune(r)}}
}

// longNames are what categories are also called.
var longNames = map[string]string{
	"letter": "L", "uppercaseletter": "Lu", "lowercaseletter": "Ll", "titlecaseletter": "Lt", "modifierletter": "Lm",
	"otherletter": "Lo", "mark": "M", "number": "N", "decimalnumber": "Nd", "punctuation": "P", "symbol": "S",
	"separator": "Z", "other": "C",
}

// property reads {NAME} or {^NAME}.
func (p *parser) property(not bool) set {
	name, rest, ok := strings.Cut(p.rest, "}")
	if !ok || name == "" || name[0] != '{' {
		p.refuse(`\p without {NAME}`)
		return nil
	}
	p.rest = rest
	name, caret := strings.CutPrefix(name[1:], "^")
	plain := strings.ToLower(strings.NewReplacer(" ", "", "_", "", "-", "").Replace(name))
	if long := longNames[plain]; long != "" {
		plain = strings.ToLower(long)
	}
	for of, s := range unicodeData().sets {
		if strings.ToLower(strings.ReplaceAll(of, "_", "")) == plain {
			if not != caret {
				s = everything.but(s)
			}
			return s
		}
	}
	p.refuse(`the property \p{` + name + "}")
	return nil
}

// class reads what follows a [, up to the ].
func (p *parser) class() (s set) {
	defer func() { p.depth-- }()
	if p.depth++; p.depth > mostNested {
		p.refuse("too many classes in each other")
	}
	not := p.take("^")
	var parts []set // of which && takes what is in all
	empty := true
	for !p.take("]") {
		if p.err != nil {
			return nil
		}
		switch {
		case strings.HasPrefix(p.rest, "[:"):
			p.refuse("a class [:")
		case p.take("&&"):
			parts, s = append(parts, s), nil
		case p.take("["):
			s = union(s, p.class())
		default:
			lo, single := p.member()
			if single && len(p.rest) > 1 && p.rest[0] == '-' && p.rest[1] != ']' && p.rest[1] != '[' {
				p.rest = p.rest[1:]
				hi, single := p.member()
				if p.err != nil {
					return nil
				}
				if !single || hi[0].lo < lo[0].lo {
					p.refuse("a range in a class that ends before it begins or in no character")
					return nil
				}
				lo[0].hi = hi[0].lo
			}
			s = union(s, lo)
		}
		empty = false
	}
	if empty {
		p.refuse("a class of nothing")
	}
	for _, other := range parts {
		s = s.and(other)
	}
	if not {
		s = everything.but(s)
	}
	return s
}

// member reads a character or an escape in a class.
func (p *parser) member() (s set, single bool) {
	if p.take(`\`) {
		return p.escape()
	}
	r := p.next()
	return set{{r, r}}, true
}
