package nn

import (
	"math"
	"sync"

	"github.com/octavo-fp8/octavo/internal/elementary"
	"github.com/octavo-fp8/octavo/internal/enum"
	"github.com/octavo-fp8/octavo/swiglu"
)

// Scores is how attention makes probabilities of the products of queries and keys. The zero value
// is plain causal softmax.
type Scores struct {
	Window int     // how many tokens a token sees, itself the last of them; 0: all before it
	Sinks  bool    // each head's softmax has one more score, learned, of a key without a value (gpt-oss)
	Scale  float64 // that products are multiplied by; 0: 1/√(elements of a key's head)
	Cap    float64 // unless 0, scores s become Cap·tanh(s/Cap), before the mask (Gemma 2)
}

func (s Scores) check(what string) error {
	switch {
	case s.Window < 0:
		return configError("%s.Window is %d: it must not be negative", what, s.Window)
	case !validFactor(s.Scale):
		return factorError(what+".Scale", s.Scale)
	case !validFactor(s.Cap):
		return factorError(what+".Cap", s.Cap)
	}
	return nil
}

// validFactor reports whether f is 0, where a default stands for it, or a factor that float32 has.
func validFactor(f float64) bool { return f == 0 || f >= 1e-6 && f <= 1e6 }

func factorError(what string, f float64) error {
	return configError("%s is %v: it must be 0 or from 1e-6 to 1e6", what, f)
}

// Norms are those that a [Block] has besides the two before attention and before the MLP.
type Norms struct {
	PlusOne  bool `json:"plus_one,omitempty"`  // every gain of the model is 1 + its weight, those before attention included (Gemma)
	After    bool `json:"after,omitempty"`     // the results of attention and of the MLP are normalized before they are added (Gemma, GLM-4)
	QueryKey bool `json:"query_key,omitempty"` // each head's query and key are, before they are rotated (Qwen3, Gemma 3)
}

// Biases are those that linear layers add to their results. They stay FP32 in every recipe.
type Biases struct {
	QueryKeyValue bool `json:"query_key_value,omitempty"` // of the projections to queries, keys and values
	Output        bool `json:"output,omitempty"`          // of attention's projection back
	MLP           bool `json:"mlp,omitempty"`             // of gate, up and down, of experts too
	Router        bool `json:"router,omitempty"`          // of the logits of experts
}

// Gate is how the two branches of an MLP become one: gate(x) activated, times up(x). The zero
// value is SwiGLU.
type Gate struct {
	Activation GateActivation `json:"activation"`

	// Alpha is the factor within the sigmoid of [GateClamped], and Limit what its branches are
	// clamped to: gate to at most Limit, up to [-Limit, Limit].
	Alpha float64 `json:"alpha,omitempty"`
	Limit float64 `json:"limit,omitempty"`
}

// GateActivation is what becomes of the gate.
type GateActivation uint8

const (
	GateSiLU     GateActivation = iota // g·sigmoid(g)
	GateGELU                           // 0.5·g·(1 + erf(g/√2))
	GateGELUTanh                       // 0.5·g·(1 + tanh(√(2/π)·(g + 0.044715·g³))) (Gemma)
	GateClamped                        // g·sigmoid(Alpha·g), times up + 1, both clamped (gpt-oss)
)

var gateActivations = enum.Enum[GateActivation]{
	Type: "GateActivation", What: "activation of a gate", Err: ErrConfig, Prefix: "nn",
	Names: []string{"silu", "gelu", "gelu-tanh", "clamped"},
}

// String returns the text of a, such as "gelu-tanh".
func (a GateActivation) String() string               { return gateActivations.String(a) }
func (a GateActivation) MarshalText() ([]byte, error) { return gateActivations.MarshalText(a) }
func (a *GateActivation) UnmarshalText(text []byte) error {
	return gateActivations.UnmarshalText(a, text)
}

func (k Gate) check(what string, smoothing *swiglu.Smoothing) error {
	switch {
	case !gateActivations.Valid(k.Activation):
		return gateActivations.Check(k.Activation)
	case k.Activation != GateClamped && (k.Alpha != 0 || k.Limit != 0):
		return configError("%s.Gate has Alpha %v and Limit %v: they are for %v alone", what, k.Alpha, k.Limit, GateClamped)
	case k.Activation == GateClamped && (k.Alpha == 0 || !validFactor(k.Alpha)):
		return configError("%s.Gate.Alpha is %v: it must be from 1e-6 to 1e6", what, k.Alpha)
	case k.Activation == GateClamped && (k.Limit == 0 || !validFactor(k.Limit)):
		return configError("%s.Gate.Limit is %v: it must be from 1e-6 to 1e6", what, k.Limit)
	case k.Activation != GateSiLU && smoothing != nil:
		return configError("%s.Smoothing is that of SwiGLU: with a gate of %v leave it out", what, k.Activation)
	}
	return nil
}

// Multiply writes to z what the gate makes of the branches gate, g, and up, u, all as long; z may
// be one of them. It panics if one is shorter than z. Safe for concurrent use on distinct z.
func (k Gate) Multiply(z, u, g []float32) { k.multiply(z, u, g, swiglu.Scales{}) }

// multiply is Multiply with scales, of SwiGLU alone.
func (k Gate) multiply(z, u, g []float32, s swiglu.Scales) {
	switch k.Activation {
	case GateSiLU:
		swiglu.Forward(z, u, g, s)
	case GateGELU:
		for i, v := range g[:len(z)] {
			z[i] = u[i] * elementary.GELU(v)
		}
	default:
		tiles := gateTiles.Get().(*[2][gateTile]float32)
		linear, gate := &tiles[0], &tiles[1]
		for lo := 0; lo < len(z); lo += gateTile {
			n := min(gateTile, len(z)-lo)
			k.substitute(linear[:n], gate[:n], u[lo:], g[lo:])
			swiglu.Forward(z[lo:lo+n], linear[:n], gate[:n], s)
		}
		gateTiles.Put(tiles)
	}
}

// backward writes the gradients of both branches from dz, that of what multiply wrote.
func (k Gate) backward(du, dg, dz, u, g []float32, s swiglu.Scales) {
	switch k.Activation {
	case GateSiLU:
		swiglu.Backward(du, dg, dz, u, g, s)
	case GateGELU:
		for i, d := range dz {
			linear, gate := u[i], g[i]
			du[i], dg[i] = d*elementary.GELU(gate), linear*elementary.GELUGrad(gate)*d
		}
	default:
		tiles := gateTiles.Get().(*[2][gateTile]float32)
		linear, gate := &tiles[0], &tiles[1]
		for lo := 0; lo < len(dz); lo += gateTile {
			n := min(gateTile, len(dz)-lo)
			u, g, du, dg := u[lo:][:n], g[lo:][:n], du[lo:][:n], dg[lo:][:n]
			k.substitute(linear[:n], gate[:n], u, g)
			swiglu.Backward(du, dg, dz[lo:][:n], linear[:n], gate[:n], s)
			k.substituteBackward(du, dg, u, g, linear[:n])
		}
		gateTiles.Put(tiles)
	}
}

// gateTile is how many values are substituted together.
const gateTile = 128

var gateTiles = sync.Pool{New: func() any { return new([2][gateTile]float32) }}

// The argument of the hyperbolic tangent in GELU, twice: x·(tanhLinear + tanhCubic·x²). Beyond
// tanhLimit the gate is 0 or x.
const (
	tanhLinear = 1.5957691216057307117597842397375274738 // 2·√(2/π)
	tanhCubic  = 0.044715 * tanhLinear
	tanhLimit  = 37
)

// substitute writes branches whose SwiGLU is what the gate makes of u and g: of a gate x·sigmoid(t)
// they are u·x/t and t.
func (k Gate) substitute(linear, gate, u, g []float32) {
	if k.Activation == GateClamped {
		alpha, limit := float32(k.Alpha), float32(k.Limit)
		for i := range linear {
			linear[i], gate[i] = (clamp(u[i], limit)+1)/alpha, alpha*min(g[i], limit)
		}
		return
	}
	for i := range linear {
		x := max(-tanhLimit, min(float64(g[i]), tanhLimit))
		slope := tanhLinear + float64(tanhCubic*float64(x*x))
		linear[i], gate[i] = u[i]/float32(slope), float32(x*slope)
		if float32(x) != g[i] {
			linear[i] = u[i] * float32(float64(g[i])/(x*slope))
		}
	}
}

// substituteBackward replaces the gradients of branches that substitute wrote by those of u and g.
func (k Gate) substituteBackward(du, dg, u, g, linear []float32) {
	if k.Activation == GateClamped {
		alpha, limit := float32(k.Alpha), float32(k.Limit)
		for i := range du {
			du[i], dg[i] = du[i]/alpha, dg[i]*alpha
			if u[i] > limit || u[i] < -limit {
				du[i] = 0
			}
			if g[i] > limit {
				dg[i] = 0
			}
		}
		return
	}
	for i, d := range du {
		x := float64(g[i])
		if x > tanhLimit || x < -tanhLimit { // of x·sigmoid(t) only x moves
			t := max(-tanhLimit, min(x, tanhLimit)) * (tanhLinear + tanhCubic*tanhLimit*tanhLimit)
			du[i], dg[i] = float32(float64(d)*(x/t)), float32(float64(d)*(float64(u[i])/t))
			continue
		}
		square := float64(tanhCubic * float64(x*x))
		slope := tanhLinear + square
		du[i] = float32(float64(d) / slope)
		moved := float64(float64(d)*float64(linear[i])) * float64(2*tanhCubic*x) / slope
		dg[i] = float32(float64(float64(dg[i])*(slope+2*square)) - moved)
	}
}

func clamp(x, limit float32) float32 { return max(-limit, min(x, limit)) }

// CapLogits bounds logits, in place, as LogitCap says.
func (c Config) CapLogits(logits []float32) {
	if c.LogitCap != 0 {
		capTo(logits, 1, float32(c.LogitCap))
	}
}

// capTo replaces row by limit·tanh(row·times/limit).
func capTo(row []float32, times, limit float32) {
	times /= limit
	for i, v := range row {
		row[i] = limit * elementary.Tanh(v*times)
	}
}

// capSlopes multiplies d by the derivative of what capTo made capped, and by times.
func capSlopes(d, capped []float32, times, limit float32) {
	for i, c := range capped[:len(d)] {
		t := c / limit
		d[i] *= float32(times * (1 - float32(t*t)))
	}
}

// noSink is the score of a sink that there is not.
var noSink = float32(math.Inf(-1))
