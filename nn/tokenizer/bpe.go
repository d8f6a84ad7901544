package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// bpe is byte pair encoding: neighbours are joined, those of the lowest rank first.
type bpe struct {
	vocab        map[string]int32
	merges       pairs   // to ranks
	joined       []int32 // by rank: what two tokens become
	byteFallback bool
	ignoreMerges bool    // of what is a token as a whole
	unknown      *string // for characters that are no tokens; nil: they are left out
	fuse         bool    // unknown characters that follow each other

	bytes  bool             // words are bytes, for which characters stand
	whole  map[string]int32 // words that are tokens, where merges are ignored
	starts [256]int32       // tokens of bytes, or of the characters of ASCII; -1: there is none here

	inside func() *pairs // see neighbours
}

// model is the model of a tokenizer.json.
type model struct {
	Type         string           `json:"type"`
	Vocab        map[string]int32 `json:"vocab"`
	Merges       []mergeText      `json:"merges"`
	Dropout      *float64         `json:"dropout"`
	Unknown      *string          `json:"unk_token"`
	Prefix       *string          `json:"continuing_subword_prefix"`
	Suffix       *string          `json:"end_of_word_suffix"`
	Fuse         bool             `json:"fuse_unk"`
	ByteFallback bool             `json:"byte_fallback"`
	IgnoreMerges bool             `json:"ignore_merges"`
}

// mergeText is a merge in either of the forms that files have: "a b" and ["a", "b"].
type mergeText [2]string

// UnmarshalJSON implements [json.Unmarshaler].
func (m *mergeText) UnmarshalJSON(data []byte) error {
	if data[0] == '[' {
		var list []string
		if err := json.Unmarshal(data, &list); err != nil || len(list) != 2 {
			return fmt.Errorf("merge %.40q is not of two tokens", data)
		}
		*m = mergeText(list)
		return nil
	}
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return err
	}
	left, right, ok := strings.Cut(text, " ")
	if !ok || strings.Contains(right, " ") {
		return fmt.Errorf("merge %.40q is not of two tokens", text)
	}
	*m = mergeText{left, right}
	return nil
}

func newBPE(data json.RawMessage) (*bpe, error) {
	var kind part
	if err := json.Unmarshal(data, &kind); err != nil {
		return nil, errors.New("want a tokenizer.json: there is no model that is an object")
	}
	if kind.Type != "BPE" {
		return nil, unknown("model", &kind)
	}
	var m model
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	set := func(s *string) bool { return s != nil && *s != "" }
	switch {
	case m.Dropout != nil && *m.Dropout != 0:
		return nil, errors.New("model has a dropout, with which tokens are random: remove it")
	case set(m.Prefix) || set(m.Suffix):
		return nil, sentinel.Errorf(ErrUnsupported, "model has a continuing_subword_prefix or end_of_word_suffix, which are not supported")
	}
	b := &bpe{
		vocab: m.Vocab, merges: newPairs(len(m.Merges)), joined: make([]int32, len(m.Merges)),
		byteFallback: m.ByteFallback, ignoreMerges: m.IgnoreMerges, unknown: m.Unknown, fuse: m.Fuse,
	}
	for i, pair := range m.Merges {
		left, okLeft := m.Vocab[pair[0]]
		right, okRight := m.Vocab[pair[1]]
		id, ok := m.Vocab[pair[0]+pair[1]]
		if !okLeft || !okRight || !ok {
			return nil, fmt.Errorf("model: merge %d, %.40q and %.40q, is not of tokens of the vocabulary",
				i, pair[0], pair[1])
		}
		b.joined[i] = id
		b.merges.set(left, right, int32(i))
	}
	return b, nil
}

// complete is called once it is known whether words are bytes.
func (b *bpe) complete() {
	b.whole = b.vocab
	if b.bytes {
		b.whole = make(map[string]int32, len(b.vocab))
		for text, id := range b.vocab {
			if raw, ok := unmapped(text); ok && b.ignoreMerges {
				b.whole[string(raw)] = id
			}
		}
	}
	for i := range b.starts {
		id, ok := b.vocab[b.character(string([]byte{byte(i)}))]
		if b.starts[i] = id; !ok || !b.bytes && i >= utf8.RuneSelf {
			b.starts[i] = -1
		}
	}
	b.inside = sync.OnceValue(b.neighbours)
}

// neighbours returns which tokens of characters are beside each other in a token that they
// become: all others never join, so that a word can be cut between them. It is nil where that
// is not known.
func (b *bpe) neighbours() *pairs {
	parts := map[int32][2]int32{} // of tokens that others become
	for at, key := range b.merges.keys {
		if rank := b.merges.ranks[at]; rank >= 0 {
			left, right, whole := int32(key>>32), int32(uint32(key)), b.joined[rank]
			if left != whole && right != whole { // or one is empty
				parts[whole] = [2]int32{left, right}
			}
		}
	}
	for i := range 256 {
		if id, ok := b.vocab[byteName(byte(i))]; ok && parts[id] != [2]int32{} {
			return nil // it is a byte, and characters that spell it
		}
	}
	end := func(id int32, side int) int32 {
		for of, ok := parts[id]; ok; of, ok = parts[id] {
			id = of[side]
		}
		return id
	}
	n := newPairs(len(b.joined))
	for at, key := range b.merges.keys {
		if b.merges.ranks[at] >= 0 {
			n.set(end(int32(key>>32), 1), end(int32(uint32(key)), 0), 0)
		}
	}
	return &n
}

// character returns what stands for a character or a byte in the vocabulary.
func (b *bpe) character(c string) string {
	if b.bytes {
		return runeOf[c[0]]
	}
	return c
}

// pairs is a table of pairs of tokens with a rank each, by open addressing.
type pairs struct {
	keys  []uint64 // left<<32 | right
	ranks []int32  // -1: no key is here
	shift int
}

func newPairs(n int) pairs {
	size := bits.Len(uint(2 * n))
	p := pairs{make([]uint64, 1<<size), make([]int32, 1<<size), 64 - size}
	for i := range p.ranks {
		p.ranks[i] = -1
	}
	return p
}

func (p *pairs) find(left, right int32) (at uint64, key uint64) {
	key = uint64(uint32(left))<<32 | uint64(uint32(right))
	mask := uint64(len(p.keys) - 1)
	for at = key * 0x9E3779B97F4A7C15 >> p.shift; p.ranks[at] >= 0 && p.keys[at] != key; at = (at + 1) & mask {
	}
	return at, key
}

func (p *pairs) set(left, right, rank int32) {
	at, key := p.find(left, right)
	p.keys[at], p.ranks[at] = key, rank
}

// rank returns that of a pair, or -1.
func (p *pairs) rank(left, right int32) int32 {
	at, _ := p.find(left, right)
	return p.ranks[at]
}

// joiner joins neighbours. It is for one goroutine.
type joiner struct {
	model  *bpe
	tokens []int32 // what became of those before list
	list   []symbol
	queue  []uint64 // a heap of pairs that may be joined: rank<<32 | place of the left one
}

// symbol is a token in a list of neighbours.
type symbol struct {
	id         int32 // -1: it was joined to the one before
	prev, next int32 // -1: none
}

// encode appends the tokens of a word.
func (j *joiner) encode(word string) error {
	if j.model.ignoreMerges {
		if id, ok := j.model.whole[word]; ok {
			j.tokens = append(j.tokens, id)
			return nil
		}
	}
	if err := j.characters(word); err != nil {
		return err
	}
	j.join()
	return nil
}

// characters adds the tokens of a word's characters.
func (j *joiner) characters(word string) error {
	b, waits, unknown := j.model, false, int32(-1) // an unknown character waits
	for i := 0; i < len(word); {
		n := 1
		if !b.bytes && word[i] >= utf8.RuneSelf {
			_, n = utf8.DecodeRuneInString(word[i:])
		}
		id, ok := b.starts[word[i]], true
		c := word[i : i+n]
		if id < 0 {
			c = b.character(c)
			id, ok = b.vocab[c]
		}
		i += n
		switch {
		case ok:
			if waits {
				j.add(unknown)
				waits = false
			}
			j.add(id)
		case b.byteFallback && b.hasBytes(c):
			for k := range len(c) {
				j.add(b.vocab[byteName(c[k])])
			}
		case b.unknown != nil:
			if unknown, ok = b.vocab[*b.unknown]; !ok {
				return fmt.Errorf("the vocabulary lacks %q, and the unk_token %.40q that stands for such", c, *b.unknown)
			}
			if waits && !b.fuse {
				j.add(unknown)
			}
			waits = true
		}
	}
	if waits {
		j.add(unknown)
	}
	return nil
}

// byteName returns the token of a byte that is no part of another.
func byteName(b byte) string { return fmt.Sprintf("<0x%02X>", b) }

func (b *bpe) hasBytes(c string) bool {
	for i := range len(c) {
		if _, ok := b.vocab[byteName(c[i])]; !ok {
			return false
		}
	}
	return true
}

// longWord has so many characters that it pays to cut it.
const longWord = 32

// add adds the token of a character.
func (j *joiner) add(id int32) {
	n := int32(len(j.list))
	if n >= longWord {
		if inside := j.model.inside(); inside != nil && inside.rank(j.list[n-1].id, id) < 0 {
			j.join()
			n = 0
		}
	}
	j.list = append(j.list, symbol{id, n - 1, n + 1})
}

// join joins neighbours in the list: those of the lowest rank first, and of those the
// leftmost. It moves what they become to the tokens.
func (j *joiner) join() {
	b, n := j.model, len(j.list)
	if n == 0 {
		return
	}
	j.list[n-1].next = -1
	j.queue = j.queue[:0]
	for i := range n - 1 {
		if rank := b.merges.rank(j.list[i].id, j.list[i+1].id); rank >= 0 {
			j.queue = append(j.queue, uint64(rank)<<32|uint64(i))
		}
	}
	for i := len(j.queue)/2 - 1; i >= 0; i-- {
		j.down(i)
	}
	for len(j.queue) > 0 {
		top := j.queue[0]
		last := len(j.queue) - 1
		j.queue[0] = j.queue[last]
		j.queue = j.queue[:last]
		j.down(0)
		at, id := int32(uint32(top)), b.joined[top>>32]
		left := &j.list[at]
		if left.id < 0 || left.next < 0 {
			continue
		}
		right := &j.list[left.next]
		// The neighbours may be others by now; as in the original it counts what they become.
		if rank := b.merges.rank(left.id, right.id); rank < 0 || b.joined[rank] != id {
			continue
		}
		right.id = -1
		left.id, left.next = id, right.next
		if left.next >= 0 {
			j.list[left.next].prev = at
			j.consider(at, left.next)
		}
		if left.prev >= 0 {
			j.consider(left.prev, at)
		}
	}
	for i := range j.list {
		if id := j.list[i].id; id >= 0 {
			j.tokens = append(j.tokens, id)
		}
	}
	j.list = j.list[:0]
}

// consider queues two neighbours if they may be joined.
func (j *joiner) consider(left, right int32) {
	rank := j.model.merges.rank(j.list[left].id, j.list[right].id)
	if rank < 0 {
		return
	}
	q := append(j.queue, uint64(rank)<<32|uint64(left))
	for i := len(q) - 1; i > 0 && q[i] < q[(i-1)/2]; i = (i - 1) / 2 {
		q[i], q[(i-1)/2] = q[(i-1)/2], q[i]
	}
	j.queue = q
}

// down puts the pair at i in its place below.
func (j *joiner) down(i int) {
	for q := j.queue; ; {
		least := 2*i + 1
		if least >= len(q) {
			return
		}
		if right := least + 1; right < len(q) && q[right] < q[least] {
			least = right
		}
		if q[i] <= q[least] {
			return
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}
