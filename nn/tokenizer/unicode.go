package tokenizer

import (
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

//go:embed unicode.txt
var unicodeText string

// span is the characters from lo to hi.
type span struct{ lo, hi rune }

// set is characters: spans in order, apart from each other.
type set []span

var everything = set{{0, utf8.MaxRune}}

// union returns the characters of any of the sets.
func union(sets ...set) (u set) {
	all := slices.Concat(sets...)
	slices.SortFunc(all, func(a, b span) int { return int(a.lo - b.lo) })
	for _, s := range all {
		if n := len(u); n > 0 && s.lo <= u[n-1].hi+1 {
			u[n-1].hi = max(u[n-1].hi, s.hi)
		} else {
			u = append(u, s)
		}
	}
	return u
}

// but returns the characters of s that other lacks.
func (s set) but(other set) (d set) {
	for _, a := range s {
		for _, b := range other {
			if b.hi < a.lo {
				continue
			}
			if b.lo > a.hi {
				break
			}
			if b.lo > a.lo {
				d = append(d, span{a.lo, b.lo - 1})
			}
			a.lo = b.hi + 1
		}
		if a.lo <= a.hi {
			d = append(d, a)
		}
	}
	return d
}

func (s set) and(other set) set { return s.but(everything.but(other)) }

// class is a set that is fast to ask.
type class struct {
	ascii [utf8.RuneSelf]bool
	few   set                              // all of it, where there are no pages
	page  *[(utf8.MaxRune + 1) >> 8]uint16 // of 256 characters: which of bits
	bits  [][4]uint64                      // 0: none, 1: all
}

// fewSpans are as fast as pages.
const fewSpans = 4

func (s set) class() *class {
	c := &class{few: s}
	for _, a := range s {
		for r := a.lo; r <= min(a.hi, utf8.RuneSelf-1); r++ {
			c.ascii[r] = true
		}
	}
	if len(s) <= fewSpans {
		return c
	}
	all := ^uint64(0)
	c.page, c.bits = new([(utf8.MaxRune + 1) >> 8]uint16), [][4]uint64{{}, {all, all, all, all}}
	for _, a := range s {
		for lo := a.lo; lo <= a.hi; {
			page, hi := &c.page[lo>>8], min(a.hi, lo|255)
			if hi-lo == 255 {
				*page = 1
			} else if *page == 0 {
				*page = uint16(len(c.bits))
				c.bits = append(c.bits, [4]uint64{})
			}
			for ; lo <= hi; lo++ {
				c.bits[*page][lo>>6&3] |= 1 << (lo & 63)
			}
		}
	}
	return c
}

func (c *class) has(r rune) bool {
	if c.page != nil {
		return c.bits[c.page[r>>8]][r>>6&3]>>(r&63)&1 != 0
	}
	for _, a := range c.few {
		if r <= a.hi {
			return r >= a.lo
		}
	}
	return false
}

// at returns how many bytes the character at i has if c has it, or 0.
func (c *class) at(text string, i int) int {
	if i >= len(text) {
		return 0
	}
	if b := text[i]; b < utf8.RuneSelf {
		if c.ascii[b] {
			return 1
		}
		return 0
	}
	r, n := utf8.DecodeRuneInString(text[i:])
	if c.has(r) {
		return n
	}
	return 0
}

// characters is what unicode.txt says.
type characters struct {
	sets        map[string]set
	space, word *class           // as Rust has them
	combining   map[rune]uint8   // classes but 0
	canonical   map[rune][]rune  // full decompositions
	compat      map[rune][]rune  // those that differ from canonical ones
	composite   map[[2]rune]rune // what two become
}

var unicodeData = sync.OnceValue(func() *characters {
	c := &characters{
		sets: map[string]set{}, combining: map[rune]uint8{}, canonical: map[rune][]rune{},
		compat: map[rune][]rune{}, composite: map[[2]rune]rune{},
	}
	var composed []rune
	for line := range strings.Lines(unicodeText) {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if name, list, ok := strings.Cut(line, ": "); ok {
			c.addSet(name, list)
			continue
		}
		var runes []rune
		for field := range strings.FieldsSeq(strings.TrimLeft(line, "=~ ")) {
			runes = append(runes, hex(field))
		}
		switch r := runes[0]; line[0] {
		case '~':
			c.compat[r] = runes[1:]
		case '=':
			composed = append(composed, r)
			fallthrough
		default:
			c.canonical[r] = runes[1:]
		}
	}
	// A decomposition of three is that of two, the first of which is composed of the others.
	slices.SortFunc(composed, func(a, b rune) int { return len(c.canonical[a]) - len(c.canonical[b]) })
	for _, r := range composed {
		d := c.canonical[r]
		first := d[0]
		for _, next := range d[1 : len(d)-1] {
			first = c.composite[[2]rune{first, next}]
		}
		c.composite[[2]rune{first, d[len(d)-1]}] = r
	}
	major := map[string]set{}
	for name, s := range c.sets {
		if len(name) == 2 {
			major[name[:1]] = union(major[name[:1]], s)
		}
	}
	rest := everything
	for name, s := range major {
		c.sets[name], rest = s, rest.but(s)
	}
	c.sets["Cn"], c.sets["C"], c.sets["Any"] = rest, union(c.sets["C"], rest), everything
	c.sets["Word"] = union(c.sets["L"], c.sets["M"], c.sets["Nd"], c.sets["Nl"], c.sets["Pc"], c.sets["Alphabetic"])
	delete(c.sets, "Alphabetic") // the row has not all of them
	c.space, c.word = c.sets["White_Space"].class(), union(c.sets["Word"], set{{0x200C, 0x200D}}).class()
	c.sets[`\w`] = union(c.sets["Word"], set{{'²', '³'}, {'¹', '¹'}, {'¼', '¾'}}) // so Oniguruma has it
	return c
})

func (c *characters) addSet(name, list string) {
	var s set
	for field := range strings.FieldsSeq(list) {
		lo, hi, ok := strings.Cut(field, "-")
		if !ok {
			hi = lo
		}
		s = append(s, span{hex(lo), hex(hi)})
	}
	var of uint8
	if n, _ := fmt.Sscanf(name, "ccc %d", &of); n == 0 {
		c.sets[name] = s
		return
	}
	for _, a := range s {
		for r := a.lo; r <= a.hi; r++ {
			c.combining[r] = of
		}
	}
}

func hex(s string) rune {
	r, err := strconv.ParseUint(s, 16, 21)
	if err != nil {
		panic("tokenizer: unicode.txt")
	}
	return rune(r)
}
