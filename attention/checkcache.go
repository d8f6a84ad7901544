package attention

import (
	"errors"
	"fmt"

	"github.com/octavo-fp8/octavo/internal/microkernel"
)

// ErrValue: a value in a cache is not finite.
var ErrValue = errors.New("attention: a value is not finite")

// Check returns an error, [ErrValue], that names the first token and head whose keys or
// values are not finite; of records, a scale makes them so, too. What was evicted is not
// looked at.
func (s *Sequence) Check() error {
	c := &s.cache.config
	check := s.checkToken
	switch {
	case c.Record != nil:
		check = s.checkRecord
	case c.wide():
		check = s.checkWide
	}
	for i := range s.n {
		if page := s.pages[i/c.PageTokens]; page != evicted {
			if err := check(page, i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Sequence) checkRecord(page int32, i int) error {
	r := s.cache.records(page)
	if d, x := r.firstSpecial(i % s.cache.config.PageTokens); d >= 0 {
		return fmt.Errorf("%w: %stoken %d, element %d of its record is %v",
			ErrValue, s.prefix(), i, d, x)
	}
	return nil
}

func (s *Sequence) checkWide(page int32, i int) error {
	c := s.cache
	slot := i % c.config.PageTokens
	for h := range s.heads() {
		for j := range c.config.Dim + c.config.ValueDim {
			name, first, dim, d := "K", 0, c.config.Dim, j
			if j >= dim {
				name, first, dim, d = "V", c.kSize, c.config.ValueDim, j-dim
			}
			if x := c.element(page, h, first+slot*dim+d); x-x != 0 {
				return s.notFinite(name, i, h, d, x)
			}
		}
	}
	return nil
}

func (s *Sequence) notFinite(name string, token, head, d int, x float32) error {
	return fmt.Errorf("%w: %s%s of token %d, head %d, element %d is %v",
		ErrValue, s.prefix(), name, token, head, d, x)
}

func (s *Sequence) checkToken(page int32, i int) error {
	if !s.cache.special[page] {
		return nil
	}
	const width = microkernel.PanelWidth
	c, size := &s.cache.config, s.cache.config.PageTokens
	slot := i % size
	for h := range c.KVHeads {
		keys := s.cache.keys(page, h)[slot/width*width*(c.Dim+c.Dim%2)+slot%width:]
		for d := range c.Dim {
			if err := s.checkCode("K", i, h, d, keys[d*width]); err != nil {
				return err
			}
		}
		values := s.cache.values(page, h)
		for d := range c.ValueDim {
			code := values[d/width*width*size+slot*width+d%width]
			if err := s.checkCode("V", i, h, d, code); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *Sequence) checkCode(name string, token, head, d int, code byte) error {
	if f := s.cache.config.Format; code&0x7F >= leastSpecial(f) {
		return s.notFinite(name, token, head, d, f.Float32(code))
	}
	return nil
}
