package nn

import (
	"math"

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
	case GateClamped:
		alpha, limit := float32(k.Alpha), float32(k.Limit)
		for i, v := range g[:len(z)] {
			v = min(v, limit)
			z[i] = (clamp(u[i], limit) + 1) * (v * elementary.Sigmoid(alpha*v))
		}
	default:
		value := functionsOf[k.function()].value
		for i, v := range g[:len(z)] {
			z[i] = u[i] * value(v)
		}
	}
}

// backward writes the gradients of both branches from dz, that of what multiply wrote.
func (k Gate) backward(du, dg, dz, u, g []float32, s swiglu.Scales) {
	switch k.Activation {
	case GateSiLU:
		swiglu.Backward(du, dg, dz, u, g, s)
	case GateClamped:
		alpha, limit := float32(k.Alpha), float32(k.Limit)
		for i, d := range dz {
			v := min(g[i], limit)
			sigmoid := elementary.Sigmoid(alpha * v)
			linear := clamp(u[i], limit)
			du[i], dg[i] = d*(v*sigmoid), (linear+1)*d*(sigmoid*(1+float32(alpha*v*(1-sigmoid))))
			if u[i] > limit || u[i] < -limit {
				du[i] = 0
			}
			if g[i] > limit {
				dg[i] = 0
			}
		}
	default:
		f := functionsOf[k.function()]
		for i, d := range dz {
			linear, gate := u[i], g[i]
			du[i], dg[i] = d*f.value(gate), linear*f.slope(gate)*d
		}
	}
}

// function returns that of a gate of GELU.
func (k Gate) function() Function {
	if k.Activation == GateGELU {
		return GELU
	}
	return GELUTanh
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
