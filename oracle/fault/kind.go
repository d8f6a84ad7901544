package fault

// Kind is a kind of fault: the name of a row of the table, such as "scales-transposed".
// FAULTS.md lists what kernels with these faults do. The zero Kind is None.
type Kind string

// None is the kind of an honest kernel.
const None Kind = ""

// Kinds that are told from others beside the table.
const (
	kFactor        Kind = "k-factor"
	scalesLayout   Kind = "scales-layout"
	scalesFirstRow Kind = "scales-first-row"
	scalesOfRow    Kind = "scales-of-row"
	scalesRowsOff  Kind = "scales-rows-off"
	scalesTimesRow Kind = "scales-times-row"
	scalesStale    Kind = "scales-stale"
	kLost          Kind = "k-lost"
	kDoubled       Kind = "k-doubled"
	codesPermuted  Kind = "codes-permuted"
	scalesPermuted Kind = "scales-permuted"
	blocksPermuted Kind = "blocks-permuted"
	codePair       Kind = "code-pair"
	nibblePair     Kind = "nibble-pair"
	codeMisread    Kind = "code-misread"
	unwritten      Kind = "unwritten"
	oldKept        Kind = "old-kept"
	scaledResults  Kind = "scaled"
	edgeGarbage    Kind = "edge-garbage"
)

// component returns what of a kernel has the fault.
func (k Kind) component() component { return table.Of(k).component }

// String returns the kind's name, such as "scales-reciprocal"; that of None is "none".
// UnmarshalText takes names in any case.
func (k Kind) String() string                   { return table.String(k) }
func (k Kind) MarshalText() ([]byte, error)     { return table.MarshalText(k) }
func (k *Kind) UnmarshalText(text []byte) error { return table.UnmarshalText(k, text) }
