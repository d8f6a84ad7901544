package checkpoint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/internal/sentinel"
	"github.com/octavo-fp8/octavo/safetensors"
)

// Layout is a way of storing a model that loaders know by its configuration: which weights
// are quantized, in which scheme, by whose arithmetic, and what the configuration says of it.
// Layouts are data; see [Layouts].
type Layout struct {
	Name  string // as people write it, such as "deepseek-v3"
	About string // one line

	// When is what the configuration of a model in this layout says, all of it. It is empty
	// for plain values.
	When []Condition

	// Plain is the type of values of a layout that quantizes nothing.
	Plain safetensors.DType

	// Rules say how a weight is stored: the first whose pattern matches counts. A layout
	// without any has plain values.
	Rules []Rule

	// Mixed says that each module may be stored by any rule, as the configuration lists: those that
	// match say what is done without recipes.
	Mixed bool

	// Share says that weights that loaders fuse have one scale, where that is a scale for
	// the whole tensor, and one scale of the input: loaders take one of several for all.
	Share bool

	// Calibrated says whether the input's scales must be known: maxima of activations.
	Calibrated Calibration

	// KV are the names of the scales of cached keys and values, behind that of the
	// attention's module; empty where the layout has none.
	KV [2]string

	// Documents are what is written into configurations.
	Documents []Document

	// Top are further members of config.json.
	Top map[string]any

	// PowersOfTwo says that scales, though stored as float32, are powers of two.
	PowersOfTwo bool
}

// Calibration is whether a layout has scales of layers' inputs.
type Calibration uint8

const (
	Dynamic    Calibration = iota // none: inputs are scaled when they are known
	Optional                      // either
	Calibrated                    // always
)

// Condition is a value in a configuration: Path are keys in objects with dots between them,
// of which * is the only one there is, and Value the text of what must be there. "" means
// that nothing is there, or null, and * that something is.
type Condition struct{ Path, Value string }

// Rule says how weights are stored whose names match.
type Rule struct {
	Match      *regexp.Regexp // nil matches all
	Scheme     *Scheme
	Arithmetic Arithmetic // "": the scheme can be read, not written
}

// Document is what goes into a file of the configuration.
type Document struct {
	File string // its name
	Key  string // the member that JSON becomes; "" where it is the whole file

	// JSON is the text. Static takes its place, if it is not empty, where the input's scales
	// are known.
	JSON, Static string

	// Ignore is where the list of modules goes that are not quantized: keys with dots
	// between them.
	Ignore string

	// Unlisted says that the list is left out where nothing is in it but what loaders leave
	// alone by themselves.
	Unlisted bool

	// Ignored is the list where it is always the same.
	Ignored []string

	// Groups says that each scheme has a group of its modules in config_groups.
	Groups bool

	// KV is where KVJSON goes where scales of cached keys and values are known.
	KV, KVJSON string
}

// Layouts returns all layouts. They must not be changed.
func Layouts() []*Layout { return slices.Clone(layouts) }

// ParseLayout returns the layout of the given name.
func ParseLayout(name string) (*Layout, error) {
	var names []string
	for _, l := range layouts {
		if l.Name == name {
			return l, nil
		}
		names = append(names, l.Name)
	}
	return nil, sentinel.Errorf(ErrLayout, "layout %q is unknown: want one of %s",
		name, strings.Join(names, ", "))
}

// String returns the name of the layout.
func (l *Layout) String() string { return l.Name }

// Writable reports whether models can be converted to the layout.
func (l *Layout) Writable() bool {
	return l.Plain != "" || len(l.Rules) > 0 && l.Rules[0].Arithmetic != ""
}

// rule returns how the named weight is stored, nil if not at all.
func (l *Layout) rule(weight string) *Rule {
	for i := range l.Rules {
		if r := &l.Rules[i]; r.Match == nil || r.Match.MatchString(weight) {
			return r
		}
	}
	return nil
}

// Declared reports whether a configuration says that the model is in the layout.
func (l *Layout) Declared(c Config) bool {
	declaration := c.Quantization
	if declaration == nil && c.ModelOpt != nil {
		declaration = map[string]any{"quant_method": "modelopt"}
		if q, ok := c.ModelOpt["quantization"].(map[string]any); ok {
			declaration["quant_algo"] = q["quant_algo"]
		}
	}
	if declaration == nil {
		return false
	}
	for _, w := range l.When {
		if !w.holds(declaration) {
			return false
		}
	}
	return len(l.When) > 0
}

func (w Condition) holds(value any) bool {
	for key := range strings.SplitSeq(w.Path, ".") {
		object, _ := value.(map[string]any)
		if key == "*" && len(object) == 1 {
			for key = range object {
			}
		}
		value = object[key]
	}
	switch w.Value {
	case "":
		return value == nil
	case "*":
		return value != nil
	}
	return value != nil && fmt.Sprint(value) == w.Value
}
