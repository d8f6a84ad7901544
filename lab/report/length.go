package report

// Length is how much of an experiment a run does.
type Length uint8

const (
	// Look takes minutes. It shows figures, and judges only what it has the declared
	// sample of.
	Look Length = iota
	// Short takes seconds. It shows that the experiment works, and judges only what needs
	// no sample.
	Short
	// Full does what was declared.
	Full
)

var lengths = [...]string{Look: "look", Short: "short", Full: "full"}

// String returns "look", "short" or "full".
func (l Length) String() string { return lengths[l] }

// MarshalText implements [encoding.TextMarshaler].
func (l Length) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// notices are what people are told of a run before anything else.
var notices = [...]string{
	Look: "This is a look: it shows figures, and judges only goals of which it has as much as was declared. Verdicts come from --full.",
	Short: "This is a short run (--short): it shows that the experiments work, and little more. " +
		"Its models are small and hardly trained. Goals that only a run of full length can meet are not judged, " +
		"and nothing is concluded from figures that need one.",
	Full: "",
}

// Notice is what people are told of such a run before anything else; nothing of a full one.
func (l Length) Notice() string { return notices[l] }
