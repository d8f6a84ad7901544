package planning

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/plan"
)

// Way is a change of flags with which a card holds what it does not hold without.
type Way struct {
	Flags    string `json:"flags"`
	Ranks    int    `json:"ranks"`
	Reserved int64  `json:"reserved"` // bytes on a rank of the stage that needs most
}

func (w Way) String() string {
	return fmt.Sprintf("%s (%s, %.2f GiB)", w.Flags, count(w.Ranks, "rank"), gibUp(w.Reserved))
}

// turn is another value of a knob. Far is how many times as large or as small, in doublings.
type turn struct {
	knob, value int
	far         float64
}

// Nearest returns what the card holds: for each knob that suffices alone the value that is nearest to the
// one that was asked for; where none does, the nearest change of two, if any suffices. The error is that of
// ctx.
func (a Ask) Nearest(ctx context.Context) (ways []Way, err error) {
	a.Tokens, a.MFU, a.Days = 0, 0, 0
	var all [][]turn
	for k := range knobs {
		all = append(all, a.turns(k))
	}
	for _, turns := range all {
		way, err := a.first(ctx, singly(turns))
		if err != nil {
			return nil, err
		}
		ways = append(ways, way...)
	}
	if len(ways) > 0 {
		return ways, nil
	}
	var pairs [][]turn
	for k, turns := range all {
		for _, t := range turns {
			for _, u := range slices.Concat(all[k+1:]...) {
				pairs = append(pairs, []turn{t, u})
			}
		}
	}
	slices.SortStableFunc(pairs, func(x, y []turn) int { return cmp.Compare(x[0].far+x[1].far, y[0].far+y[1].far) })
	return a.first(ctx, pairs)
}

func singly(turns []turn) (changes [][]turn) {
	for _, t := range turns {
		changes = append(changes, []turn{t})
	}
	return changes
}

// turns are the values of a knob that a search tries, the nearest first.
func (a Ask) turns(k int) (all []turn) {
	asked, values := max(*knobs[k].of(&a), 1), []int(nil)
	switch knobs[k].flag {
	case "ranks":
		asked = a.ranks()
		for n := 2 * asked; n <= mostRanks && a.Serve == nil; n *= 2 { // which share out nothing that is served
			values = append(values, n)
		}
	case "batch":
		for n := asked / 2; n > 0; n /= 2 {
			values = append(values, n)
		}
	default: // those that the model can be divided by
		for n := 1; n <= mostParts; n++ {
			if b := a.with(turn{knob: k, value: n}, turn{knob: 0}); n != asked && b.ranks() > 0 {
				values = append(values, n)
			}
		}
	}
	for _, n := range values {
		all = append(all, turn{k, n, math.Abs(math.Log2(float64(n) / float64(asked)))})
	}
	slices.SortStableFunc(all, func(x, y turn) int { return cmp.Compare(x.far, y.far) })
	return all
}

// Limits of a search.
const (
	mostRanks = 1 << 16
	mostParts = 128
)

// with returns a with other values of knobs.
func (a Ask) with(turns ...turn) Ask {
	if a.Serve != nil {
		serve := *a.Serve
		a.Serve = &serve
	}
	for _, t := range turns {
		*knobs[t.knob].of(&a) = t.value
	}
	return a
}

// ranks are those of the layout, 0 if there is none such.
func (a Ask) ranks() int {
	if a.Serve != nil {
		j, err := a.Serve.Complete()
		if err != nil {
			return 0
		}
		return j.Layout.Ranks
	}
	j, err := a.Train.Complete()
	if err != nil {
		return 0
	}
	return j.Layout.Ranks
}

// first returns the first of some changes with which the card holds all stages.
func (a Ask) first(ctx context.Context, changes [][]turn) ([]Way, error) {
	for _, turns := range changes {
		b := a.with(turns...)
		r, err := answer(ctx, b)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(err, plan.ErrJob) || err == nil && len(r.TooLarge) > 0:
			continue
		case err != nil:
			return nil, err
		}
		var flags []string
		for _, t := range turns {
			flags = append(flags, fmt.Sprintf("--%s %d", knobs[t.knob].flag, t.value))
		}
		return []Way{{strings.Join(flags, " "), r.Layout.Ranks, r.Stages[r.Highest].Reserved(a.Headroom)}}, nil
	}
	return nil, nil
}

// NearestText says what [Ask.Nearest] found, in a part of a sentence.
func NearestText(ways []Way) string {
	if len(ways) == 0 {
		return "nothing that fits was found with other values of one or two of --ranks, --tp, --pp and --batch"
	}
	var list []string
	for _, w := range ways {
		list = append(list, w.String())
	}
	return "nearest that fits: " + strings.Join(list, ", ")
}
