package checkpoint

import (
	"context"

	"github.com/octavo-fp8/octavo/internal/sentinel"
)

// proved is what a certificate says of a conversion that loses nothing.
const proved = "every weight was read back from the files and compared with the source: " +
	"all values are the same"

// prove compares all weights that were written with those of the source. It is an error if a
// value differs.
func (c *converting) prove(ctx context.Context) error {
	made, err := Open(c.dir)
	if err != nil {
		return err
	}
	defer made.Close()
	written := map[string]bool{}
	for _, s := range c.p.Shards {
		for _, t := range s.Targets {
			if t.Weight != nil {
				written[t.Weight.Name] = true
			}
		}
	}
	chosen := func(weight string) bool { return written[weight] }
	all, err := Diff(ctx, c.p.source, made, chosen, c.o)
	if err != nil {
		return err
	}
	for _, d := range all {
		if d.Same == Incomparable || d.Differ > 0 {
			return sentinel.Errorf(ErrLayout,
				"tensor %q: it is not that of the source when it is read back from %s: %d values differ%s",
				d.Name, c.dir, d.Differ, d.Why)
		}
	}
	return nil
}
