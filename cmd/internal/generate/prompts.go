package generate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/octavo-fp8/octavo/cmd/internal/tokens"
	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/nn/generate"
)

// Prompt is what is continued, and how.
type Prompt struct {
	From string // for people
	Text string
	IDs  []int32 // tokens in place of a text, unless nil

	Tokens   int // at most so many follow; 0: until the context is full
	Sampling generate.Sampling
}

// Excerpt returns the beginning of the prompt, in a line.
func (p *Prompt) Excerpt() string {
	if p.IDs != nil {
		return fmt.Sprintf("%.40s", fmt.Sprint(p.IDs))
	}
	return fmt.Sprintf("%.40q", p.Text)
}

// ReadPrompts reads a file of prompts, one a line; lines of nothing but space are none. In a
// file whose name ends in .jsonl a line is a JSON string, a list of tokens, or an object that
// says under "prompt" which, and may have what of the usual ones it does not share: "tokens",
// "temperature", "topK", "topP" and "seed".
func ReadPrompts(path string, usual Prompt) (prompts []Prompt, err error) {
	data, err := tokens.ReadFile(path, "a file of prompts")
	if err != nil {
		return nil, err
	}
	number := 0
	for line := range strings.Lines(string(data)) {
		if number++; strings.TrimSpace(line) == "" {
			continue
		}
		p := usual
		p.From = fmt.Sprintf("%s: line %d", textout.Name(path), number)
		if p.Text = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r"); isJSON(path) {
			if err := p.parse(p.Text); err != nil {
				return nil, fmt.Errorf("%s: %w", p.From, err)
			}
		}
		prompts = append(prompts, p)
	}
	if len(prompts) == 0 {
		return nil, fmt.Errorf("%s: it has no prompt: want one on each line", textout.Name(path))
	}
	return prompts, nil
}

func isJSON(path string) bool { return strings.HasSuffix(path, ".jsonl") }

// parse reads a line of JSON.
func (p *Prompt) parse(line string) error {
	if !utf8.ValidString(line) {
		return errors.New("it is not UTF-8, as JSON must be: give tokens in place of the text")
	}
	prompt := json.RawMessage(line)
	if strings.HasPrefix(strings.TrimSpace(line), "{") {
		s := &p.Sampling
		with := struct {
			Prompt      json.RawMessage
			Tokens      *int
			Temperature *float64
			TopK        *int
			TopP        *float64
			Seed        *uint64
		}{nil, &p.Tokens, &s.Temperature, &s.TopK, &s.TopP, &s.Seed}
		if err := decode([]byte(line), &with); err != nil {
			return err
		}
		if prompt = with.Prompt; prompt == nil {
			return errors.New(`it has no "prompt"`)
		}
	}
	var text *string
	var list []*int32 // nil for null
	switch {
	case json.Unmarshal(prompt, &text) == nil && text != nil:
		p.Text = *text
	case json.Unmarshal(prompt, &list) == nil && list != nil && !slices.Contains(list, nil):
		p.Text, p.IDs = "", []int32{}
		for _, id := range list {
			p.IDs = append(p.IDs, *id)
		}
	default:
		return fmt.Errorf("the prompt is %.40s: want a JSON string or a list of tokens", prompt)
	}
	return nil
}

// decode reads an object, and refuses members that it should not have.
func decode(line []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return fmt.Errorf("%w: want an object with a prompt, and nothing but prompt, tokens, "+
			"temperature, topK, topP and seed", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the object: want one on each line")
	}
	return nil
}
