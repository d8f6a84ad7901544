package hf

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/octavo-fp8/octavo/checkpoint"
	"github.com/octavo-fp8/octavo/nn"
	"github.com/octavo-fp8/octavo/safetensors"
)

var typeNames = map[safetensors.DType]string{"F32": "float32", "BF16": "bfloat16"}

// newConfig returns config.json of a model under the first architecture by which it is read as it
// is.
func newConfig(c nn.Config, t safetensors.DType) (d described, v members, err error) {
	var nearest []string
	for _, x := range families {
		if x.text != "" {
			continue
		}
		v := members{
			"architectures": []string{x.architecture}, "model_type": strings.Fields(x.types)[0],
			"torch_dtype": typeNames[t], "bos_token_id": nil, "eos_token_id": nil, // tokens have none
			"attention_bias": false,
		}
		for _, feature := range x.features {
			if feature.write != nil {
				feature.write(c, v)
			}
		}
		d, err := v.describe()
		var missing []string
		if err != nil {
			missing = []string{x.architecture, "what can be read", err.Error()}
		} else if missing = append([]string{x.architecture}, different(c, d)...); len(missing) == 1 {
			return d, v, nil
		}
		if nearest == nil || len(missing) < len(nearest) {
			nearest = missing
		}
	}
	return d, nil, configError("the model", "no architecture has all that it has; %s, the nearest, has not %s: "+
		"checkpoints of package train keep every model", nearest[0], strings.Join(nearest[1:], ", "))
}

// likeConfig returns config.json of a checkpoint that a model was loaded from, for its values.
func likeConfig(c nn.Config, like *checkpoint.Checkpoint, t safetensors.DType) (d described, v members, err error) {
	if d, err = describe(like); err != nil {
		return d, nil, err
	}
	if like.Config.Model == nil {
		return d, nil, configError(like.Dir(), "there is no %s, which the model would be saved like", checkpoint.ConfigName)
	}
	if missing := different(c, d); len(missing) > 0 {
		return d, nil, configError(d.file, "the model has %s: it is another one", missing[0])
	}
	for _, w := range like.Weights() {
		if d.ofMore(w.Name) {
			return d, nil, tensorError("%s: %s is of more than text, which the model is alone: save it without SaveOptions.Like",
				fileOf(like, w), w.Name)
		}
	}
	v = members{}
	for key, raw := range like.Config.Model {
		v[key] = raw
	}
	if d.predicted > 0 {
		v["num_nextn_predict_layers"] = 0 // which the model does not have
	}
	for _, key := range []string{"quantization_config", "compression_config", "expert_dtype"} {
		delete(v, key)
	}
	if t != "" {
		key := "dtype"
		if _, ok := v[key]; !ok {
			key = "torch_dtype"
		}
		v[key] = typeNames[t]
	}
	return d, v, nil
}

// describe reads what was written.
func (v members) describe() (d described, err error) {
	f := &fields{file: checkpoint.ConfigName}
	data, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(data, &f.values)
	}
	if err != nil {
		return d, err
	}
	d.readConfig(f)
	return d, f.err
}

// different returns what a model has that its description does not have.
func different(c nn.Config, d described) []string {
	if c = plain(c); c.Experts != nil && d.scored {
		c.Experts.Router.BiasRate = biasRate // without one, biases are zero
	}
	return differences(nil, "Config", reflect.ValueOf(c), reflect.ValueOf(plain(d.Config)))
}

// plain returns a configuration without what is a choice, and with all defaults.
func plain(c nn.Config) nn.Config {
	c = built(c)
	c.KVHeads, c.HeadDim, c.RotaryDim = cmp.Or(c.KVHeads, c.Heads), headDim(c), rotated(c)
	if c.MLA != nil {
		c.KVHeads = c.Heads
	}
	c.RopeTheta, c.NormEps = cmp.Or(c.RopeTheta, 1e4), cmp.Or(c.NormEps, 1e-5)
	c.ScoreScale, c.EmbeddingScale = cmp.Or(c.ScoreScale, scoreScale(c)), cmp.Or(c.EmbeddingScale, 1)
	c.RopeScaling.Attention = cmp.Or(c.RopeScaling.Attention, 1)
	if !slices.ContainsFunc(c.Windows, func(n int) bool { return n > 0 }) {
		c.Windows = nil
	}
	if c.MLA = copied(c.MLA); c.MLA != nil {
		c.MLA.NormEps = cmp.Or(c.MLA.NormEps, c.NormEps)
	}
	for layer := range c.Dense {
		c.DenseLayers = append(slices.Clip(c.DenseLayers), layer)
	}
	slices.Sort(c.DenseLayers)
	if c.Dense = 0; c.Experts != nil {
		r := &c.Experts.Router
		r.Scale, r.Groups, r.TopGroups = cmp.Or(r.Scale, 1), cmp.Or(r.Groups, 1), cmp.Or(r.TopGroups, 1)
		if r.TopGroups >= r.Groups {
			r.GroupScores = 0
		} else {
			r.GroupScores = cmp.Or(r.GroupScores, max(r.TopK/r.TopGroups, 1))
		}
	}
	return c
}

// differences appends the fields of two values that differ, and what the first has.
func differences(all []string, name string, a, b reflect.Value) []string {
	switch a.Kind() {
	case reflect.Pointer:
		if zero := reflect.New(a.Type().Elem()); !a.IsNil() || !b.IsNil() {
			if a.IsNil() {
				a = zero
			}
			if b.IsNil() {
				b = zero
			}
			return differences(all, name, a.Elem(), b.Elem())
		}
	case reflect.Struct:
		for i := range a.NumField() {
			if field := a.Type().Field(i); field.IsExported() {
				all = differences(all, name+"."+field.Name, a.Field(i), b.Field(i))
			}
		}
	case reflect.Float64: // roots and squares may be off by a rounding
		if x, y := a.Float(), b.Float(); math.Abs(x-y) > 1e-12*math.Abs(x) {
			return append(all, fmt.Sprintf("%s of %v", name, x))
		}
	default:
		if !reflect.DeepEqual(a.Interface(), b.Interface()) && a.Kind() != reflect.Func {
			return append(all, fmt.Sprintf("%s of %v", name, a))
		}
	}
	return all
}

// writeJSON writes indented JSON, as transformers does.
func writeJSON(w io.Writer, value any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(value)
}
