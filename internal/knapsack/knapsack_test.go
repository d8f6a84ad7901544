package knapsack

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSearch compares with all combinations of choices, of small random problems.
func TestSearch(t *testing.T) {
	const classes = 3
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		var groups []Group
		for range 1 + r.IntN(2) {
			k := Group{Items: 1 + r.IntN(2)}
			for range 1 + r.IntN(4) {
				c := Choice{Shared: uint16(r.IntN(1 << classes)), Bytes: r.Int64N(9), Cost: r.Int64N(9)}
				k.Choices = append(k.Choices, c)
			}
			for range classes {
				k.Shared = append(k.Shared, r.Int64N(5))
			}
			groups = append(groups, k)
		}
		const fixed = 7
		best := map[int64]int64{} // the least cost of so many bytes
		least := int64(math.MaxInt64)
		eachResult(groups, func(result Result) {
			bytes, cost := sum(groups, fixed, result)
			least = min(least, bytes)
			if before, ok := best[bytes]; !ok || cost < before {
				best[bytes] = cost
			}
		})
		for budget := least - 1; budget < least+12; budget++ {
			result, got, err := Search(t.Context(), groups, fixed, budget)
			require.NoError(t, err)
			require.Equal(t, least, got)
			if budget < least {
				require.Nil(t, result)
				continue
			}
			want := int64(math.MaxInt64)
			for bytes, cost := range best {
				if bytes <= budget {
					want = min(want, cost)
				}
			}
			bytes, cost := sum(groups, fixed, result)
			require.Equal(t, want, cost, "%+v, budget %d", groups, budget)
			require.LessOrEqual(t, bytes, budget)
		}
	}
}

func TestSearchStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	groups := []Group{{Items: 3, Choices: []Choice{{Bytes: 2}, {Cost: 3}}}}
	_, _, err := Search(ctx, groups, 0, 4)
	require.ErrorIs(t, err, context.Canceled)
}

// sum returns the bytes and the cost of choices, by their definition.
func sum(groups []Group, fixed int64, result Result) (bytes, cost int64) {
	var shared [16]int64
	bytes = fixed
	for i, items := range result {
		for _, index := range items {
			c := groups[i].Choices[index]
			bytes, cost = bytes+c.Bytes, cost+c.Cost
			for class, n := range groups[i].Shared {
				if c.Shared>>class&1 == 1 {
					shared[class] = max(shared[class], n)
				}
			}
		}
	}
	for _, n := range shared {
		bytes += n
	}
	return bytes, cost
}

// eachResult calls do with all combinations of choices.
func eachResult(groups []Group, do func(Result)) {
	result := make(Result, len(groups))
	var choose func(group int)
	choose = func(group int) {
		switch {
		case group == len(groups):
			do(result)
		case len(result[group]) == groups[group].Items:
			choose(group + 1)
		default:
			for i := range groups[group].Choices {
				result[group] = append(result[group], i)
				choose(group)
				result[group] = result[group][:len(result[group])-1]
			}
		}
	}
	choose(0)
}
