package attention

import "fmt"

// Mask says which keys a query sees. The zero Mask is all of them.
//
// Masks are aligned to the lower right: of m queries and n keys, query i stands at key
// i+n-m, so that the last query sees the last key. A query that stands before the first
// key may see none: then its output is 0 and its log-sum-exp -Inf.
type Mask struct {
	Causal bool    // no keys after the one where the query stands
	Window *Window // none where nil
}

// Window limits how far from where a query stands the keys are that it sees. A negative
// number is no limit.
type Window struct {
	Left  int `json:"left"`  // keys before
	Right int `json:"right"` // keys after
}

// Range returns the keys [lo, hi) of n that query i of m sees; lo is hi where it sees
// none.
func (k Mask) Range(i, m, n int) (lo, hi int) {
	at := i + n - m
	lo, hi = 0, n
	if k.Causal {
		hi = min(hi, at+1)
	}
	if w := k.Window; w != nil {
		if w.Left >= 0 && w.Left < at {
			lo = at - w.Left
		}
		if w.Right >= 0 && w.Right < n-1-at {
			hi = min(hi, at+w.Right+1)
		}
	}
	hi = max(hi, 0)
	return min(lo, hi), hi
}

func (k Mask) String() string {
	text := "all keys"
	if k.Causal {
		text = "causal"
	}
	if k.Window != nil {
		text += fmt.Sprintf(", window %d left %d right", k.Window.Left, k.Window.Right)
	}
	return text
}
