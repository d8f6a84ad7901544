package cache

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/textout"
	"github.com/octavo-fp8/octavo/oracle/explain"
)

// isMoved reports whether a row is known to hold what is not its own.
func (j *judged) isMoved(t, h int) bool { return j.moved[[2]int{t, h}] }

// relation is a way in which places may have what belongs to others: places of a group have all
// the same key.
type relation struct {
	kind  Kind
	group func(u coord) int
	key   func(u, s coord) (int, bool)
	say   func(what string, keys map[int]int) string
}

// relations are those of a side's rows, or scales: what are "rows" or "scales".
func relations(n coord, page int) (all []relation) {
	zero := func(coord) int { return 0 }
	all = []relation{
		{"other-bytes", zero, func(u, s coord) (int, bool) { u.side = s.side; return 0, u == s && s.side == 1 },
			func(what string, _ map[int]int) string { return what + " of the same place" }},
		{"heads-exchanged", func(u coord) int { return u.head }, func(u, s coord) (int, bool) {
			return s.head, u.token == s.token && u.tile == s.tile
		}, func(what string, keys map[int]int) string { return exchanged("head", what, keys) }},
		{"tokens-moved", zero, func(u, s coord) (int, bool) { return s.token - u.token, u.head == s.head && u.tile == s.tile },
			func(what string, keys map[int]int) string {
				if d := keys[0]; d < 0 {
					return fmt.Sprintf("%s of the token %d before: shifted", what, -d)
				}
				return fmt.Sprintf("%s of the token %d after: shifted", what, keys[0])
			}},
		{"tokens-moved", zero, func(u, s coord) (int, bool) { return s.token, u.head == s.head && u.tile == s.tile },
			func(what string, keys map[int]int) string { return fmt.Sprintf("%s of token %d", what, keys[0]) }},
	}
	for _, p := range []int{page, 256, 128, 64, 32, 16, 8} {
		if p > 1 && p < n.token {
			all = append(all, relation{"tokens-moved", func(u coord) int { return u.token / p }, func(u, s coord) (int, bool) {
				return s.token / p, u.token%p == s.token%p && u.head == s.head && u.tile == s.tile
			}, func(what string, keys map[int]int) string {
				return exchanged("page", what, keys) + fmt.Sprintf(" (of %d tokens)", p)
			}})
		}
	}
	return append(all,
		relation{"tokens-moved", func(u coord) int { return u.token }, func(u, s coord) (int, bool) { return s.token, u.head == s.head && u.tile == s.tile },
			func(what string, keys map[int]int) string { return exchanged("token", what, keys) }},
		relation{"scale-elsewhere", func(u coord) int { return u.tile }, func(u, s coord) (int, bool) { return s.tile, u.head == s.head && u.token == s.token },
			func(what string, keys map[int]int) string { return exchanged("block", what, keys) }},
		relation{"scale-elsewhere", zero, func(u, s coord) (int, bool) {
			at := func(c coord) int { return (c.token*n.head+c.head)*n.tile + c.tile }
			return 0, at(u) == (s.tile*n.head+s.head)*n.token+s.token || at(u) == (s.head*n.token+s.token)*n.tile+s.tile
		}, func(what string, _ map[int]int) string {
			return what + " of the place with its number in the transposed order"
		}},
		relation{"scale-elsewhere", func(u coord) int { return u.token%4*n.tile + u.tile }, func(u, s coord) (int, bool) {
			return (s.token-u.token+4)*n.tile + s.tile, u.head == s.head && u.token/4 == s.token/4
		}, func(what string, _ map[int]int) string {
			return what + " of another of four tokens and blocks, always in the same way: they are swizzled, or read as if they were"
		}},
	)
}

// exchanged says which of something have what of which.
func exchanged(one, what string, keys map[int]int) string {
	var parts []string
	for _, at := range slices.Sorted(maps.Keys(keys)) {
		from := keys[at]
		back, both := keys[from]
		switch {
		case at == from:
		case both && back == at && at < from:
			parts = append(parts, fmt.Sprintf("%ss %d and %d are exchanged", one, at, from))
		case both && back == at:
		default:
			parts = append(parts, fmt.Sprintf("%s %d has %s of %s %d", one, at, what, one, from))
		}
		if len(parts) == 5 {
			parts[4] = "and so on"
			break
		}
	}
	return strings.Join(parts, ", ")
}

// relate finds the first relation that all units have with their sources. Evidence is what the
// relation leaves to say of each unit, of which bits are known.
func relate(n coord, page int, units []coord, sources [][]coord, bits float64) (*relation, map[int]int, float64) {
	places := math.Log2(float64(n.token * n.head * n.tile))
	for _, r := range relations(n, page) {
		all := map[int]map[int]bool{}
		ok := true
		for i := 0; ok && i < len(units); i++ {
			keys := map[int]bool{}
			for _, s := range sources[i] {
				if k, is := r.key(units[i], s); is {
					keys[k] = true
				}
			}
			g := r.group(units[i])
			if known, again := all[g]; again {
				for k := range known {
					if !keys[k] {
						delete(known, k)
					}
				}
				keys = known
			}
			all[g] = keys
			ok = len(keys) > 0
		}
		if !ok || len(units) == 0 {
			continue
		}
		keys := map[int]int{}
		for g, set := range all {
			keys[g] = slices.MinFunc(slices.Collect(maps.Keys(set)), func(a, b int) int {
				return cmp.Or(cmp.Compare(max(a-g, g-a), max(b-g, g-b)), cmp.Compare(a, b))
			})
		}
		return &r, keys, bits*float64(len(units)) - places*float64(len(all))
	}
	return nil, nil, 0
}

// key is the bytes of a row's codes and, if each row has its own, of its scales.
func (s *Side) key(t, h int, scales []float32, codes []byte) string {
	b := slices.Clone(codes)
	for c := range s.grid().tile {
		if s.perRow() {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(scales[s.group(t, h, c)]))
		}
	}
	return string(b)
}

// encode writes the codes of the values of a row under the scales of row u, in pieces while on, which may be nil, says so.
func (j *judged) encode(dst []byte, u coord, values, scales []float32, on func(from, to int) bool) bool {
	s := j.s
	for c := range s.grid().tile {
		lo, hi := s.tile(c)
		for g := s.group(u.token, u.head, c); lo < hi; {
			to := hi
			if on != nil {
				to = min(lo+16, hi)
			}
			if j.p.Encode(dst[lo:to], values[lo:to], g, scales[g], s.outerOf()); on != nil && !on(lo, to) {
				return false
			}
			lo = to
		}
	}
	return true
}

// telling reports whether a row's codes are such that another would hardly have them by chance.
func telling(codes []byte) bool {
	kinds := map[byte]bool{}
	for _, c := range codes {
		kinds[c] = true
	}
	return len(kinds) >= 4 && len(codes) >= 8
}

// page is how many tokens share scales, or 0.
func (s *Side) page() int {
	if s.Grid.Tokens >= s.Tokens {
		return 0
	}
	return s.Grid.Tokens
}

// places are those of all rows.
func (s *Side) places() (all []coord) {
	for row := range s.Tokens * s.Heads {
		all = append(all, coord{row / s.Heads, row % s.Heads, 0, 0})
	}
	return all
}

// wrongRows are rows with a wrong code or, where each has its own, a wrong scale.
func (j *judged) wrongRows() (all []coord) {
	s := j.s
	for row, u := range s.places()[:s.written()*s.Heads] {
		wrong := count(j.codes[row*s.Cols:][:s.Cols]) > 0
		for c := range s.grid().tile {
			wrong = wrong || s.perRow() && j.scales[s.group(u.token, u.head, c)]
		}
		if wrong {
			all = append(all, u)
		}
	}
	return all
}

// findMoved finds the rows that hold what belongs to others, or nothing.
func (j *judged) findMoved() (found []Finding) {
	wrong := j.wrongRows()
	if len(wrong) == 0 {
		return nil
	}
	s, o := j.s, j.other
	index := map[string][]coord{}
	put := func(from *judged, side int) {
		dst := make([]byte, s.Cols)
		for _, u := range s.places() {
			from.encode(dst, u, from.s.row(u.token, u.head), from.p.Scales, nil)
			key := from.s.key(u.token, u.head, from.p.Scales, dst)
			index[key] = append(index[key], coord{u.token, u.head, 0, side})
		}
	}
	put(j, 0)
	if o != nil && o.p != nil && o.s.Tokens == s.Tokens && o.s.Heads == s.Heads && o.s.Cols == s.Cols && o.s.grid() == s.grid() {
		put(o, 1)
		mixed := *j // K's values under the scales of V
		side := *s
		side.Input, mixed.s = o.s.Input, &side
		if side.Dim == o.s.Dim && !s.perRow() {
			put(&mixed, 1)
		}
	}
	var units, empty []coord
	var sources [][]coord
	for _, u := range wrong {
		got := s.codes(u.token, u.head)
		from := index[s.key(u.token, u.head, s.Scales, got)]
		if len(from) == 0 && !s.perRow() {
			from = j.underOwn(u, len(wrong))
		}
		switch {
		case slices.Contains(from, u): // its scales alone are wrong
		case !bytes.ContainsFunc(got, func(r rune) bool { return r != 0 }):
			empty = append(empty, u)
		case len(from) > 0 && telling(got):
			units, sources = append(units, u), append(sources, from)
		}
	}
	if len(empty) > 0 {
		found = append(found, j.rowsFinding("not-written", "hold zeros: not written", empty))
	}
	if len(units) > 0 {
		kind, text, units := j.whose("the bytes of %s", units, sources)
		found = append(found, j.rowsFinding(kind, "hold "+text, units))
	}
	return found
}

// whose says of rows whose they are, and of which: of the other side where one is not of this.
func (j *judged) whose(others string, units []coord, sources [][]coord) (kind Kind, text string, of []coord) {
	own := true
	for _, from := range sources {
		own = own && slices.ContainsFunc(from, func(c coord) bool { return c.side == 0 })
	}
	what := "the rows"
	kind, text = "tokens-moved", "the rows of other tokens, in no order that is known"
	if !own {
		what = fmt.Sprintf(others, j.other.name)
		kind, text = "other-bytes", what+", of other tokens"
	}
	var from [][]coord
	for i, u := range units {
		if f := slices.DeleteFunc(slices.Clone(sources[i]), func(c coord) bool { return own != (c.side == 0) }); len(f) > 0 {
			of, from = append(of, u), append(from, f)
		}
	}
	if r, keys, _ := relate(coord{j.s.Tokens, j.s.Heads, 1, 0}, j.s.page(), of, from, 64); r != nil {
		if text = r.say(what, keys); own {
			kind = r.kind
		}
	}
	return kind, text, of
}

// mostSought is how many rows are compared with all others one by one.
const mostSought = 256

// underOwn finds the rows whose values under the scales of row u are its codes.
func (j *judged) underOwn(u coord, wrong int) (all []coord) {
	s := j.s
	if s.grid().token*s.grid().head < 2 || wrong > mostSought && (u.token*s.Heads+u.head)%(wrong/mostSought+1) != 0 {
		return nil
	}
	got, dst := s.codes(u.token, u.head), make([]byte, s.Cols)
	for row := range s.Tokens * s.Heads {
		v := coord{row / s.Heads, row % s.Heads, 0, 0}
		if v != u && j.encode(dst, u, s.row(v.token, v.head), s.Scales, func(from, to int) bool { return bytes.Equal(dst[from:to], got[from:to]) }) {
			all = append(all, v)
		}
	}
	return all
}

// rowsFinding says that rows hold something, and takes them from what else is explained.
func (j *judged) rowsFinding(kind Kind, text string, units []coord) Finding {
	j.rowKinds[kind] = true
	for _, u := range units {
		j.moved[[2]int{u.token, u.head}] = true
	}
	return Finding{Side: j.name, Stage: "places", Kind: kind, Text: fmt.Sprintf("%s of %s %s", rowsOf(j.s, units), j.name, text), Seen: kind.Seen(), Sure: true}
}

// rowsOf names the tokens and heads of rows.
func rowsOf(s *Side, units []coord) string {
	var t, h []int
	for _, u := range units {
		t, h = append(t, u.token), append(h, u.head)
	}
	text := "tokens " + rangesOf(t)
	if s.Heads > 1 {
		text += ", heads " + rangesOf(h)
	}
	return text
}

func rangesOf(all []int) string {
	all = slices.Clone(all)
	slices.Sort(all)
	return textout.Ranges(slices.Compact(all))
}

// findStale finds rows whose codes have nothing to do with the input, neither under the
// scales that are stored nor under those that the input asks for.
func (j *judged) findStale(unexplained bool) (found []Finding) {
	s := j.s
	var units []coord
	for _, u := range j.wrongRows() {
		if !unexplained || s.Cols < 16 || j.isMoved(u.token, u.head) {
			continue
		}
		if j.unlike(u, func(g int) float32 { return s.Scales[g] }) && j.unlike(u, func(g int) float32 { return j.p.Scales[g] }) {
			units = append(units, u)
		}
	}
	if len(units) == 0 {
		return nil
	}
	return []Finding{j.rowsFinding("stale-rows", "hold bytes that are of no token of the input: not written, of an earlier one (stale), or of another sequence", units)}
}

// unlike reports whether a row of codes under scales is hardly correlated with the input.
func (j *judged) unlike(u coord, scale func(g int) float32) bool {
	s := j.s
	var xx, yy, xy float64
	for i, code := range s.codes(u.token, u.head) {
		x := float64(s.row(u.token, u.head)[i])
		y := float64(s.Format.Float32(code)) * float64(scale(s.group(u.token, u.head, i/s.Grid.Cols)))
		if d := x - x + y - y; d == 0 {
			xx, yy, xy = xx+float64(x*x), yy+float64(y*y), xy+float64(x*y)
		}
	}
	return xy < 0.6*math.Sqrt(xx*yy) || yy == 0 && xx > 0
}

// readFrom finds the rows that are read in place of others.
func (j *judged) readFrom(at stage) *Finding {
	s, o := j.s, j.other
	if at != reads {
		return nil
	}
	rows := min(s.read(), s.written()) * s.Heads
	index := map[string][]coord{}
	key := func(values []float32) string {
		b := make([]byte, 0, 4*len(values))
		for _, v := range values {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
		}
		return string(b)
	}
	put := func(o *judged, side int) {
		values := make([]float32, s.Cols)
		for row := range min(rows, o.s.written()*o.s.Heads) {
			t, h := row/s.Heads, row%s.Heads
			for i, code := range o.s.codes(t, h) {
				values[i] = o.s.value(o.s.Format.Float32(code), o.s.Scales[o.s.group(t, h, i/o.s.Grid.Cols)], o.s.outerOf(), o.factorFirst)
			}
			k := key(values)
			index[k] = append(index[k], coord{t, h, 0, side})
		}
	}
	put(j, 0)
	if o != nil && o.p != nil && o.s.Heads == s.Heads && o.s.Cols == s.Cols {
		put(o, 1)
	}
	var units []coord
	var sources [][]coord
	for row := range rows {
		if at := row * s.Dim; count(j.reads[at:at+s.Cols]) > 0 {
			from := index[key(s.Read[at:at+s.Cols])]
			if len(from) == 0 {
				return nil
			}
			units, sources = append(units, coord{row / s.Heads, row % s.Heads, 0, 0}), append(sources, from)
		}
	}
	kind, text, units := j.whose("what %s holds", units, sources)
	return &Finding{Side: j.name, Stage: "read", Kind: kind, Text: fmt.Sprintf("%s of %s are read as %s", rowsOf(s, units), j.name, text), Seen: kind.Seen(), Sure: true}
}

// elsewhere finds whose scales those that are wrong are.
func (x *explainer) elsewhere() *Finding {
	s := x.j.s
	n := s.grid()
	if n.token*n.head*n.tile < 2 || x.at == outers {
		return nil
	}
	by := map[float32][]coord{}
	for g := range min(len(s.Scales), n.token*n.head*n.tile) {
		scale, _ := x.j.right(x.at, g)
		by[scale] = append(by[scale], s.coordOf(g))
	}
	all := slices.Sorted(maps.Keys(by))
	var units []coord
	var sources [][]coord
	most := 64
	if x.at == scales {
		most = len(x.wrong)
	}
	for _, i := range explain.Spread(len(x.wrong), most) {
		u := x.wrong[i]
		var from []coord
		if x.at == scales {
			from = by[s.Scales[x.number(u)]]
		} else {
			lo, hi := x.interval(u)
			for _, scale := range all {
				if float64(scale) >= lo*(1-1e-5) && float64(scale) <= hi*(1+1e-5) && x.fits(u, scale, s.outerOf()) {
					from = append(from, by[scale]...)
				}
			}
		}
		if len(from) == 0 {
			return nil
		}
		units, sources = append(units, s.coordOf(x.number(u))), append(sources, from)
	}
	bits := 0.0
	for _, u := range x.wrong[:1] {
		bits = x.evidence(u)
	}
	r, keys, evidence := relate(n, s.page()/s.Grid.Tokens, units, sources, bits)
	if r == nil || evidence < 20 && !x.j.rowKinds[r.kind] {
		return nil
	}
	verb := map[stage]string{scales: "the scales of %s are wrong", codes: "codes of %s are made with scales of other places", reads: "%s is read with scales of other places"}[x.at]
	f := &Finding{Side: x.j.name, Stage: x.at.String(), Kind: "scale-elsewhere", Sure: true,
		Text: fmt.Sprintf(verb+": %s", x.j.name, r.say("the scale", keys))}
	if r.kind == "scale-elsewhere" {
		f.Seen = []string{"vllm-project/vllm#49011", "vllm-project/vllm#50336"}
	}
	return f
}
