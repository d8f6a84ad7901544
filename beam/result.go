package beam

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"

	sdk "github.com/apache/beam/sdks/v2/go/pkg/beam"
	"github.com/apache/beam/sdks/v2/go/pkg/beam/register"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/telemetry"
)

// Result is what became of some shards of a model. Its coder is JSON.
type Result struct {
	Shards []Shard `json:"shards"` // in the order of their numbers

	// Events say what was quantized in them: one for each layer, such as "model.layers.3", and
	// one for each module that is in none, by name. Amax is among the statistics. Blocks and
	// scales are not counted.
	Events []telemetry.Event `json:"events"`
}

// Shard is a shard that is complete.
type Shard struct {
	Number int                `json:"number"`
	File   checkpoint.FileSum `json:"file"`
}

func init() {
	register.Combiner1[Result](new(Merge))
	sdk.RegisterCoder(reflect.TypeFor[Result](), encodeResult, decodeResult)
}

func encodeResult(r Result) ([]byte, error) { return json.Marshal(r) }

func decodeResult(data []byte) (r Result, err error) {
	err = json.Unmarshal(data, &r)
	return r, err
}

// Merge is a CombineFn of Results: shards add up and so do events, as a [telemetry.Recorder]
// adds them. It is commutative and associative, to the bit.
type Merge struct{}

// MergeAccumulators returns a and b as one. It is an error if a shard is in both.
func (*Merge) MergeAccumulators(a, b Result) (Result, error) {
	var sum Result
	sum.Shards = slices.Concat(a.Shards, b.Shards)
	slices.SortFunc(sum.Shards, func(x, y Shard) int { return x.Number - y.Number })
	for i, s := range sum.Shards[min(1, len(sum.Shards)):] {
		if s.Number == sum.Shards[i].Number {
			return sum, fmt.Errorf("shard %s has been counted twice", s.File.Name)
		}
	}
	var r telemetry.Recorder
	for _, e := range slices.Concat(a.Events, b.Events) {
		_ = r.Event(e) // which returns none
	}
	for _, t := range r.Totals() {
		sum.Events = append(sum.Events, telemetry.Event{Summary: t.Summary})
	}
	return sum, nil
}

// resultOf returns what became of one shard.
func resultOf(number int, r *checkpoint.ShardResult) Result {
	result := Result{Shards: []Shard{{Number: number, File: r.File}}}
	var rec telemetry.Recorder
	for i, l := range r.Tensors {
		if r.Stats[i].Elements > 0 {
			e := telemetry.Event{Summary: telemetry.Summary{Tensor: layerOf(l.Name), Op: "convert", Stats: r.Stats[i]}}
			_ = rec.Event(e) // which returns none
		}
	}
	for _, t := range rec.Totals() {
		result.Events = append(result.Events, telemetry.Event{Summary: t.Summary})
	}
	return result
}

// numbered matches the names of what layers consist of.
var numbered = regexp.MustCompile(`^(.*?\.[0-9]+)\.`)

// layerOf returns the layer that a weight is in, or its module.
func layerOf(weight string) string {
	if m := numbered.FindStringSubmatch(weight); m != nil {
		return m[1]
	}
	return strings.TrimSuffix(weight, ".weight")
}
