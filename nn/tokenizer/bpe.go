package tokenizer

import (
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// bpe is byte pair encoding: neighbours are joined, those of the lowest rank first.
type bpe struct {
	vocab        map[string]int32
	merges       map[[2]int32]merge
	fallback     [256]int32 // tokens of bytes
	byteFallback bool
	ignoreMerges bool  // of what is a token as a whole
	unknown      int32 // for characters that are none; -1: there is none
	fuse         bool  // unknown characters that follow each other
}

// merge says what two neighbours become.
type merge struct{ rank, id int32 }

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
		vocab: m.Vocab, merges: make(map[[2]int32]merge, len(m.Merges)),
		byteFallback: m.ByteFallback, ignoreMerges: m.IgnoreMerges, unknown: -1, fuse: m.Fuse,
	}
	for i := range b.fallback {
		id, ok := m.Vocab[fmt.Sprintf("<0x%02X>", i)]
		if !ok {
			id = -1
		}
		b.fallback[i] = id
	}
	if m.Unknown != nil {
		id, ok := m.Vocab[*m.Unknown]
		if !ok {
			return nil, fmt.Errorf("model: unk_token %.40q is not in the vocabulary", *m.Unknown)
		}
		b.unknown = id
	}
	for i, pair := range m.Merges {
		left, okLeft := m.Vocab[pair[0]]
		right, okRight := m.Vocab[pair[1]]
		id, ok := m.Vocab[pair[0]+pair[1]]
		if !okLeft || !okRight || !ok {
			return nil, fmt.Errorf("model: merge %d, %.40q and %.40q, is not of tokens of the vocabulary",
				i, pair[0], pair[1])
		}
		b.merges[[2]int32{left, right}] = merge{int32(i), id}
	}
	return b, nil
}

// encode appends the tokens of a word.
func (b *bpe) encode(tokens []int32, word string) ([]int32, error) {
	if b.ignoreMerges {
		if id, ok := b.vocab[word]; ok {
			return append(tokens, id), nil
		}
	}
	symbols, err := b.characters(word)
	if err != nil {
		return nil, err
	}
	return b.join(tokens, symbols), nil
}

// characters returns the tokens of the characters of a word.
func (b *bpe) characters(word string) (symbols []int32, err error) {
	unknowns := 0 // characters that wait
	flush := func() {
		if unknowns > 0 {
			symbols = append(symbols, b.unknown)
		}
		unknowns = 0
	}
	for i, r := range word {
		c := string(r)
		if id, ok := b.vocab[c]; ok {
			flush()
			symbols = append(symbols, id)
			continue
		}
		if b.byteFallback && b.hasBytes(c) {
			for j := range len(c) {
				symbols = append(symbols, b.fallback[c[j]])
			}
			continue
		}
		if b.unknown < 0 {
			return nil, fmt.Errorf("byte %d of %.40q begins a character that the vocabulary lacks, "+
				"and there is no unk_token", i, word)
		}
		if !b.fuse {
			flush()
		}
		unknowns++
	}
	flush()
	return symbols, nil
}

func (b *bpe) hasBytes(c string) bool {
	for i := range len(c) {
		if b.fallback[c[i]] < 0 {
			return false
		}
	}
	return true
}

// symbol is a token in a list of neighbours.
type symbol struct {
	id         int32
	prev, next int32 // -1: none
	gone       bool  // joined to the one before
}

// candidate is a pair of neighbours that may be joined.
type candidate struct {
	rank, at, id int32
}

// queue has the candidate of the lowest rank first, and of those the leftmost.
type queue []candidate

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].rank < q[j].rank || q[i].rank == q[j].rank && q[i].at < q[j].at
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(candidate)) }
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

// join appends what remains of symbols when neighbours are joined.
func (b *bpe) join(tokens, ids []int32) []int32 {
	list := make([]symbol, len(ids))
	var q queue
	consider := func(left, right int32) {
		if left < 0 || right < 0 {
			return
		}
		if m, ok := b.merges[[2]int32{list[left].id, list[right].id}]; ok {
			heap.Push(&q, candidate{m.rank, left, m.id})
		}
	}
	for i, id := range ids {
		list[i] = symbol{id: id, prev: int32(i) - 1, next: int32(i) + 1}
	}
	if len(list) > 0 {
		list[len(list)-1].next = -1
	}
	for i := range list {
		consider(int32(i), list[i].next)
	}
	for q.Len() > 0 {
		c := heap.Pop(&q).(candidate)
		left := &list[c.at]
		if left.gone || left.next < 0 {
			continue
		}
		right := &list[left.next]
		// The neighbours may be others by now; as in the original it counts what they become.
		if m, ok := b.merges[[2]int32{left.id, right.id}]; !ok || m.id != c.id {
			continue
		}
		right.gone = true
		left.id, left.next = c.id, right.next
		if left.next >= 0 {
			list[left.next].prev = c.at
		}
		consider(left.prev, c.at)
		consider(c.at, left.next)
	}
	for _, s := range list {
		if !s.gone {
			tokens = append(tokens, s.id)
		}
	}
	return tokens
}
