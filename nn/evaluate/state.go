package evaluate

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"reflect"
	"slices"
	"time"

	"github.com/octavo-fp8/octavo/internal/atomicfile"
	"github.com/octavo-fp8/octavo/internal/checksum"
	"github.com/octavo-fp8/octavo/internal/inputfile"
	"github.com/octavo-fp8/octavo/internal/jsonfloat"
	"github.com/octavo-fp8/octavo/internal/syncdir"
)

// State keeps what has been done of a [Run], after each layer and, while windows are compared, as
// often as takes no more than a twentieth of the time, so that another one with the same model, text
// and options goes on from there and gives the same bits. Activations are in two files beside that
// named [StateName] then, whatever Memory is.
type State struct {
	Dir   string // that is there and that nobody else writes into; "": nothing is kept
	Model string // what tells the model from others, such as a checksum; not empty
}

// StateName is the file in [State.Dir] that says what has been done.
const StateName = "evaluate-state.json"

// stateVersion is raised where a state has another form, or a run computes other bits.
const stateVersion = 3

// stateShare is how many times as long as it takes to write a state nothing is written while windows
// are compared.
var stateShare time.Duration = 20

// mostState is the most bytes of a state.
const mostState = 1 << 30

// identity is what must be alike for a run to go on with what another has done.
type identity struct {
	Model       string    `json:"model"`
	Text        string    `json:"text"` // SHA-256 of the tokens
	Context     int       `json:"context"`
	Stride      int       `json:"stride"`
	Prefix      []int32   `json:"prefix"`
	LayerTokens int       `json:"layerTokens"`
	Recipes     []spelled `json:"recipes"`
	Modes       []Mode    `json:"modes"`
	Together    string    `json:"together"` // SHA-256 of the names, "" if each weight is alone
}

// spelled is a recipe by all of its fields.
type spelled struct {
	Name string `json:"name"`
	All  string `json:"sha256"`
}

// spell writes all that a value has, behind pointers too.
func spell(w io.Writer, v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			spell(w, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			fmt.Fprintf(w, "%s{", v.Type().Field(i).Name)
			spell(w, v.Field(i))
			fmt.Fprint(w, "}")
		}
	case reflect.Map: // from names
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.String(), b.String()) })
		for _, k := range keys {
			fmt.Fprintf(w, "%q{", k.String())
			spell(w, v.MapIndex(k))
			fmt.Fprint(w, "}")
		}
	default:
		fmt.Fprintf(w, "%#v", v)
	}
}

func (e *evaluator) identify(tokens []int32) identity {
	id := identity{
		Model: e.State.Model, Text: sum(fmt.Append(nil, tokens)), Context: e.Context, Stride: e.Stride,
		Prefix: e.Prefix, LayerTokens: e.LayerTokens, Modes: e.Modes,
	}
	if e.Together != nil {
		var b bytes.Buffer
		for _, s := range e.slots {
			fmt.Fprintf(&b, "%q", e.Together(s.name))
		}
		id.Together = sum(b.Bytes())
	}
	for _, r := range e.Recipes {
		var b bytes.Buffer
		spell(&b, reflect.ValueOf(r))
		id.Recipes = append(id.Recipes, spelled{r.Name, sum(b.Bytes())})
	}
	return id
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// other says in what a state is another's; "" if it is that of want.
func (id *identity) other(want *identity) string {
	switch {
	case id.Model != want.Model:
		return "of another model"
	case id.Text != want.Text:
		return "of another text, or of more or fewer of its tokens"
	case id.Context != want.Context || id.Stride != want.Stride || !slices.Equal(id.Prefix, want.Prefix):
		return fmt.Sprintf("of windows of %d tokens, each %d after the one before, %d of them a prefix",
			id.Context, id.Stride, len(id.Prefix))
	case id.LayerTokens != want.LayerTokens:
		return fmt.Sprintf("of layers alone on %d tokens", max(id.LayerTokens, 0))
	case !slices.Equal(id.Recipes, want.Recipes):
		names := ""
		for _, r := range id.Recipes {
			names += fmt.Sprintf(" %.80q", r.Name)
		}
		return "of other recipes:" + cmp.Or(names, " none")
	case !slices.Equal(id.Modes, want.Modes):
		return fmt.Sprintf("of other modes: %v", id.Modes)
	case id.Together != want.Together:
		return "of weights that share other outer scales"
	}
	return ""
}

// saved is a state.
type saved struct {
	identity
	Layers  int                `json:"layers"`  // that all runs have passed
	Windows int                `json:"windows"` // whose logits were compared
	Sums    [][]uint32         `json:"crc32c"`  // of activations
	Numbers []jsonfloat.Number `json:"numbers"`
}

// envelope is a state in a file.
type envelope struct {
	Version int             `json:"version"`
	Sum     uint32          `json:"crc32c"` // of State
	State   json.RawMessage `json:"state"`
}

// numbers are written to a list, or read from it where read is set.
type numbers struct {
	list  []jsonfloat.Number
	read  bool
	wrong bool // too few of them, or not what they must be
}

func (n *numbers) float(x *float64) {
	switch {
	case !n.read:
		n.list = append(n.list, jsonfloat.Number(*x))
	case len(n.list) == 0:
		n.wrong = true
	default:
		*x, n.list = float64(n.list[0]), n.list[1:]
	}
}

// whole is float of a number from 0 to most.
func (n *numbers) whole(i *int, most int) {
	x := float64(*i)
	n.float(&x)
	if !(x >= 0 && x <= float64(most)) || x != math.Trunc(x) {
		n.wrong, x = true, 0
	}
	*i = int(x)
}

// sums are those of the first windows.
func (n *numbers) sums(s *sums, windows []window) {
	if n.read {
		*s = sums{}
		for _, w := range windows {
			s.add(0, w.count)
		}
	}
	for i := range s.values {
		n.float(&s.values[i])
	}
}

func (n *numbers) largest(l *Largest, places, tokens int) {
	x, token := float64(l.Value), int(l.Token)
	n.float(&x)
	n.whole(&l.Place, places)
	n.whole(&token, tokens)
	l.Value, l.Token = jsonfloat.Number(x), int32(token)
}

// numbers has the sums so far, of so many windows.
func (e *evaluator) numbers(n *numbers, streams []stream, windows int) {
	n.sums(&e.loss, e.windows[:windows])
	n.float(&e.uneven)
	last := e.windows[len(e.windows)-1]
	places := last.at + len(last.targets)
	for _, st := range streams[1:] {
		f, of := st.found, e.windows[:min(windows, st.windows)]
		for _, s := range []*sums{&f.loss, &f.difference, &f.kl} {
			n.sums(s, of)
		}
		n.whole(&f.same, places)
		n.whole(&f.nonFinite, places)
		n.largest(&f.largestKL, places, 0)
		n.largest(&f.largestLogit, places, e.config.Vocab-1)
	}
	if e.local == nil {
		return
	}
	for i := range e.slots {
		measured := 0
		if e.local.measured[i] {
			measured = 1
		}
		n.whole(&measured, 1)
		e.local.measured[i] = measured == 1
		for run := range e.local.ratios {
			n.float(&e.local.ratios[run][i].signal)
			n.float(&e.local.ratios[run][i].noise)
		}
	}
}

// save writes the state after so many layers and windows. What was written of the activations is
// what is read from now on.
func (e *evaluator) save(kept *streamStore, streams []stream, layers, windows int) error {
	begun := time.Now()
	if e.State.Dir == "" || windows > 0 && begun.Before(e.nextSave) {
		return nil
	}
	if windows == 0 {
		if err := kept.to.Sync(); err != nil {
			return err
		}
		kept.turn()
	}
	var n numbers
	e.numbers(&n, streams, windows)
	state, err := json.Marshal(saved{e.identity, layers, windows, kept.from.sums, n.list})
	if err != nil {
		return err
	}
	text, err := json.Marshal(envelope{stateVersion, checksum.Of(state), state})
	if err != nil {
		return err
	}
	if err := atomicfile.Write(filepath.Join(e.State.Dir, StateName), func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	}); err != nil {
		return err
	}
	err = syncdir.Sync(e.State.Dir)
	e.nextSave = time.Now().Add(stateShare * time.Since(begun))
	return err
}

// resume makes all what it was when the state was written, if there is one, and returns how many
// layers and windows were done.
func (e *evaluator) resume(kept *streamStore, streams []stream) (layers, windows int, err error) {
	if e.State.Dir == "" {
		return 0, 0, nil
	}
	path := filepath.Join(e.State.Dir, StateName)
	text, err := inputfile.ReadAll(path, mostState)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, 0, nil
	}
	if err != nil {
		return 0, 0, err
	}
	s, what := e.parse(text, streams)
	if what != "" {
		return 0, 0, stateError("%s: %s", path, what)
	}
	if s.Layers%2 == 0 {
		kept.turn()
	}
	kept.from.sums = s.Sums
	done := int64(0)
	for layer := range s.Layers {
		for _, st := range streams {
			if st.from <= layer {
				done += int64(st.windows)
			}
		}
	}
	return s.Layers, s.Windows, e.meter.Add(done)
}

// parse reads a state and takes its numbers. what says what is wrong with it.
func (e *evaluator) parse(text []byte, streams []stream) (s saved, what string) {
	var of envelope
	if err := json.Unmarshal(text, &of); err != nil {
		return s, "it is no state of an evaluation: " + err.Error()
	}
	if of.Version != stateVersion {
		return s, fmt.Sprintf("it is of version %d: this one goes on with version %d", of.Version, stateVersion)
	}
	if checksum.Of(of.State) != of.Sum {
		return s, "it is not what was written"
	}
	if err := json.Unmarshal(of.State, &s); err != nil {
		return s, "it is no state of an evaluation: " + err.Error()
	}
	if other := s.other(&e.identity); other != "" {
		return s, "it is " + other
	}
	fits := len(s.Sums) == len(streams)
	for i := 0; fits && i < len(streams); i++ {
		fits = len(s.Sums[i]) == streams[i].windows
	}
	blocks := len(e.blocks)
	switch {
	case s.Layers < 1 || s.Layers > blocks:
		return s, fmt.Sprintf("it is after %d layers of %d", s.Layers, blocks)
	case s.Windows < 0 || s.Windows > len(e.windows) || s.Windows > 0 && s.Layers < blocks:
		return s, fmt.Sprintf("%d windows of %d were compared after %d layers of %d", s.Windows, len(e.windows), s.Layers, blocks)
	case !fits:
		return s, "it has no checksum for each run and window"
	}
	n := numbers{list: s.Numbers, read: true}
	if e.numbers(&n, streams, s.Windows); n.wrong || len(n.list) > 0 {
		return s, "its numbers are not those of these runs"
	}
	return s, ""
}
