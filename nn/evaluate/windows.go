package evaluate

import "github.com/octavo-fp8/octavo/nn"

// window is a sequence of the text.
type window struct {
	at      int     // the place of its first token in the text
	tokens  []int32 // with the prefix
	targets []int32 // those that follow; nn.IgnoreIndex for what does not count
	count   int     // of targets that count
}

// place returns the place in the text of the target of a row.
func (w window) place(row, prefix int) int { return w.at + row - prefix + 1 }

// cut cuts a text into windows of at most length tokens, each stride after the one before,
// with a prefix before each.
func cut(text []int32, length, stride int, prefix []int32) (all []window) {
	counted := 0 // tokens that have been targets, or cannot be
	if len(prefix) == 0 {
		counted = 1
	}
	for at := 0; counted < len(text); at += stride {
		end := min(at+length, len(text)-1) // the last token is a target alone
		w := window{at: at, tokens: append(append([]int32(nil), prefix...), text[at:end]...)}
		for row := range w.tokens {
			target, place := nn.IgnoreIndex, w.place(row, len(prefix))
			if place >= counted && place >= at {
				target = text[place]
				w.count++
			}
			w.targets = append(w.targets, target)
		}
		counted = end + 1
		all = append(all, w)
	}
	return all
}
