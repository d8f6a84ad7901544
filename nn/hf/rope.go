package hf

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/octavo-fp8/octavo/nn"
)

func sqrt(x float64) float64 { return math.Sqrt(x) }

// Members that say how positions are rotated. Transformers 5 has all of them in an object.
const (
	thetaKey      = "rope_theta"
	scalingKey    = "rope_scaling"
	parametersKey = "rope_parameters"
	partialKey    = "partial_rotary_factor"
	originalKey   = "original_max_position_embeddings"
	localKey      = "rope_local_base_freq"
)

// rope is of whole heads that are rotated, partialRope of those of which a part is.
var (
	rope = feature{
		func(d *described, f *fields) { d.readRope(f, false, ropeTypes) },
		func(c nn.Config, v members) { v[thetaKey], v[scalingKey] = c.RopeTheta, scalingOf(c) },
	}
	partialRope = feature{
		func(d *described, f *fields) { d.readRope(f, true, ropeTypes) },
		func(c nn.Config, v members) {
			rope.write(c, v)
			v[partialKey] = float64(rotated(c)) / float64(headDim(c))
		},
	}

	// phiRope has one way of scaling, under three names.
	phiRope = feature{
		func(d *described, f *fields) { d.readRope(f, true, phiTypes) },
		func(c nn.Config, v members) {
			partialRope.write(c, v)
			if c.RopeScaling.Original > 0 {
				v[originalKey] = c.RopeScaling.Original
			}
		},
	}

	// latentRope also scales scores, by what a member says of all elements of heads.
	latentRope = feature{
		func(d *described, f *fields) { d.readRope(f, false, ropeTypes) },
		func(c nn.Config, v members) {
			rope.write(c, v)
			if scaling, ok := v[scalingKey].(members); ok && c.ScoreScale != 0 {
				scaling["mscale_all_dim"] = (sqrt(c.ScoreScale/scoreScale(c)) - 1) / (0.1 * math.Log(c.RopeScaling.Factor))
			}
		},
	}

	interleave = feature{
		func(d *described, f *fields) { d.interleaved = f.truth("rope_interleave") },
		func(_ nn.Config, v members) { v["rope_interleave"] = true },
	}

	// gemmaRope has another base in layers with a window, or an object for each type of layer.
	gemmaRope = feature{
		func(d *described, f *fields) {
			d.WindowRopeTheta = f.number(localKey, 0)
			types := false
			f.object(parametersKey, func(o *fields) {
				if types = o.raw(full) != nil || o.raw(sliding) != nil; !types {
					if len(o.values) > 0 { // which transformers leaves unread
						f.refuse(parametersKey, "an object for "+full+" and one for "+sliding)
					}
					return
				}
				o.object(full, func(in *fields) {
					d.readRopeObject(f, in, false, ropeTypes)
				})
				o.object(sliding, func(in *fields) {
					d.WindowRopeTheta = in.number(thetaKey, d.WindowRopeTheta)
					in.ropeType("default")
					in.refuseOthers(func(string) bool { return false })
				})
				o.refuseOthers(func(string) bool { return false })
			})
			if !types {
				d.readRope(f, false, ropeTypes)
			} else if f.raw(scalingKey) != nil {
				f.refuse(scalingKey, "null beside "+parametersKey+" of types of layers")
			}
			if d.Windows == nil {
				d.WindowRopeTheta = 0
			}
		},
		func(c nn.Config, v members) {
			rope.write(c, v)
			v[localKey] = cmp.Or(c.WindowRopeTheta, c.RopeTheta)
		},
	}
)

// ropeTypes are the ways of scaling that package nn has, by the names of transformers
// (modeling_rope_utils.py).
const ropeTypes = "default linear dynamic llama3 yarn longrope"

// phiTypes are those of Phi-3: all but the first are the same.
const phiTypes = "default longrope su yarn"

// readRope reads the frequencies of rotary positions, whose scaling is of one of some types.
func (d *described) readRope(f *fields, partial bool, types string) {
	f.know(scalingKey, parametersKey)
	key := parametersKey
	if raw := f.raw(scalingKey); raw != nil && string(raw) != "{}" {
		key = scalingKey
	}
	f.object(key, func(o *fields) { d.readRopeObject(f, o, partial, types) })
}

// readRopeObject is readRope of an object, and of what f has beside it.
func (d *described) readRopeObject(f, o *fields, partial bool, types string) {
	d.RopeTheta = o.number(thetaKey, f.number(thetaKey, 1e4))
	factor := o.number(partialKey, f.number(partialKey, 1))
	if factor != 1 && !partial {
		from := o
		if o.raw(partialKey) == nil {
			from = f
		}
		from.refuse(partialKey, "1: models of this architecture rotate whole heads")
	}
	if n := int(float64(headDim(d.Config)) * factor); d.MLA == nil && n != headDim(d.Config) {
		if d.RotaryDim = n; n == 0 {
			f.refuse(partialKey, "a part of a head with an element or more")
		}
	}
	d.readScaling(f, o, types)
	if o.err == nil {
		o.err = f.err
	}
	// Members of one way are left alone by the others.
	o.know("type", "rope_type", "factor", originalKey, "low_freq_factor", "high_freq_factor",
		"attention_factor", "beta_fast", "beta_slow", "mscale", "mscale_all_dim", "truncate",
		"short_factor", "long_factor",
		"attn_factor", "finetuned") // which transformers leaves alone, though others do not
	o.refuseOthers(func(string) bool { return false })
}

// ropeType reads how frequencies are scaled.
func (o *fields) ropeType(types string) string {
	key := "type" // as it was called at first
	if o.raw("rope_type") != nil {
		key = "rope_type"
	}
	return cmp.Or(o.word(key, "package nn scales positions of this architecture in no other way",
		strings.Fields(types)...), "default")
}

func (d *described) readScaling(f, o *fields, types string) {
	s := &d.RopeScaling
	most := f.sizeOr("max_position_embeddings", 0)
	original := f.sizeOr(originalKey, 0) // which counts where it is, beside the object
	if original == 0 {
		original = o.sizeOr(originalKey, most)
	}
	kind := o.ropeType(types)
	if types == phiTypes && kind != "default" {
		kind = "longrope"
	}
	ratio := func() float64 { return o.number("factor", float64(most)/float64(max(original, 1))) }
	if d.MLA != nil && kind != "default" && kind != "yarn" && kind != "linear" && o.notNegative("mscale_all_dim") != 0 {
		o.refuse("mscale_all_dim", "0 with rope_type "+kind)
	}
	switch kind {
	case "default", "dynamic": // which differ in longer sequences than there can be
		return
	case "linear":
		s.Factor = o.needed("factor")
	case "llama3":
		s.Factor, s.Original = o.needed("factor"), original
		s.Low, s.High = o.needed("low_freq_factor"), o.needed("high_freq_factor")
	case "yarn":
		s.YaRN, s.Factor, s.Original = true, ratio(), original
		s.Low, s.High = cmp.Or(o.notNegative("beta_slow"), 1), cmp.Or(o.notNegative("beta_fast"), 32)
		truncate := true
		o.read("truncate", "true or false", &truncate)
		s.Untruncated = !truncate
		part, whole := o.notNegative("mscale"), o.notNegative("mscale_all_dim")
		if s.Attention = mscale(s.Factor, 1); part != 0 && whole != 0 {
			s.Attention = mscale(s.Factor, part) / mscale(s.Factor, whole)
		}
		s.Attention = o.number("attention_factor", s.Attention)
	case "longrope":
		s.Original, s.Attention = original, 1
		s.Short, s.Long = o.factors("short_factor", rotated(d.Config)/2), o.factors("long_factor", rotated(d.Config)/2)
		if ratio := ratio(); ratio > 1 {
			s.Attention = sqrt(1 + math.Log(ratio)/math.Log(float64(original)))
		}
		s.Attention = o.number("attention_factor", s.Attention)
	}
	if s.Attention == 1 {
		s.Attention = 0
	}
	if whole := o.notNegative("mscale_all_dim"); whole != 0 && d.MLA != nil {
		m := mscale(s.Factor, whole)
		d.ScoreScale = scoreScale(d.Config) * m * m
	}
}

// mscale is how much attention is sharpened for positions that are scaled by a factor.
func mscale(factor, by float64) float64 {
	if factor <= 1 {
		return 1
	}
	return 0.1*by*math.Log(factor) + 1
}

// factors reads as many positive numbers as there must be.
func (f *fields) factors(key string, n int) (list []float64) {
	want := strconv.Itoa(n) + " positive numbers"
	f.read(key, want, &list)
	if len(list) != n || slices.ContainsFunc(list, func(x float64) bool { return !(x > 0) }) {
		f.refuse(key, want)
	}
	return list
}

// scalingOf is what readRope reads; nil for none.
func scalingOf(c nn.Config) any {
	s := c.RopeScaling
	v := members{}
	switch {
	case s.IsZero():
		return nil
	case s.Long != nil:
		v["rope_type"], v["short_factor"], v["long_factor"] = "longrope", s.Short, s.Long
	case s.YaRN:
		v["rope_type"], v["factor"], v["truncate"] = "yarn", s.Factor, !s.Untruncated
		v["beta_slow"], v["beta_fast"] = s.Low, s.High
	case s.Original == 0:
		v["rope_type"], v["factor"] = "linear", s.Factor
	default:
		v["rope_type"], v["factor"] = "llama3", s.Factor
		v["low_freq_factor"], v["high_freq_factor"] = s.Low, s.High
	}
	if s.Original > 0 {
		v[originalKey] = s.Original
	}
	if s.YaRN || s.Long != nil {
		v["attention_factor"] = cmp.Or(s.Attention, 1)
	}
	return v
}

// Rows of a head of n elements that are rotated together are i and i+n/2 in Hugging Face's
// order, rotated halves, and 2i and 2i+1 in that of package nn, interleaved pairs.

// rotation says which rows of a matrix are rotated.
type rotation struct {
	head  int // rows of a head, with those that are not rotated
	first int // of a head's rows that is
	rows  int // that are rotated, even; 0: none
}

// rotationOf returns the rotation of a parameter.
func rotationOf(c nn.Config, name string) rotation {
	name = name[strings.Index(name, ".self_attn.")+1:]
	name = strings.TrimPrefix(name, "self_attn.")
	name = strings.TrimSuffix(strings.TrimSuffix(name, ".weight"), ".bias")
	if m := c.MLA; m != nil {
		switch name {
		case "q_proj", "q_b_proj":
			return rotation{m.NoPE + m.RoPE, m.NoPE, m.RoPE}
		case "kv_a_proj_with_mqa":
			return rotation{m.KVRank + m.RoPE, m.KVRank, m.RoPE}
		}
		return rotation{}
	}
	switch name {
	case "q_proj", "k_proj", "q_norm", "k_norm":
		return rotation{headDim(c), 0, rotated(c)}
	}
	return rotation{}
}

// rowLength returns how many values a row of a parameter has: vectors are columns.
func rowLength(name string, cols int) int {
	if isVector(name) {
		return 1
	}
	return cols
}

// interleave puts the rows of every head of a matrix with rows of cols values from the order
// of rotated halves into that of interleaved pairs.
func (r rotation) interleave(matrix []float32, cols int) {
	r.reorder(matrix, cols, func(i int) int { return i/2 + i%2*(r.rows/2) })
}

// halve undoes interleave.
func (r rotation) halve(matrix []float32, cols int) {
	half := r.rows / 2
	r.reorder(matrix, cols, func(i int) int { return i%half*2 + i/half })
}

// reorder makes rotated row from(i) of each head its rotated row i.
func (r rotation) reorder(matrix []float32, cols int, from func(i int) int) {
	if r.rows == 0 {
		return
	}
	scratch := make([]float32, r.rows*cols)
	for size := r.head * cols; len(matrix) > 0; matrix = matrix[size:] {
		rotated := matrix[r.first*cols:][:len(scratch)]
		copy(scratch, rotated)
		for i := range r.rows {
			copy(rotated[i*cols:(i+1)*cols], scratch[from(i)*cols:])
		}
	}
}
